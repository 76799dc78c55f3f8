"""Clients for this room's tests. Most are not kquota's, so that kquota does not check its own writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kquota.sandbox.cluster import Sandbox
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znodes import Znodes
from tests.stores.moves_stage import OtherHand


@pytest.fixture
def hand(cluster: Sandbox) -> Iterator[OtherHand]:
    """A client of the brokers."""
    found = OtherHand(cluster)
    yield found
    found.close()


@pytest.fixture
def znode(zookeeper: Sandbox) -> Iterator[KazooClient]:
    """A client of the ZooKeeper without brokers."""
    client = KazooClient(hosts=zookeeper.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def zookeeper_quotas(zookeeper: Sandbox) -> Iterator[ZooKeeperQuotas]:
    """The quotas in the ZooKeeper without brokers. A test fails if kquota cannot read one of them."""
    assert zookeeper.zookeeper
    with Znodes(zookeeper.zookeeper) as znodes:
        yield ZooKeeperQuotas(znodes, pytest.fail)
