"""The lag of consumer groups: whatever the rhythm of its commits, only a group that the copies hold up has growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.lag import LONGEST_SECONDS, READ_SECONDS, GroupLags, GroupOffsets, GrowingLag, OffsetsReading
from kquota.terms import TopicPartition

PARTITION = TopicPartition("orders", 0)
rates = st.integers(100, 100_000)
"""Records a second."""
rhythms = st.integers(1, 12)
"""Seconds between two commits."""


class Group:
    """A group that commits every `every` seconds. In each second it reads at most some of the records that wait."""

    def __init__(self, every: int = 5, first: int = 0) -> None:
        self.every, self.first = every, first
        self.now, self.end, self.position, self.committed = 0, 0.0, 0.0, 0

    def reads(self, seconds: int, written: float, most: float) -> Iterator[OffsetsReading]:
        """The readings of some seconds, with these records written and read in each of them."""
        for _ in range(seconds):
            if self.now % int(READ_SECONDS) == 0:
                yield reading(self.now, self.committed, int(self.end))
            self.now += 1
            self.end += written
            self.position = min(self.end, self.position + most)
            if most and (self.now + self.first) % self.every == 0:
                self.committed = int(self.position)


def reading(at: float, committed: int, end: int, group: str = "billing") -> OffsetsReading:
    return OffsetsReading(at=at, groups={group: {PARTITION: GroupOffsets(committed, end)}})


def growths(
    readings: Sequence[OffsetsReading], state: GroupLags | None = None, *, lowest: float = 60
) -> list[tuple[float, GrowingLag]]:
    """The growths, with the times of their readings. Until the time `lowest`, the throttle is the lowest one."""
    state = state or GroupLags()
    found = []
    for one in readings:
        state, growing = state.after(one, lowest=one.at < lowest)
        found += [(one.at, lag) for lag in growing]
    return found


@given(rates, rhythms, rhythms, st.lists(st.floats(0, 5), max_size=9))
def test_a_group_that_reads_everything_has_no_growth(rate: int, every: int, first: int, times: Sequence[float]) -> None:
    """Also if its load changes."""
    group = Group(every, first)
    assert not growths(list(chain.from_iterable(group.reads(60, rate * one, rate * one + 1) for one in (1.0, *times))))


@given(st.floats(0.05, 0.75), rates, rhythms, rhythms)
def test_a_group_that_the_copies_hold_up_has_growth(share: float, rate: int, every: int, first: int) -> None:
    """After a minute it reads this share of the records."""
    group = Group(every, first)
    found = growths([*group.reads(60, rate, 2 * rate), *group.reads(240, rate, share * rate)])
    assert found
    for at, lag in found:
        assert 0 < lag.records <= (1 - share) * rate * (at - 60) + 1


@pytest.mark.parametrize(("share", "seconds"), [(0.0, 60), (0.5, 90), (0.75, 180)])
def test_the_more_it_leaves_unread_the_sooner_this_shows(share: float, seconds: int) -> None:
    group = Group()
    group.committed = 1
    readings = [*group.reads(60, 1_000, 2_000), *group.reads(300, 1_000, share * 1_000 or 10)]
    assert growths(readings)[0][0] <= 60 + seconds


@given(rates, rhythms, rhythms, st.integers(2, 5), st.integers(30, 180), st.floats(1.5, 2.5))
def test_a_burst_that_the_group_reads_later_is_no_growth(
    rate: int, every: int, first: int, times: int, seconds: int, most: float
) -> None:
    """Such a group is slow because of the burst, not because of the copies."""
    group = Group(every, first)
    hour = [
        *group.reads(300, rate, most * rate),
        *group.reads(seconds, times * most * rate, most * rate),
        *group.reads(900, rate, most * rate),
    ]
    assert growths(hour, lowest=200) == []


@given(rates, rhythms, rhythms, st.integers(23, 300), st.floats(1.2, 3))
def test_a_pause_of_a_group_is_no_growth(rate: int, every: int, first: int, pause: int, most: float) -> None:
    """A restart, or a rebalance. Afterwards the group catches up."""
    group = Group(every, first)
    parts = group.reads(200, rate, most * rate), group.reads(pause, rate, 0), group.reads(600, rate, most * rate)
    assert growths([*chain.from_iterable(parts)]) == []


@given(rates, st.integers(30, 90), st.integers(0, 90))
def test_a_group_that_reads_in_batches_has_no_growth(rate: int, period: int, first: int) -> None:
    readings: list[OffsetsReading] = []
    group = Group(5)
    list(group.reads(first, rate, rate))
    while len(readings) < 120:
        readings += [*group.reads(period - 10, rate, 0), *group.reads(10, rate, period * rate)]
    assert growths(readings) == []


def test_a_constant_lag_has_no_growth() -> None:
    assert growths([reading(at, 1_000 * at, 1_000 * at + 500_000) for at in range(0, 300, 10)]) == []


def test_a_group_that_never_kept_up_has_no_growth() -> None:
    group = Group()
    assert growths([*group.reads(600, 1_000, 500)], lowest=0) == []


def test_only_partitions_with_commits_count() -> None:
    """Many groups still have offsets of a topic that they no longer read."""
    left = TopicPartition("left", 0)
    readings = [
        OffsetsReading(at=at, groups={"billing": {PARTITION: GroupOffsets(at, at), left: GroupOffsets(7, 1_000 * at)}})
        for at in range(0, 300, 10)
    ]
    assert growths(readings) == []


@pytest.mark.parametrize("reset", [0, 50_000], ids=["to the start", "back"])
def test_offsets_that_someone_resets_have_no_growth(reset: int) -> None:
    before = [reading(at, 1_000 * at, 1_000 * at) for at in range(0, 100, 10)]
    after = [reading(at, reset + 1_000 * (at - 100), 1_000 * at) for at in range(100, 300, 10)]
    assert growths([*before, *after]) == []


def test_a_reading_without_the_group_changes_nothing() -> None:
    """A broker did not answer in time."""
    group = Group()
    readings = [*group.reads(60, 1_000, 2_000), *group.reads(240, 1_000, 500)]
    found = growths(readings)
    partly = [one if one.at % 40 else OffsetsReading(at=one.at, groups={}) for one in readings]
    assert found
    assert growths(partly)


def test_the_state_of_a_group_that_is_gone_is_dropped() -> None:
    state = GroupLags()
    for one in (*Group().reads(100, 1_000, 1_000), OffsetsReading(at=101 + LONGEST_SECONDS, groups={})):
        state, _ = state.after(one, lowest=True)
    assert state.partitions == {}


def test_the_largest_growth_comes_first() -> None:
    billing, audit = Group(), Group()
    both = [
        OffsetsReading(at=one.at, groups={**one.groups, "audit": other.groups["billing"]})
        for one, other in zip(
            [*billing.reads(60, 1_000, 1_000), *billing.reads(120, 1_000, 500)],
            [*audit.reads(60, 1_000, 1_000), *audit.reads(120, 1_000, 100)],
            strict=True,
        )
    ]
    last = max(at for at, _ in growths(both))
    assert [lag.group for at, lag in growths(both) if at == last] == ["audit", "billing"]


def test_a_group_that_is_too_slow_under_the_lowest_throttle_counts_again_after_it_has_kept_up() -> None:
    group = Group()
    state = GroupLags()

    def after(seconds: int, most: float, *, lowest: bool) -> list[GrowingLag]:
        nonlocal state
        found: list[GrowingLag] = []
        for one in group.reads(seconds, 1_000, most):
            state, growing = state.after(one, lowest=lowest)
            found += growing
        return found

    assert not after(60, 2_000, lowest=True)
    assert len(after(300, 500, lowest=True)) == 1, "it is reported once"
    assert not after(300, 500, lowest=False)
    assert not after(900, 2_000, lowest=False)
    assert after(200, 500, lowest=False)


def test_after_a_decrease_older_commits_do_not_count() -> None:
    group = Group()
    state = GroupLags()
    for one in (*group.reads(60, 1_000, 2_000), *group.reads(100, 1_000, 500)):
        state, _ = state.after(one, lowest=one.at < 60)
    later = [*group.reads(120, 1_000, 500)]
    assert growths(later[:3], state)
    assert not growths(later[:3], state.forgotten())
    assert growths(later, state.forgotten())
