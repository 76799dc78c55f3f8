"""The throttle of a running move over time: it meets a deadline, stays within its bounds, and follows the day."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.measure import ByteRate
from kquota.pace.landing import DayPlan, DaySpan, RateBounds, day_plan, differs, landing_rate

MB = 10**6
rates = st.integers(1, 10**10).map(ByteRate)


@given(rates, st.floats(0, 10**7), st.floats(-100, 10**6), rates, rates)
def test_the_rate_stays_within_its_bounds(
    now: ByteRate, left: float, until: float, one: ByteRate, two: ByteRate
) -> None:
    low, high = min(one, two), max(one, two)
    assert low <= landing_rate(now, left, until, RateBounds(low=low, high=high)) <= high


@given(rates, st.floats(1, 10**6), st.floats(1, 10**6))
def test_less_time_needs_at_least_the_same_rate(now: ByteRate, left: float, until: float) -> None:
    bounds = RateBounds()
    assert landing_rate(now, left, until, bounds) >= landing_rate(now, left, until * 2, bounds)


@given(
    st.integers(100, 100_000).map(lambda size: size * MB),
    st.floats(120, 7_200),
    st.floats(0.2, 5),
    st.floats(0, 0.5),
    st.floats(0.7, 1),
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
        spare = rate * usable - writes
        seconds = left / spare if spare > 0 else 10 * deadline
        if differs(wanted := landing_rate(rate, seconds, deadline - now, RateBounds()), rate):
            rate = wanted
        step = min(15.0, left / (rate * usable - writes)) if rate * usable > writes else 15.0
        left, now = left - step * (rate * usable - writes), now + step
        if left < 1:
            break
    assert now == pytest.approx(deadline, rel=0.1)


def test_after_the_deadline_the_rate_is_the_highest() -> None:
    assert landing_rate(ByteRate(5), 100.0, -1.0, RateBounds(high=ByteRate(9))) == 9
    assert landing_rate(ByteRate(5), 100.0, -1.0, RateBounds()) == 5


NIGHT = DayPlan(spans=(DaySpan(start=time(22), end=time(6), rate=ByteRate(200 * MB)),), otherwise=ByteRate(40 * MB))
MOMENTS = {time(21, 59): 40, time(22): 200, time(0): 200, time(5, 59): 200, time(6): 40, time(12): 40}


@pytest.mark.parametrize(("at", "rate"), MOMENTS.items(), ids=map(str, MOMENTS))
def test_a_span_may_contain_midnight(at: time, rate: int) -> None:
    assert day_plan("22:00-06:00=200MB/s,else=40MB/s", "--between") == NIGHT
    assert NIGHT.at(at) == rate * MB


WRONG = {
    "no else": ("22:00-06:00=200MB/s", "a span and else are needed"),
    "only else": ("else=40MB/s", "a span and else are needed"),
    "two of else": ("22:00-06:00=1MB/s,else=1MB/s,else=2MB/s", "else is given twice"),
    "no rate": ("22:00-06:00,else=40MB/s", "the rate is missing"),
    "no span": ("night=200MB/s,else=40MB/s", "not a span of a day"),
    "hour 25": ("25:00-06:00=200MB/s,else=40MB/s", "not a time of day"),
    "ends at 25": ("22:00-25:00=200MB/s,else=40MB/s", "another end"),
    "empty span": ("22:00-22:00=200MB/s,else=40MB/s", "another end"),
}


@pytest.mark.parametrize(("text", "why"), WRONG.values(), ids=WRONG)
def test_invalid_spans(text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        day_plan(text, "--between")
