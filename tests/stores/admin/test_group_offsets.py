"""The offsets of consumer groups on real brokers: of every member's partition, and only while the group has members."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kquota import library
from kquota.pace.lag import GroupOffsets
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import group_offsets
from kquota.stores.admin.group_offsets import WireGroups
from kquota.terms import TopicPartition as Name
from tests.waiting import until

pytestmark = pytest.mark.kafka
RECORDS = 30
READ = 7


@pytest.fixture(params=["kafka_431", "kafka_391", "kafka_282"])
def servers(request: pytest.FixtureRequest) -> Sandbox:
    found: Sandbox = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def topic(servers: Sandbox) -> str:
    return created(servers)


def created(servers: Sandbox) -> str:
    """A new topic with two partitions of `RECORDS` records."""
    name = f"lag-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers.bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=2, replica_assignment=[[1, 2], [2, 1]])])[name].result(60)
    producer = Producer({"bootstrap.servers": servers.bootstrap, "acks": "all"})
    for number in range(2 * RECORDS):
        producer.produce(name, b"x", partition=number % 2)
    assert producer.flush(60) == 0
    return name


@contextmanager
def member(servers: Sandbox, topic: str, group: str, **settings: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.5) is not None, "the member has read a record")
    yield consumer
    consumer.close()


def test_the_offsets_of_a_group_with_members(servers: Sandbox, topic: str) -> None:
    one, two = Name(topic, 0), Name(topic, 1)
    with library.wire(servers.bootstrap, None) as wire:
        with member(servers, topic, topic) as consumer:
            consumer.commit(offsets=[TopicPartition(topic, 0, READ)], asynchronous=False)
            groups = WireGroups(wire)
            assert groups.read().groups[topic] == {one: GroupOffsets(READ, RECORDS)}
            consumer.commit(offsets=[TopicPartition(topic, 1, RECORDS)], asynchronous=False)
            later = groups.read()
            assert later.groups[topic] == {one: GroupOffsets(READ, RECORDS), two: GroupOffsets(RECORDS, RECORDS)}
        assert topic not in WireGroups(wire).read().groups


def test_a_group_of_the_new_protocol(kafka_431: Sandbox) -> None:
    """KIP-848: the broker assigns the partitions."""
    topic = created(kafka_431)
    with (
        library.wire(kafka_431.bootstrap, None) as wire,
        member(kafka_431, topic, topic, **{"group.protocol": "consumer"}) as consumer,
    ):
        consumer.commit(offsets=[TopicPartition(topic, 0, READ)], asynchronous=False)
        assert WireGroups(wire).read().groups[topic] == {Name(topic, 0): GroupOffsets(READ, RECORDS)}


def test_more_groups_and_partitions_than_the_limits(
    servers: Sandbox, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{topic}-{number}" for number in range(3)]
    with (
        library.wire(servers.bootstrap, None) as wire,
        member(servers, topic, names[0]) as first,
        member(servers, topic, names[1]) as second,
        member(servers, topic, names[2]) as third,
    ):
        for consumer in (first, second, third):
            consumer.commit(offsets=[TopicPartition(topic, number, READ) for number in (0, 1)], asynchronous=False)
        assert sorted(WireGroups(wire).read().groups) == names
        monkeypatch.setattr(group_offsets, "MOST_GROUPS", 2)
        assert sorted(WireGroups(wire).read().groups) == names[:2]
        monkeypatch.setattr(group_offsets, "MOST_PARTITIONS", 3)
        found = WireGroups(wire).read()
        assert (len(found.groups), found.unread) == (1, 2)
