"""Times that brokers report: what is high against the baseline, and what is only old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.reported import BrokerTimes, HighTime, ReportedBaseline, ReportedTime, limit_of

PRODUCE, THROTTLED = ReportedTime.PRODUCE, ReportedTime.THROTTLED
times = st.floats(0, 60)


def reading(produce: float, throttled: float = 0.0, broker: str = "1") -> list[BrokerTimes]:
    return [BrokerTimes(broker=broker, times={PRODUCE: produce, THROTTLED: throttled})]


def measured(produce: float = 0.01, throttled: float = 0.0) -> ReportedBaseline:
    return ReportedBaseline().measured(reading(produce, throttled))


@given(st.lists(st.tuples(times, times), min_size=1))
def test_nothing_below_the_highest_time_of_the_baseline_is_high(found: list[tuple[float, float]]) -> None:
    state = ReportedBaseline()
    for produce, throttled in found:
        state = state.measured(reading(produce, throttled))
    for produce, throttled in found:
        state, high = state.after(reading(produce, throttled))
        assert high is None


@given(times, st.floats(0.001, 60))
def test_a_time_above_its_limit_is_high(baseline: float, more: float) -> None:
    seconds = limit_of(baseline) + more
    _, high = measured(produce=baseline).after(reading(seconds))
    assert high == HighTime(broker="1", time=PRODUCE, seconds=seconds, limit=limit_of(baseline))


def test_a_high_percentile_that_does_not_rise_is_an_old_one() -> None:
    state, first = measured().after(reading(0.2))
    state, same = state.after(reading(0.2))
    state, lower = state.after(reading(0.1))
    _, again = state.after(reading(0.15))
    assert [one is not None for one in (first, same, lower, again)] == [True, False, False, True]


def test_a_throttle_time_is_high_as_long_as_it_lasts() -> None:
    state = measured()
    for _ in range(3):
        state, high = state.after(reading(0.01, throttled=0.3))
        assert high == HighTime(broker="1", time=THROTTLED, seconds=0.3, limit=0.005)


def test_a_broker_without_a_baseline_is_compared_with_the_highest_one() -> None:
    state = measured(produce=0.1)
    assert state.after(reading(0.14, broker="2"))[1] is None
    assert state.after(reading(0.16, broker="2"))[1] is not None


def test_without_any_baseline_the_first_reading_is_it() -> None:
    state, high = ReportedBaseline().after(reading(0.1))
    assert high is None
    assert state.after(reading(0.16))[1] is not None


def test_no_reading_changes_nothing() -> None:
    state = measured()
    assert state.after([]) == (state, None)
