"""The band of an expected time, and the leader whose peak could prevent the end of a move."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED
from kquota.pace.past_moves import ErrorBand
from kquota.pace.share import Pace, pace
from kquota.pace.uncertainty import MODEL, Band, band, stuck_at_peak, together
from kquota.pace.work import Link, work

MB = 10**6


def moving(throttle: float, *, size: int = 800, writes: float | None = 2.0) -> Pace:
    """[1,2] -> [1,3] and [2] -> [3], in megabytes and megabytes per second."""
    rate = None if writes is None else writes * MB
    links = [
        Link(leader=leader, destination=3, copies=4, bytes=size * MB // 2, writes=None if rate is None else rate / 2)
        for leader in (1, 2)
    ]
    return pace(work(links, {1: rate, 2: 0.0}), ByteRate(int(throttle * MB)))


def test_without_percentiles_the_band_is_that_of_the_model() -> None:
    expected = moving(20)
    found = band(expected, {}, {})
    assert expected.seconds is not None
    assert found is not None
    assert (found.low, found.high) == (expected.seconds * (1 - MODEL) - 1.5, expected.seconds * (1 + MODEL) + 1.5)
    assert found.writes is False


def test_traffic_widens_the_band_and_may_leave_it_open() -> None:
    narrow, wide = band(moving(20), {}, {}), band(moving(20), {1: 0.5, 2: 0.5}, {1: 3.0, 2: 3.0})
    assert narrow is not None
    assert wide is not None
    assert narrow.high is not None
    assert wide.high is not None
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.writes is True
    endless = band(moving(20), {1: 0.5, 2: 0.5}, {1: 20.0, 2: 20.0})
    assert endless is not None
    assert endless.high is None


def test_errors_of_past_moves_replace_the_error_of_the_model() -> None:
    expected = moving(20)
    found = band(expected, {}, {}, ErrorBand(low=0.7, high=1.05, moves=7))
    assert expected.seconds is not None
    assert found == Band(
        low=expected.seconds * 0.7 - 1.5, high=expected.seconds * 1.05 + 1.5, writes=False, past_moves=7
    )


@given(st.floats(4.1, 1000), st.integers(0, 10**5))
def test_quota_that_throttled_traffic_leaves_unused_makes_only_the_start_faster(throttle: float, size: int) -> None:
    """Up to one window of each throttle passes at once: 50 MB at 10 MB/s took 0.8 s then, and 5 s otherwise."""
    cold = moving(throttle, size=size)
    warm = pace(cold.work, cold.throttle, replace(AS_SHIPPED, throttled=True))
    before, after = band(cold, {}, {}), band(warm, {}, {})
    assert before is not None
    assert after is not None
    assert (before.unused_quota, after.unused_quota) == (False, True)
    assert after.high == before.high
    assert after.low <= before.low


def test_a_short_move_may_end_at_once_while_throttled_traffic_flows() -> None:
    link = Link(leader=1, destination=3, copies=4, bytes=50 * MB, writes=0.0)
    found = band(pace(work([link], {}), ByteRate(10 * MB), replace(AS_SHIPPED, throttled=True)), {}, {})
    assert found is not None
    assert found.low < 0.8


def test_traffic_of_other_brokers_does_not_affect_the_band() -> None:
    found = band(moving(20), {7: 0.5}, {7: 2.0})
    assert found is not None
    assert found.writes is False


@pytest.mark.parametrize("expected", [moving(2), moving(20, writes=None)], ids=["never ends", "unknown writes"])
def test_without_an_expected_time_there_is_no_band(expected: Pace) -> None:
    assert band(expected, {}, {}) is None


# Spikes: a 95th percentile below the mean, a 5th above it.
@given(st.floats(4.1, 1000), st.floats(0, 2), st.floats(0, 50), st.integers(0, 10**5))
def test_the_band_contains_the_expected_time(throttle: float, calm: float, busy: float, size: int) -> None:
    expected = moving(throttle, size=size)
    found = band(expected, {1: calm, 2: calm}, {1: busy, 2: busy})
    assert found is not None
    assert expected.seconds is not None
    assert 0 <= found.low <= expected.seconds
    assert found.high is None or found.high >= expected.seconds


TOGETHER: dict[str, tuple[list[Band | None], Band | None]] = {
    "none": ([], None),
    "one after the other": (
        [Band(low=1, high=3, writes=False), Band(low=2, high=5, writes=True)],
        Band(low=3, high=8, writes=True),
    ),
    "one is open": (
        [Band(low=1, high=3, writes=True), Band(low=2, high=None, writes=True)],
        Band(low=3, high=None, writes=True),
    ),
    "one is not expected": ([Band(low=1, high=3, writes=False), None], None),
}


@pytest.mark.parametrize(("bands", "band"), TOGETHER.values(), ids=TOGETHER)
def test_the_band_of_waves(bands: list[Band | None], band: Band | None) -> None:
    assert together(bands) == band


PEAKS: dict[str, tuple[dict[int, float], tuple[int, ...]]] = {
    "unknown": ({}, ()),
    "enough is left": ({1: 2.0, 2: 2.0}, ()),
    # Leader 1 carries 2 MB/s of follower traffic and 1 MB/s of writes: seven times that is above 20 MB/s.
    "its own throttle is spent": ({1: 7.0, 2: 7.0}, (1,)),
    # Destination 3 takes 1 MB/s from each leader: 19 more from leader 2 is its maximum.
    "the destination's throttle is spent": ({2: 20.0}, (2,)),
    "another broker": ({9: 100.0}, ()),
}


@pytest.mark.parametrize(("peak", "stuck"), PEAKS.values(), ids=PEAKS)
def test_a_leader_whose_peak_alone_exceeds_the_throttle(peak: dict[int, float], stuck: tuple[int, ...]) -> None:
    assert stuck_at_peak(moving(20), peak) == stuck
