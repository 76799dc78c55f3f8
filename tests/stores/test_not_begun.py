"""Moves in `/admin/reassign_partitions` that the controller has not begun."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kquota.stores.zookeeper.topics import TopicNode, not_begun
from kquota.terms import BrokerId, TopicPartition
from tests.reassign.stage import b

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("replicas", "adding", "target", "begun"),
    [
        (b(1, 2), {}, b(1, 3), False),
        (b(1, 3, 2), {0: b(3)}, b(1, 3), True),
        (b(1, 3), {}, b(1, 3), True),
        (b(1, 3, 2), {}, b(1, 3), True),
    ],
    ids=["submitted", "adding replicas", "done", "as before Kafka 2.4"],
)
def test_the_znode_of_the_topic_shows_whether_the_controller_has_begun(
    replicas: tuple[BrokerId, ...],
    adding: Mapping[int, tuple[BrokerId, ...]],
    target: tuple[BrokerId, ...],
    begun: bool,
) -> None:
    topics = {"t": TopicNode(replicas={0: replicas}, adding=adding)}
    expected = set() if begun else {TopicPartition("t", 0)}
    assert not_begun(topics, {TopicPartition("t", 0): target}) == expected


def test_a_partition_that_does_not_exist_is_not_submitted() -> None:
    assert not_begun({"t": TopicNode()}, {TopicPartition("t", 0): b(1), TopicPartition("u", 0): b(1)}) == set()
