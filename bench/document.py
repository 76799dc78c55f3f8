"""`quota apply` of 10,000 entities: through the Admin API, compared with Kafka's tool, and through ZooKeeper."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench.measured import Measured
from bench.race import cost, kquota, say
from bench.servers import brokers
from kquota.cli.clock import until_seen
from kquota.quota.actions import apply
from kquota.quota.difference import difference
from kquota.quota.document_text import read
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znodes import Znodes

ENTITIES: Final = 10_000
ROUNDS: Final = 3
CALLS: Final = 5
CONFIGS: Final = "kafka.admin.ConfigCommand"
ON_ZOOKEEPER: Final = "3.9.1"
_LAST: Final = f"client-{ENTITIES - 1}"
_FORCE_SECONDS: Final = 180.0


def through_the_admin_api(found: Sandbox) -> list[Measured]:
    """Measure whole processes. Kafka's tool is called only a few times, because 10,000 calls would take hours."""
    say(f"quota apply, {ENTITIES} entities: {ROUNDS} rounds, and {CALLS} calls of Kafka's tool")
    seconds = tuple(applied(found, ENTITIES) for _ in range(ROUNDS))
    name = f"quota apply, {ENTITIES} entities, Admin API"
    return [Measured(name=name, ours=seconds, promised=3.0, theirs=ENTITIES * one_call(found))]


def applied(found: Sandbox, entities: int) -> float:
    """Return the seconds of the process that writes this number of entities. The entities are deleted afterwards."""
    at = ["--bootstrap-server", found.bootstrap]
    with _documents(entities) as (every, none):
        seconds = cost(kquota("quota", "apply", *at, str(every), "--yes")).seconds
        cost(kquota("quota", "apply", *at, str(none), "--prune", "--yes"))
        return seconds


def one_call(found: Sandbox) -> float:
    """Return the median of the seconds that Kafka's tool takes for one entity."""
    alter = ["--alter", "--add-config", "producer_byte_rate=1000", "--entity-type", "clients", "--entity-name"]
    command = kafka_tool(found, CONFIGS, "--bootstrap-server", found.bootstrap, *alter)
    return statistics.median(cost([*command, f"client-{n}"]).seconds for n in range(CALLS))


def in_zookeeper() -> list[Measured]:
    """Measure once, on a separate cluster, because each change leaves a notification for the brokers for 15 minutes."""
    with brokers("zookeeper", ON_ZOOKEEPER) as found:
        assert found.zookeeper is not None
        traffic.create(found.bootstrap, "bench", [[1]])
        say(f"quota apply, {ENTITIES} entities in ZooKeeper")
        with _documents(ENTITIES) as (every, _), Znodes(found.zookeeper) as znodes:
            quotas = ZooKeeperQuotas(znodes, say)
            document = read(every.read_text(), every.name)
            batches: list[float] = []
            difference_ = difference(document, quotas.everything(), prune=False)
            started = time.perf_counter()
            outcome = apply(
                quotas, difference_.replacements, until_seen(), lambda _: batches.append(time.perf_counter() - started)
            )
            assert not outcome.undone
            force = _until_throttled(found.bootstrap) - started
            again = cost(kquota("quota", "apply", "--zookeeper", found.zookeeper, str(every), "--yes")).seconds
    return [
        Measured(name="  ... in ZooKeeper, until all quotas are written", ours=(batches[-1],), promised=2.0),
        Measured(name="  ... in ZooKeeper, until a broker throttles the last client", ours=(force,)),
        Measured(name="  ... in ZooKeeper, second apply, with nothing to change", ours=(again,)),
    ]


def _until_throttled(bootstrap: str) -> float:
    """Send small writes as the last client until a broker throttles it. Return the time of this moment, as
    `time.perf_counter` reports it."""
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
def _documents(entities: int) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a document with this number of entities, and of a document that prunes them."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        every, none = Path(folder) / "every.yaml", Path(folder) / "none.yaml"
        lines = (f"  client-{n}: {{producer_byte_rate: 1kB/s, request_percentage: 200}}\n" for n in range(entities))
        every.write_text("version: 1\nclients:\n" + "".join(lines))
        none.write_text('version: 1\nowns: ["client:client-*"]\n')
        yield every, none
