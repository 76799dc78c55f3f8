"""Topics for tests of the log, and records that another client appends."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from confluent_kafka import Producer

from kquota.errors import KquotaError
from kquota.mutation.topic import Creation, Deletion
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topic_log import WireLog, find
from kquota.stores.admin.topics import WireTopics
from tests.waiting import until

COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
QUICKLY_COMPACTED = COMPACTED | {
    "segment.ms": "3000",
    "max.compaction.lag.ms": "4000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


def create(wire: Wire, configs: Mapping[str, str] = COMPACTED, *, partitions: int = 1, replicas: int = 3) -> str:
    """Create a topic, and wait until every broker shows it."""
    name = create_only(wire, f"log-{uuid.uuid4().hex[:8]}", configs, partitions=partitions, replicas=replicas)
    until(lambda: WireSight(wire).behind({name: partitions}) == 0, f"every broker shows {name}")
    return name


def create_only(
    wire: Wire, name: str, configs: Mapping[str, str] = COMPACTED, *, partitions: int = 1, replicas: int = 3
) -> str:
    """Create a topic without waiting until brokers show it."""
    wanted = Creation(topic=name, partitions=partitions, replication_factor=replicas, configs=configs)
    assert WireTopics(wire).send([wanted], 30).outcomes[name] is None
    return name


def delete(wire: Wire, name: str) -> None:
    """Delete the topic without waiting."""
    try:
        WireTopics(wire).send([Deletion(topic=name, partitions=1)], 30)
    except KquotaError:
        return


def handle(wire: Wire, name: str, seconds: float = 15.0) -> WireLog:
    """Return a handle of a log that exists."""
    log = find(wire, name, seconds)
    assert log is not None
    return log


def produce(cluster: Sandbox, topic: str, key: bytes, value: bytes | None, **settings: str) -> None:
    """Append one record as another client, and wait until it is in the log."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 2, **settings})
    failures: list[object] = []
    producer.produce(topic, value, key=key, partition=0, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(30) == 0
    assert failures == [None]
