"""Real servers for tests. kquota's sandbox starts each kind once per run, when a test first requests it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kquota.errors import KquotaError, Unreachable
from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Sandbox
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, Resource
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import Wire
from kquota.terms import LOG_DIR_RATE
from tests.waiting import attempts, until

NEEDS = {
    "zookeeper": "zookeeper",
    "kafka_431": "kafka",
    "kafka_391": "kafka",
    "kafka_282": "kafka",
    "documents_431": "kafka",
    "documents_391": "kafka",
    "secured": "kafka",
    "secured_zookeeper": "zookeeper",
    "spark": "spark",
}
"""The mark of a test, for a fixture that it requests."""

WAYS = {
    "4.3.1 Admin API": ("kafka_431", False),
    "3.9.1 Admin API": ("kafka_391", False),
    "3.9.1 ZooKeeper": ("kafka_391", True),
    "2.8.2 Admin API": ("kafka_282", False),
    "2.8.2 ZooKeeper": ("kafka_282", True),
}
"""Every connection to every Kafka: the fixture of its servers, and whether it uses ZooKeeper."""


_RUNNING: Final[list[Sandbox]] = []
_FEW: Final = 100
"""The maximum number of notifications that delays no broker."""
_LEADERS_STAY: Final = {"auto.leader.rebalance.enable": "false"}
"""The property by which only tests elect leaders. By default, the controller elects preferred leaders every 5 minutes.
"""


def _running(name: str, kafka: str | None) -> Iterator[Sandbox]:
    """Yield a sandbox that ends with this process, even if the process is killed."""
    try:
        started = sandbox.up(name=name, kafka=kafka, owner_pid=os.getpid(), properties=_LEADERS_STAY if kafka else {})
    except Unreachable as error:
        # Offline mode is used only on request: a failed download fails the run.
        if os.environ.get("KQUOTA_OFFLINE") == "1":
            pytest.skip(f"KQUOTA_OFFLINE=1, and Kafka {kafka} is not in the cache")
        raise AssertionError(str(error)) from error
    _RUNNING.append(started)
    yield started
    _RUNNING.remove(started)
    sandbox.down(name)


def on_zookeeper() -> list[Sandbox]:
    """Return the clusters that currently run on a ZooKeeper."""
    return [servers for servers in _RUNNING if servers.zookeeper and servers.brokers]


def forget_changes() -> None:
    """Remove the notifications of previous tests from each ZooKeeper, once all its brokers have seen them.

    Brokers keep them for 15 minutes and read all of them before they act on a new one. With a thousand notifications,
    brokers would lag by seconds in later tests.
    """
    for servers in on_zookeeper():
        client = KazooClient(hosts=servers.zookeeper)
        client.start()
        try:
            changes = client.get_children("/config/changes")
            if len(changes) >= _FEW:
                _heard(servers)
                for change in changes:
                    # A broker that sees a change removes those older than 15 minutes.
                    with contextlib.suppress(NoNodeError):
                        client.delete(f"/config/changes/{change}")
        finally:
            client.stop()
            client.close()


def _heard(servers: Sandbox) -> None:
    """Wait until every broker applies a change that is newer than all others, and then revert it."""
    with Wire(servers.bootstrap, {}) as wire:
        configs = WireConfigs(wire)
        for value in ("987654321", None):
            wanted = {} if value is None else {LOG_DIR_RATE: value}
            delete = () if value is not None else (LOG_DIR_RATE,)
            for broker in servers.brokers:
                resource = Resource(kind=BROKERS, name=str(broker.id))
                configs.alter([ConfigChange(resource=resource, add=wanted, delete=delete)])
                until(lambda of=resource, to=value: _own_rate(configs, of) == to, f"{resource} shows a change")  # type: ignore[misc]


def _own_rate(configs: WireConfigs, resource: Resource) -> str | None:
    entries = configs.describe([resource]).get(resource, ())
    return next((entry.value for entry in entries if entry.key == LOG_DIR_RATE and entry.dynamic), None)


def agreed(bootstrap: str) -> None:
    """Wait until every broker reports the same client quotas.

    kquota waits only until one broker shows a write. On KRaft, each broker learns of a write at another time, and the
    next process may ask any broker.
    """
    request = DescribeClientQuotasRequest(components=[], strict=False)
    silent: list[KquotaError] = []
    with Wire(bootstrap, {}) as wire:
        for _ in attempts():
            answers = wire.ask_each(dict.fromkeys(wire.brokers(), request)).values()
            silent = [answer for answer in answers if isinstance(answer, KquotaError)]
            if not silent and len(set(map(_quotas, answers))) == 1:
                return
    raise AssertionError(f"these brokers still report other quotas or none: {silent}")


def _quotas(answer: Any) -> frozenset[object]:
    """Return the quotas of an answer as a set. Limits are text, because one NaN differs from another."""
    return frozenset(
        (frozenset((part.entity_type, part.entity_name) for part in entry.entity), value.key, repr(value.value))
        for entry in answer.entries or ()
        for value in entry.values
    )


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[Sandbox]:
    """A ZooKeeper without brokers."""
    yield from _running("zookeeper", None)


@pytest.fixture(scope="session")
def kafka_431() -> Iterator[Sandbox]:
    """Three brokers of Kafka 4.3.1 on KRaft."""
    yield from _running("kafka-4.3.1", "4.3.1")


@pytest.fixture(scope="session")
def kafka_391() -> Iterator[Sandbox]:
    """Three brokers of Kafka 3.9.1 on ZooKeeper."""
    yield from _running("kafka-3.9.1", "3.9.1")


@pytest.fixture(scope="session")
def kafka_282() -> Iterator[Sandbox]:
    """Three brokers of Kafka 2.8.2 on ZooKeeper."""
    yield from _running("kafka-2.8.2", "2.8.2")


@pytest.fixture(scope="session")
def documents_431() -> Iterator[Sandbox]:
    """Brokers of 4.3.1 with only the settings that a document names."""
    yield from _running("documents-4.3.1", "4.3.1")


@pytest.fixture(scope="session")
def documents_391() -> Iterator[Sandbox]:
    """Brokers of 3.9.1 on ZooKeeper, with only the settings that a document names."""
    yield from _running("documents-3.9.1", "3.9.1")


@pytest.fixture(scope="session", params=["kafka_431", "kafka_391", "kafka_282"], ids=["4.3.1", "3.9.1", "2.8.2"])
def cluster(request: pytest.FixtureRequest) -> Sandbox:
    """Three brokers, once for each version."""
    started: Sandbox = request.getfixturevalue(request.param)
    return started
