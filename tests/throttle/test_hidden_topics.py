"""The topics that Kafka hides from a user: the logs on brokers show them, and metadata does not."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kquota.errors import Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.port import Snapshot
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition
from kquota.throttle.actions import hidden_topics
from kquota.throttle.cluster_throttles import ClusterThrottles
from tests.reassign.fake import MemoryCluster
from tests.sizes.fake import FakeLogDirs
from tests.throttle.stage import partition, throttles

ALIVE = [BrokerId(n) for n in (1, 2, 3)]


class Hiding(MemoryCluster):
    """A cluster that hides the topic `secret`."""

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        if topics is not None and "secret" in topics:
            raise Refused("topic secret: the broker answered TopicAuthorizationFailed (29)")
        return super().snapshot(topics)


class WithoutThree(FakeLogDirs):
    """Log dirs of a cluster in which broker 3 does not answer."""

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        if 3 in brokers:
            raise Unreachable("broker 3: no answer")
        return super().describe(brokers, topics)


def logs(topic: str, kind: type[FakeLogDirs] = FakeLogDirs) -> FakeLogDirs:
    found = kind()
    found.topic(topic, [[1, 2]])
    return found


@pytest.fixture
def reading() -> ClusterThrottles:
    """Return a reading in which every broker reported its rates, and no topic is shown."""
    return throttles({})


def test_a_hidden_topic_is_named(reading: ClusterThrottles) -> None:
    assert hidden_topics(Hiding(alive=set(ALIVE)), logs("secret"), reading) == ("secret",)


def test_a_topic_that_was_created_meanwhile_is_not_hidden_beside_one_that_is(reading: ClusterThrottles) -> None:
    found = logs("secret")
    found.topic("created", [[1, 2]])
    cluster = Hiding(alive=set(ALIVE))
    cluster.partitions[TopicPartition("created", 0)] = PartitionReplicas(replicas=(ALIVE[0], ALIVE[1]))
    assert hidden_topics(cluster, found, reading) == ("secret",)


def test_a_topic_that_was_deleted_meanwhile_is_not_hidden(reading: ClusterThrottles) -> None:
    assert hidden_topics(Hiding(alive=set(ALIVE)), logs("deleted"), reading) == ()


def test_zookeeper_hides_no_topic(reading: ClusterThrottles) -> None:
    assert hidden_topics(Hiding(alive=set(ALIVE)), None, reading) == ()


def test_a_broker_that_did_not_report_its_rates_is_not_asked_again() -> None:
    two = throttles({"shown": [partition(1, 3)]}, alive=[1, 2])
    assert two.unread == (3,)
    assert hidden_topics(Hiding(alive=set(ALIVE)), logs("secret", WithoutThree), two) == ("secret",)
