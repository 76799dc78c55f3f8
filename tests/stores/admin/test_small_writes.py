"""Small writes to real brokers: each partition answers, and the deletion of the topic is noticed."""

from __future__ import annotations

import math
import uuid

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.small_writes import TimedWrites, small_writes
from tests.waiting import until

pytestmark = pytest.mark.kafka


def test_every_partition_acknowledges_writes_until_the_topic_is_deleted(kafka_431: Sandbox) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_431.bootstrap})
    topic = f"small-{uuid.uuid4().hex[:8]}"
    new = NewTopic(topic, num_partitions=3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin.create_topics([new])[topic].result(60)
    with small_writes(kafka_431.bootstrap, {}, topic, 3) as writes:
        until(lambda: answered(writes) == {0, 1, 2}, "every partition has acknowledged a write")
        assert not writes.lost
        admin.delete_topics([topic])[topic].result(60)
        until(lambda: not answered(writes) and writes.lost, "the deletion is noticed")


def answered(writes: TimedWrites) -> set[int]:
    """Write once, and return the partitions that have acknowledged a write since the last call."""
    writes.write(0.5)
    found = writes.latencies()
    return {number for number, latencies in found.items() if any(latency < math.inf for latency in latencies)}
