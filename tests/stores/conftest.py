"""Other clients for this room's tests, so that kquota does not check its own writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kquota.sandbox.cluster import Sandbox
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
