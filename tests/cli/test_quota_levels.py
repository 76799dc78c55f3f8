"""`kquota quota top` names the quota that really throttles a client: eight levels and three keys, on each release."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.quota.precedence import LEVELS, LevelPart, Per, per
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import CONSUMER_BYTE_RATE, DEFAULT, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from tests.background import working
from tests.cli.run import kquota
from tests.cli.test_quota_top import produce

pytestmark = pytest.mark.kafka

NAME: Final = "levels"
USER: Final = "ANONYMOUS"
LOW: Final = {PRODUCER_BYTE_RATE: 1_000.0, CONSUMER_BYTE_RATE: 1_000.0, REQUEST_PERCENTAGE: 0.01}
HIGH: Final = {PRODUCER_BYTE_RATE: 1e12, CONSUMER_BYTE_RATE: 1e12, REQUEST_PERCENTAGE: 1e6}
SECONDS: Final = 150


@pytest.fixture(scope="module", params=["4.3.1", "3.9.1", "2.8.2"])
def servers(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    yield sandbox.up(name=NAME, kafka=request.param, brokers=1, metrics=True, owner_pid=os.getpid())
    sandbox.down(NAME)


@contextmanager
def client(servers: Sandbox, name: str) -> Iterator[None]:
    """A client that writes and reads more than the low limits allow."""
    own = {"bootstrap.servers": servers.bootstrap, "client.id": name, "log_level": 2}
    stop = threading.Event()

    def read() -> None:
        consumer = Consumer({**own, "group.id": "g", "enable.auto.commit": False, "fetch.message.max.bytes": 10_000})
        consumer.assign([TopicPartition("t", 0, 0)])
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    with working(stop, partial(produce, servers, name, stop, 16_000), read):
        yield


def entity(level: int, client_id: str) -> Entity:
    def part(kind: LevelPart, name: str) -> Any:
        return {LevelPart.NAMED: name, LevelPart.DEFAULT: DEFAULT, LevelPart.ABSENT: None}[kind]

    user, of = LEVELS[level - 1]
    return Entity(user=part(user, USER), client_id=part(of, client_id))


def throttled(servers: Sandbox, user: str | None, client_id: str | None) -> Mapping[str, Mapping[str, Any]]:
    """The buckets of this client that a broker throttles now, by key."""
    found = kquota(
        *("quota", "top", "--bootstrap-server", servers.bootstrap, "--metrics", servers.metrics, "--output", "json")
    )
    assert found.code in (0, 8), found.err
    clients = json.loads(found.out)["clients"]
    return {
        one["key"]: one
        for one in clients
        if (one["user"], one["client_id"], one["throttled"]) == (user, client_id, True)
    }


def test_each_level_is_joined_with_the_bucket_that_it_limits(servers: Sandbox) -> None:
    """Every level below also has a quota, which no client reaches. So a throttled client proves the level."""
    traffic.create(servers.bootstrap, "t", [[1]])
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    for _ in range(1_000):
        traffic.put(producer, "t", bytes(5_000), 0)
    assert producer.flush(60) == 0
    for level in range(8, 0, -1):
        name = f"client-{level}"
        limits = {entity(below, name): HIGH for below in range(level + 1, 9)} | {entity(level, name): LOW}
        with Wire(servers.bootstrap, {}) as wire:
            WireQuotas(wire).alter([QuotaChange(entity=one, add=those) for one, those in limits.items()])
        by = per(level)
        bucket = (None if by is Per.CLIENT else USER, None if by is Per.USER else name)
        found: Mapping[str, Mapping[str, Any]] = {}
        with client(servers, name):
            give_up = time.monotonic() + SECONDS
            while not {*LOW} <= found.keys() and time.monotonic() < give_up:
                # A client that waits for a long time is not throttled again until it sends a request.
                found = {**found, **throttled(servers, *bucket)}
        expected = kquota_entity(entity(level, name))
        assert {key: (one["level"], one["limit"], one["entity"]) for key, one in found.items()} == {
            key: (level, limit, expected) for key, limit in LOW.items()
        }


def kquota_entity(entity: Entity) -> dict[str, str | None]:
    """The entity in the JSON of `quota top`, where null is the default entity."""
    return {
        word: None if name is DEFAULT else str(name)
        for word, name in (("user", entity.user), ("client", entity.client_id))
        if name is not None
    }
