"""Topics that a probe leaves are found by their seal and removed after they expire. No other topic is touched."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from kquota.errors import Incomplete, Refused, Unknown
from kquota.probe import actions, scratch
from kquota.settings.resource import TOPICS, Resource
from kquota.terms import BrokerId
from tests.mutation.fake import FakeClock, MemoryTopics
from tests.settings.fake import FakeConfigs

NOW = datetime(2026, 11, 21, 23, 0, tzinfo=UTC)
OLD = scratch.name(NOW - timedelta(hours=1), 60, "00000001")
RUNNING = scratch.name(NOW, 60, "00000002")
FOREIGN = scratch.name(NOW - timedelta(hours=1), 60, "00000003")
ORDERS = "kquota-probe-orders"


@pytest.fixture
def topics() -> MemoryTopics:
    return MemoryTopics(clock=FakeClock(), held=dict.fromkeys((OLD, RUNNING, FOREIGN, ORDERS), 3))


@pytest.fixture
def configs() -> FakeConfigs:
    found = FakeConfigs(topics=(OLD, RUNNING, FOREIGN, ORDERS))
    for topic in (OLD, RUNNING):
        found.held[Resource(kind=TOPICS, name=topic)] = scratch.configs(topic)
    return found


def test_only_scratch_topics_are_found_and_each_is_expired_or_may_be_in_use(
    topics: MemoryTopics, configs: FakeConfigs
) -> None:
    found = actions.found(topics, configs, NOW)
    assert [topic.name for topic in found.over] == [OLD]
    assert [topic.name for topic in found.running] == [RUNNING]
    assert found.foreign == (FOREIGN,)


def test_only_topics_with_the_seal_are_removed(topics: MemoryTopics, configs: FakeConfigs) -> None:
    assert actions.remove(topics, configs, topics.clock, [OLD, FOREIGN, ORDERS, "none"]) == (OLD,)
    assert set(topics.held) == {RUNNING, FOREIGN, ORDERS}


def test_a_topic_that_cannot_be_removed_is_reported_with_the_next_step(configs: FakeConfigs) -> None:
    topics = MemoryTopics(clock=FakeClock(), held={OLD: 3}, lost_at=1)
    with pytest.raises(Incomplete, match=f"not removed: {OLD} ") as raised:
        actions.remove(topics, configs, topics.clock, [OLD])
    assert raised.value.undone == (OLD,)


def test_a_topic_that_another_command_has_just_deleted_is_no_failure(
    topics: MemoryTopics, configs: FakeConfigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = topics.topics([OLD])
    del topics.held[OLD]
    monkeypatch.setattr(topics, "topics", lambda names: stale)
    assert actions.remove(topics, configs, topics.clock, [OLD]) == ()


class Brokers:
    """Two brokers that show everything, or never show anything."""

    def __init__(self, behind: int = 0) -> None:
        self._behind = behind

    def behind(self, wanted: Mapping[str, int]) -> int:
        return self._behind


PLACED = {0: (BrokerId(4),), 1: (BrokerId(7), BrokerId(4))}


def test_the_scratch_topic_has_the_given_replicas() -> None:
    topics = MemoryTopics(clock=FakeClock())
    actions.create(topics, topics.clock, Brokers(), RUNNING, PLACED)
    (made,) = topics.topics(None)
    assert [(one.number, one.leader, one.replicas) for one in made.partitions] == [(0, 4, (4,)), (1, 7, (7, 4))]


def test_an_existing_topic_is_never_used_as_scratch_topic(topics: MemoryTopics) -> None:
    with pytest.raises(Refused, match=f"topic {ORDERS} could not be created: TopicAlreadyExists"):
        actions.create(topics, topics.clock, Brokers(), ORDERS, PLACED)


def test_brokers_that_do_not_show_the_topic_end_the_probe() -> None:
    topics = MemoryTopics(clock=FakeClock())
    with pytest.raises(Unknown, match="after 60 s, 2 brokers do not yet show"):
        actions.create(topics, topics.clock, Brokers(behind=2), RUNNING, PLACED)
