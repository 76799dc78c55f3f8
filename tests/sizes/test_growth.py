"""The growth of a replica between two snapshots. `tests/spark/test_history.py` compares Spark with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.sizes.growth import grown
from kquota.sizes.replica import Replica
from kquota.terms import LONG_MAX, TopicPartition


def reading(size: int, start: int | None = None, end: int | None = None, in_sync: bool | None = True) -> Replica:
    return Replica(
        partition=TopicPartition("t", 0),
        size=size,
        offset_lag=0,
        future=False,
        local_start_offset=start,
        end_offset=end,
        in_sync=in_sync,
    )


CASES = {
    "grows": (reading(100, 0, 10), reading(150, 0, 15), 50),
    "does not grow": (reading(100, 0, 10), reading(100, 0, 10), 0),
    "is cut only": (reading(100, 0, 10), reading(50, 5, 10), 0),
    "grows and is cut: an offset has the mean size of those that are there": (
        reading(100, 0, 10),
        reading(120, 8, 20),
        100,
    ),
    "grows by less than it is compacted": (reading(100, 0, 10), reading(90, 0, 15), 30),
    "grows and all is cut": (reading(100, 0, 10), reading(0, 20, 20), None),
    "created again": (reading(100, 0, 10), reading(10, 0, 1), None),
    "truncated by less than it grew afterwards, which no snapshot shows": (
        reading(100, 0, 10),
        reading(110, 0, 11),
        10,
    ),
    "where it started before is not known": (reading(100, None, 10), reading(120, 2, 12), 24),
    "without a local start now: it may be tiered": (reading(100, 0, 10), reading(120, None, 12), None),
    "without end offsets it grows": (reading(100), reading(130, 0), 30),
    "without end offsets a shrink is retention": (reading(100), reading(70, 0), None),
    "with one end offset only": (reading(100), reading(130, 0, 13), 30),
    "it was not in sync: a copy's traffic": (reading(100, 0, 10, in_sync=False), reading(200, 0, 20), None),
    "unknown whether it was in sync": (reading(100, 0, 10, in_sync=None), reading(200, 0, 20), 100),
    "it was not there": (None, reading(100, 0, 10), None),
    "tiered, local segments are deleted": (reading(80, 92, 100), reading(80, 97, 105), 50),
    "tiered, a follower": (reading(80, 92, 100), reading(80, 97, 105), 50),
    "tiered, nothing is deleted on disk": (reading(80, 92, 100), reading(97, 92, 102), 17),
    "more than a column holds": (reading(1, 0, 0), reading(LONG_MAX, LONG_MAX - 1, LONG_MAX), None),
}


@pytest.mark.parametrize(("before", "now", "bytes_grown"), CASES.values(), ids=CASES.keys())
def test_growth(before: Replica | None, now: Replica, bytes_grown: int | None) -> None:
    assert grown(before, now) == bytes_grown


offsets = st.none() | st.integers(0, LONG_MAX)
readings = st.builds(
    reading, size=st.integers(0, LONG_MAX), start=offsets, end=offsets, in_sync=st.sampled_from([None, True, False])
)


@given(st.none() | readings, readings)
def test_growth_is_never_negative_and_fits_into_its_column(before: Replica | None, now: Replica) -> None:
    found = grown(before, now)
    assert found is None or 0 <= found <= LONG_MAX


@given(readings, st.integers(0, LONG_MAX))
def test_without_deletion_growth_is_the_gain_in_size(before: Replica, more: int) -> None:
    if before.in_sync is not False and None not in (before.end_offset, before.local_start_offset):
        assert before.end_offset is not None
        now = reading(before.size + more, before.local_start_offset, before.end_offset + 1)
        assert grown(before, now) == more
