"""Real servers for tests: each kind started once per run, by the product's own sandbox, when a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kquota.errors import Unreachable
from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Cluster

NEEDS = {
    "zookeeper": "zookeeper",
    "kafka_431": "kafka",
    "kafka_391": "kafka",
    "kafka_282": "kafka",
    "cluster": "kafka",
    "secured": "kafka",
    "secured_zookeeper": "zookeeper",
}
"""The mark that a test gets for a fixture it asks for."""

WAYS = {
    "4.3.1 Admin API": ("kafka_431", False),
    "3.9.1 Admin API": ("kafka_391", False),
    "3.9.1 ZooKeeper": ("kafka_391", True),
    "2.8.2 Admin API": ("kafka_282", False),
    "2.8.2 ZooKeeper": ("kafka_282", True),
}
"""Every connection to every Kafka: the fixture of its servers, and whether it goes through ZooKeeper."""


def _running(name: str, kafka: str | None) -> Iterator[Cluster]:
    """A sandbox that ends with this process, even when it is killed."""
    try:
        started = sandbox.up(name=name, kafka=kafka, owner_pid=os.getpid())
    except Unreachable as error:
        # Offline is only what the caller says it is: a download that fails by itself fails the run.
        if os.environ.get("KQUOTA_OFFLINE") == "1":
            pytest.skip(f"KQUOTA_OFFLINE=1, and Kafka {kafka} is not in the cache")
        raise AssertionError(str(error)) from error
    yield started
    sandbox.down(name)


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[Cluster]:
    """A ZooKeeper alone."""
    yield from _running("zookeeper", None)


@pytest.fixture(scope="session")
def kafka_431() -> Iterator[Cluster]:
    """Three brokers of Kafka 4.3.1 on KRaft."""
    yield from _running("kafka-4.3.1", "4.3.1")


@pytest.fixture(scope="session")
def kafka_391() -> Iterator[Cluster]:
    """Three brokers of Kafka 3.9.1 on ZooKeeper."""
    yield from _running("kafka-3.9.1", "3.9.1")


@pytest.fixture(scope="session")
def kafka_282() -> Iterator[Cluster]:
    """Three brokers of Kafka 2.8.2 on ZooKeeper."""
    yield from _running("kafka-2.8.2", "2.8.2")


@pytest.fixture(scope="session", params=["kafka_431", "kafka_391", "kafka_282"], ids=["4.3.1", "3.9.1", "2.8.2"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Three brokers, once of each version."""
    started: Cluster = request.getfixturevalue(request.param)
    return started
