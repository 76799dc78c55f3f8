"""connection_creation_rate (KIP-612), written by kquota through each connection, is obeyed by real brokers.

A broker closes a connection from an address that is above its rate; all others are served. The connections come
from 127.0.0.2, so that neither kquota nor any other test is bound by the quota.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from kquota.quota import actions
from kquota.quota.entity import Entity, Filter
from kquota.quota.limits import QuotaChange
from kquota.quota.port import ClusterQuotas
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import CONNECTION_CREATION_RATE
from tests.servers import WAYS
from tests.waiting import attempts

pytestmark = pytest.mark.kafka
ADDRESS = "127.0.0.2"
SECONDS = 45.0
MANY = 40
_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[Sandbox, bool]:
    fixture, on_zookeeper = WAYS[request.param]
    return request.getfixturevalue(fixture), on_zookeeper


@pytest.fixture
def quotas(way: tuple[Sandbox, bool]) -> Iterator[ClusterQuotas]:
    cluster, on_zookeeper = way
    if on_zookeeper:
        with Znodes(str(cluster.zookeeper)) as znodes:
            yield ZooKeeperQuotas(znodes, unreadable=lambda line: None)
    else:
        with Wire(cluster.bootstrap, {}) as wire:
            yield WireQuotas(wire)


def served(broker: str) -> bool:
    """True if a broker answers a new connection, False if it closes it."""
    host, _, port = broker.partition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS, source_address=(ADDRESS, 0)) as connection:
        try:
            connection.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
            return connection.recv(4) != b""
        except ConnectionError:
            return False


def comes_true(holds: Callable[[], bool]) -> bool:
    give_up = time.monotonic() + SECONDS
    while not (held := holds()) and time.monotonic() < give_up:
        pass
    return held


def test_new_connections_are_limited_and_then_no_more(way: tuple[Sandbox, bool], quotas: ClusterQuotas) -> None:
    entity = Entity(ip=ADDRESS)
    broker = way[0].brokers[0].address
    assert comes_true(lambda: all(served(broker) for _ in range(MANY))), "limited before there was a quota"
    actions.alter(quotas, QuotaChange(entity=entity, add={CONNECTION_CREATION_RATE: 1.0}), attempts())
    try:
        assert actions.describe(quotas, Filter.of(entity)) == {entity: {CONNECTION_CREATION_RATE: 1.0}}
        assert comes_true(lambda: not all(served(broker) for _ in range(MANY))), "never limited"
    finally:
        actions.alter(quotas, QuotaChange(entity=entity, delete=(CONNECTION_CREATION_RATE,)), attempts())
    assert comes_true(lambda: all(served(broker) for _ in range(MANY))), "limited permanently"
