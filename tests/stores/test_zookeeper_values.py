"""Real brokers accept the values that kquota writes to ZooKeeper: checked with ValidateOnly, without a write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kquota.sandbox.cluster import Sandbox
from kquota.settings import zookeeper_values
from kquota.settings.change import ConfigChange
from kquota.settings.resource import TOPICS, Resource
from tests.stores.moves_stage import OtherHand

INT = str(2**31 - 1)
LONG = str(2**63 - 1)
WORDS = {
    "cleanup.policy": ("compact", "delete", "compact, delete"),
    "compression.type": ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": ("0", "1", "0.5", ".5"),
    "message.downconversion.enable": ("true", "false"),
    "preallocate": ("true", "false"),
    "unclean.leader.election.enable": ("true", "false"),
}
NUMBERS = {
    "retention.ms": ("-1", "0", " 5", "+5", LONG),
    "retention.bytes": ("-1", "0", LONG),
    "max.compaction.lag.ms": ("1", LONG),
    "min.compaction.lag.ms": ("0", LONG),
    "flush.messages": ("1", LONG),
    "flush.ms": ("0", LONG),
    "delete.retention.ms": ("0", LONG),
    "file.delete.delay.ms": ("0", LONG),
    "message.timestamp.difference.max.ms": ("0", LONG),
    "segment.ms": ("1", LONG),
    "segment.jitter.ms": ("0", LONG),
    "segment.bytes": ("14", INT),
    "segment.index.bytes": ("4", INT),
    "min.insync.replicas": ("1", INT),
    "index.interval.bytes": ("0", INT),
    "max.message.bytes": ("0", INT),
}


@pytest.fixture(params=["kafka_391", "kafka_282"], ids=["3.9.1", "2.8.2"])
def hand(request: pytest.FixtureRequest) -> Iterator[OtherHand]:
    cluster: Sandbox = request.getfixturevalue(request.param)
    found = OtherHand(cluster)
    yield found
    found.close()


@pytest.mark.kafka
def test_brokers_accept_every_value_that_kquota_writes_to_zookeeper(hand: OtherHand) -> None:
    topic = hand.topic({0: [1]}, size=1)
    values = WORDS | NUMBERS
    assert values.keys() == zookeeper_values.TOPIC.keys()
    refused = []
    for key, text in ((key, text) for key, texts in values.items() for text in texts):
        zookeeper_values.must_be_sound(ConfigChange(resource=Resource(kind=TOPICS, name=topic), add={key: text}))
        entry = ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET)
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        try:
            hand.admin.incremental_alter_configs([asked], validate_only=True)[asked].result(30)
        except KafkaException as error:
            refused.append((key, text, str(error)))
    assert refused == []
