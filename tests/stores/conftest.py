"""The other hands of this room's tests: what kquota wrote is seen with eyes that are not its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kquota.sandbox.cluster import Sandbox
from tests.stores.moves_stage import OtherHand


@pytest.fixture
def hand(cluster: Sandbox) -> Iterator[OtherHand]:
    """On the brokers."""
    found = OtherHand(cluster)
    yield found
    found.close()


@pytest.fixture
def znode(zookeeper: Sandbox) -> Iterator[KazooClient]:
    """In the ZooKeeper that stands alone."""
    client = KazooClient(hosts=zookeeper.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()
