"""The scratch topic of a long measurement: a leader on every broker, replaced every hour, and removed at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import KquotaError, Unknown, Unreachable
from kquota.probe import run, scratch
from kquota.probe.latency import LASTING, PERIOD_SECONDS, LatencyProbe, measuring, spread
from kquota.terms import BrokerId
from tests.mutation.fake import FakeClock
from tests.probe.fake import Controller, CreatedConfigs, MemoryWrites
from tests.reassign.fake import Ticks

BROKERS = (BrokerId(1), BrokerId(2), BrokerId(4))


@dataclass
class House:
    """A login of a cluster in memory. `opened` counts its open clients. `left` has the errors of failed removals."""

    brokers: tuple[BrokerId, ...] = BROKERS
    latency: dict[BrokerId, float] = field(default_factory=dict)
    opened: int = 0
    down: bool = False
    left: list[KquotaError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.topics = Controller(clock=FakeClock())
        self.clock = Ticks(self.topics.clock.sleep)

    @property
    def names(self) -> list[str]:
        return [topic.name for topic in self.topics.topics(None)]

    @contextmanager
    def stage(self) -> Iterator[Any]:
        if self.down:
            raise Unreachable("no broker answers")
        configs = CreatedConfigs(self.topics)
        yield SimpleNamespace(topics=self.topics, configs=configs, sight=self.topics, brokers=self.brokers)

    @contextmanager
    def small_writes(self, topic: str, partitions: int) -> Iterator[MemoryWrites]:
        assert len(self.topics.topics([topic])[0].partitions) == partitions
        self.opened += 1
        yield MemoryWrites(
            topics=self.topics, topic=topic, latency=lambda b: self.latency.get(b, 0.004), sleep=self.clock.sleep
        )
        self.opened -= 1

    @contextmanager
    def probe(self) -> Iterator[LatencyProbe]:
        with measuring(self, self.clock, lambda: None, self.left.append) as found:  # type: ignore[arg-type]
            yield found


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(run, "_ON_ITS_WAY", 0.0)
    return House()


@given(st.lists(st.integers(0, 99).map(BrokerId), min_size=1, max_size=9, unique=True))
def test_every_broker_leads_one_partition_and_follows_as_often_as_the_others(brokers: Sequence[BrokerId]) -> None:
    placed = spread(brokers)
    assert [replicas[0] for replicas in placed.values()] == list(brokers)
    assert all(len(set(replicas)) == min(3, len(brokers)) for replicas in placed.values())
    counts = {sum(broker in replicas for replicas in placed.values()) for broker in brokers}
    assert counts == {min(3, len(brokers))}


def test_the_topic_exists_only_during_the_measurement(house: House) -> None:
    with house.probe() as probe:
        (name,) = house.names
        assert scratch.ours(name, house.topics.configs[name])
        probe.wait(5.0)
        house.latency[BROKERS[2]] = 0.05
        probe.wait(5.0)
        found = probe.latencies()
        assert {broker: max(latencies) for broker, latencies in found.items()} == {1: 0.004, 2: 0.004, 4: 0.05}
        assert all(abs(len(latencies) - 10 / PERIOD_SECONDS) <= 2 for latencies in found.values())
        assert house.clock.slept == pytest.approx(10 + PERIOD_SECONDS)
    assert house.names == []
    assert house.opened == 0


def test_an_interrupted_measurement_removes_its_topic(house: House) -> None:
    with pytest.raises(KeyboardInterrupt), house.probe():
        raise KeyboardInterrupt
    assert (house.names, house.opened) == ([], 0)


def test_a_failed_removal_does_not_replace_an_interrupt(house: House) -> None:
    with pytest.raises(KeyboardInterrupt), house.probe():
        house.down = True
        raise KeyboardInterrupt
    assert [str(error) for error in house.left] == ["no broker answers"]
    house.down = False
    with house.probe():
        house.down = True
    assert [str(error) for error in house.left] == ["no broker answers"] * 2
    with pytest.raises(KeyboardInterrupt), run.removed(house, house.names):  # type: ignore[arg-type]
        raise KeyboardInterrupt
    with pytest.raises(Unreachable), run.removed(house, house.names):  # type: ignore[arg-type]
        pass


def test_a_broker_that_acknowledges_nothing_ends_the_command_without_a_topic(house: House) -> None:
    house.latency[BROKERS[1]] = math.inf
    with pytest.raises(Unknown, match=r"\(broker 2\): no write was acknowledged within"), house.probe():
        pass
    assert (house.names, house.opened) == ([], 0)


def test_the_topic_is_replaced_before_its_time_is_over(house: House) -> None:
    with house.probe() as probe:
        (first,) = house.names
        house.brokers = (*BROKERS, BrokerId(5))
        house.clock.sleep(LASTING.total_seconds())
        probe.latencies()
        (second,) = house.names
        ends = scratch.ends(first)
        assert ends is not None
        assert second != first
        assert house.clock.now() < ends
        assert house.opened == 1
        probe.wait(1.0)
        assert probe.latencies().keys() == {*BROKERS, 5}
    assert house.names == []


def test_a_topic_that_somebody_deleted_is_replaced(house: House) -> None:
    with house.probe() as probe:
        (first,) = house.names
        house.clock.sleep(120)
        del house.topics.held[first]
        probe.latencies()
        (second,) = house.names
        assert second != first


def test_a_deleted_topic_that_cannot_be_replaced_is_tried_again_after_a_minute(house: House) -> None:
    with house.probe() as probe:
        house.clock.sleep(120)
        house.topics.held.clear()
        house.down = True
        for _ in range(3):
            probe.latencies()
        house.down = False
        house.clock.sleep(30)
        probe.latencies()
        assert house.names == []
        house.clock.sleep(30)
        probe.latencies()
        assert len(house.names) == 1


def test_a_topic_that_cannot_be_replaced_stays_in_use(house: House) -> None:
    with house.probe() as probe:
        (first,) = house.names
        house.clock.sleep(LASTING.total_seconds())
        house.down = True
        for _ in range(3):
            probe.wait(5.0)
            assert all(len(found) > 5 for found in probe.latencies().values())
        house.down = False
        house.clock.sleep(60)
        probe.latencies()
        assert first not in house.names
        assert len(house.names) == 1
    assert house.names == []


def test_attempts_that_fail_leave_no_topics(house: House) -> None:
    with house.probe() as probe:
        (first,) = house.names
        house.clock.sleep(LASTING.total_seconds())
        house.latency[BROKERS[1]] = math.inf
        for _ in range(3):
            probe.latencies()
            assert house.names == [first]
            house.clock.sleep(60)
        del house.latency[BROKERS[1]]
        probe.latencies()
        assert (len(house.names), first in house.names, house.opened) == (1, False, 1)
    assert house.names == []
