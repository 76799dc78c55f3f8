"""`quota apply` of 10,000 entities: on the Admin API against one JVM call each, in ZooKeeper written and in force."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench.race import cost, kquota, say
from kquota.cli.world import until_seen
from kquota.quota.apply import apply
from kquota.quota.difference import difference
from kquota.quota.document import read
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import kafka_tool
from kquota.stores.znodes import Znodes
from kquota.stores.zookeeper import ZooKeeperQuotas

ENTITIES: Final = 10_000
ROUNDS: Final = 3
CALLS: Final = 5
CONFIGS: Final = "kafka.admin.ConfigCommand"
ON_ZOOKEEPER: Final = "3.9.1"
_LAST: Final = f"client-{ENTITIES - 1}"
_FORCE_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of each round; `promised` is the most that README states; `theirs` is one call of Kafka's, in seconds.

    `megabytes` is the most memory of all rounds, None where nothing is promised of it.
    """

    name: str
    ours: tuple[float, ...]
    promised: float | None = None
    theirs: float | None = None
    megabytes: float | None = None
    promised_megabytes: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the promise holds."""
        fast = self.promised is None or statistics.median(self.ours) <= self.promised
        return fast and (self.promised_megabytes is None or (self.megabytes or 0) <= self.promised_megabytes)


def through_the_admin_api(found: sandbox.Cluster) -> list[Measured]:
    """Whole processes; of Kafka's tool a few calls, since 10,000 would take hours."""
    at = ["--bootstrap-server", found.bootstrap]
    with _documents() as (every, none):
        say(f"quota apply, {ENTITIES} entities: {ROUNDS} rounds, and {CALLS} calls of Kafka's tool")
        seconds = []
        for _ in range(ROUNDS):
            seconds.append(cost(kquota("quota", "apply", *at, str(every), "--yes")).seconds)
            cost(kquota("quota", "apply", *at, str(none), "--prune", "--yes"))
    alter = ["--alter", "--add-config", "producer_byte_rate=1000", "--entity-type", "clients", "--entity-name"]
    theirs = [cost(kafka_tool(found, CONFIGS, *at, *alter, f"client-{n}")).seconds for n in range(CALLS)]
    name = f"quota apply, {ENTITIES} entities, Admin API"
    return [Measured(name=name, ours=tuple(seconds), promised=3.0, theirs=statistics.median(theirs))]


def in_zookeeper() -> list[Measured]:
    """Once, on a cluster of its own: each change leaves the brokers a notification for 15 minutes."""
    say(f"starting a sandbox of Kafka {ON_ZOOKEEPER} on ZooKeeper ...")
    found = sandbox.up(name="bench-zookeeper", kafka=ON_ZOOKEEPER, owner_pid=os.getpid())
    assert found.zookeeper is not None
    try:
        traffic.create(found.bootstrap, "bench", [[1]])
        say(f"quota apply, {ENTITIES} entities in ZooKeeper")
        with _documents() as (every, _), Znodes(found.zookeeper) as znodes:
            quotas = ZooKeeperQuotas(znodes, say)
            document = read(every.read_text(), every.name)
            batches: list[float] = []
            difference_ = difference(document, quotas.everything(), prune=False)
            started = time.perf_counter()
            outcome = apply(quotas, difference_, until_seen(), lambda _: batches.append(time.perf_counter() - started))
            assert not outcome.undone
            force = _until_throttled(found.bootstrap) - started
            again = cost(kquota("quota", "apply", "--zookeeper", found.zookeeper, str(every), "--yes")).seconds
    finally:
        sandbox.down("bench-zookeeper")
    return [
        Measured(name="  ... in ZooKeeper, written", ours=(batches[-1],), promised=2.0),
        Measured(name="  ... in ZooKeeper, in force (the last one's client is throttled)", ours=(force,)),
        Measured(name="  ... in ZooKeeper, whole process that finds nothing to change", ours=(again,)),
    ]


def _until_throttled(bootstrap: str) -> float:
    """Write a little as the last of the clients until a broker asks it to wait; when that was."""
    seen: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": _LAST,
            "linger.ms": 0,
            "log_level": 2,
            "throttle_cb": lambda event: seen.append(time.perf_counter()) if event.throttle_time else None,
        }
    )
    give_up = time.perf_counter() + _FORCE_SECONDS
    while not seen:
        if time.perf_counter() > give_up:
            raise TimeoutError(f"{_LAST} is not throttled after {_FORCE_SECONDS:.0f} s")
        producer.produce("bench", os.urandom(1_000))
        producer.poll(0.05)
    producer.purge()
    return seen[0]


@contextmanager
def _documents() -> Iterator[tuple[Path, Path]]:
    """A document with all the entities, and one that prunes them."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        every, none = Path(folder) / "every.yaml", Path(folder) / "none.yaml"
        lines = (f"  client-{n}: {{producer_byte_rate: 1kB/s, request_percentage: 200}}\n" for n in range(ENTITIES))
        every.write_text("version: 1\nclients:\n" + "".join(lines))
        none.write_text('version: 1\nowns: ["client:client-*"]\n')
        yield every, none
