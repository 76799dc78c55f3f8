"""The throttle of a running move over time: it meets a deadline, stays within its bounds, and follows the day."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.measure import ByteRate
from kquota.pace.landing import (
    EVEN_SHARE,
    Copying,
    DayPlan,
    DaySpan,
    Incoming,
    RateBounds,
    day_plan,
    differs,
    even_rates,
    landing_rate,
)
from kquota.terms import BrokerId

MB = 10**6
rates = st.integers(1, 10**10).map(ByteRate)


copyings = st.builds(Copying, left=st.floats(1, 10**15), net=st.floats(-(10**9), 10**10), written=st.floats(0, 10**9))


@given(rates, copyings, st.floats(-100, 10**6), rates, rates)
def test_the_rate_stays_within_its_bounds(
    now: ByteRate, copying: Copying, until: float, one: ByteRate, two: ByteRate
) -> None:
    low, high = min(one, two), max(one, two)
    assert low <= landing_rate(now, copying, until, RateBounds(low=low, high=high)) <= high


@given(rates, copyings, st.floats(1, 10**6))
def test_less_time_needs_at_least_the_same_rate(now: ByteRate, copying: Copying, until: float) -> None:
    bounds = RateBounds()
    assert landing_rate(now, copying, until, bounds) >= landing_rate(now, copying, until * 2, bounds)


@given(
    rate=st.integers(10_000, 10**10).map(ByteRate),
    copies=st.dictionaries(
        st.integers(1, 9).map(BrokerId),
        st.tuples(st.integers(0, 10**15), st.floats(0, 0.9)),
        min_size=1,
    ),
)
def test_brokers_finish_together(rate: ByteRate, copies: dict[BrokerId, tuple[int, float]]) -> None:
    """No broker is slower than the one that needs the longest under `rate`. Faster ones have the lowest rate."""
    incoming = {broker: Incoming(left=left, written=share * rate) for broker, (left, share) in copies.items()}
    found = even_rates(rate, incoming)
    longest = max(one.left / (rate - one.written) for one in incoming.values())
    for broker, one in incoming.items():
        assert rate // EVEN_SHARE <= found[broker] <= rate
        seconds = one.left / (found[broker] - one.written) if one.left else 0.0
        assert seconds <= longest * (1 + 1e-9)
        if one.left and found[broker] > rate // EVEN_SHARE:
            slower = found[broker] - 1 - one.written
            assert slower <= 0 or one.left / slower >= longest * (1 - 1e-9), "1 byte per second less is enough"


def test_copies_that_never_end_are_named() -> None:
    copies = {BrokerId(1): Incoming(left=5, written=1), BrokerId(2): Incoming(left=5, written=20)}
    with pytest.raises(ValueError, match="2"):
        even_rates(ByteRate(20), copies)
    assert even_rates(ByteRate(20), {BrokerId(2): Incoming(left=0, written=20)}) == {2: 20}


@given(
    st.integers(100, 100_000).map(lambda size: size * MB),
    st.floats(120, 7_200),
    st.floats(0.2, 5),
    st.floats(0, 5),
    st.floats(0.3, 1),
)
def test_a_move_lands_within_10_percent_of_its_deadline(
    size: int, deadline: float, first: float, written: float, usable: float
) -> None:
    """The share `usable` of a throttle flows, and producers write to the copies all the time.

    The throughput of a change is visible after 15 s, as in `move adjust`.
    """
    writes = written * size / deadline
    rate = ByteRate(max(1, int((first * size / deadline + writes) / usable)))
    left, now = float(size), 0.0
    while left > 0 and now < 2 * deadline:
        copying = Copying(left=left, net=rate * usable - writes, written=writes)
        if differs(wanted := landing_rate(rate, copying, deadline - now, RateBounds()), rate):
            rate = wanted
        step = min(15.0, left / (rate * usable - writes)) if rate * usable > writes else 15.0
        left, now = left - step * (rate * usable - writes), now + step
        if left < 1:
            break
    assert now == pytest.approx(deadline, rel=0.1)


COPYING = Copying(left=100.0, net=5.0, written=0.0)


def test_after_the_deadline_the_rate_is_the_highest() -> None:
    assert landing_rate(ByteRate(5), COPYING, -1.0, RateBounds(high=ByteRate(9))) == 9
    assert landing_rate(ByteRate(5), COPYING, -1.0, RateBounds()) == 5


NIGHT = DayPlan(spans=(DaySpan(start=time(22), end=time(6), rate=ByteRate(200 * MB)),), otherwise=ByteRate(40 * MB))
MOMENTS = {time(21, 59): 40, time(22): 200, time(0): 200, time(5, 59): 200, time(6): 40, time(12): 40}


@pytest.mark.parametrize(("at", "rate"), MOMENTS.items(), ids=map(str, MOMENTS))
def test_a_span_may_contain_midnight(at: time, rate: int) -> None:
    assert day_plan("22:00-06:00=200MB/s,else=40MB/s", "--between") == NIGHT
    assert NIGHT.at(at) == rate * MB


WRONG = {
    "no else": ("22:00-06:00=200MB/s", "a time span and `else` are needed"),
    "only else": ("else=40MB/s", "a time span and `else` are needed"),
    "two of else": ("22:00-06:00=1MB/s,else=1MB/s,else=2MB/s", "`else` is given twice"),
    "no rate": ("22:00-06:00,else=40MB/s", "the rate is missing"),
    "no span": ("night=200MB/s,else=40MB/s", "not a valid time span"),
    "hour 25": ("25:00-06:00=200MB/s,else=40MB/s", "not a valid time of day"),
    "ends at 25": ("22:00-25:00=200MB/s,else=40MB/s", "not a valid time of day"),
    "empty span": ("22:00-22:00=200MB/s,else=40MB/s", "must start and end at different times of day"),
}


@pytest.mark.parametrize(("text", "why"), WRONG.values(), ids=WRONG)
def test_invalid_spans(text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        day_plan(text, "--between")
