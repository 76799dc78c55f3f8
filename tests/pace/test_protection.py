"""The throttle that follows the clients: bounded, lower after a bad window, higher when calm, stable at a capacity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kquota.measure import ByteRate
from kquota.pace.lag import READ_SECONDS, GroupOffsets, OffsetsReading
from kquota.pace.protection import (
    BASELINE_SECONDS,
    CAUTIOUS_TIMES,
    DECREASE,
    RELIEF_SHARE,
    SMALL_DECREASE,
    ClientWindow,
    Pressure,
    Protection,
    ProtectionStep,
    quantile,
)
from kquota.pace.reported import BrokerTimes, ReportedTime
from kquota.terms import BrokerId, TopicPartition
from tests.profiles import examples

MB = 10**6
BASE = 0.004
SECONDS = 5.0
BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
CALM, SLOW = 1.0, 4.0


def window(times: float, shrunk: int = 0, seconds: float = SECONDS) -> ClientWindow:
    """Every broker answers in this multiple of the usual latency."""
    return ClientWindow(seconds=seconds, latencies=dict.fromkeys(BROKERS, (times * BASE,) * 40), shrunk=shrunk)


def begun(low: int = 10 * MB, high: int = 110 * MB, rate: int | None = None) -> Protection:
    return Protection(low=ByteRate(low), high=ByteRate(high), rate=ByteRate(low if rate is None else rate))


def measured(low: int = 10 * MB, high: int = 110 * MB, rate: int | None = None) -> Protection:
    """A state with a baseline, in which no time was calm yet. The throttle is then set to `rate`."""
    state = begun(low, high)
    while not state.baseline:
        state, _ = state.after(reported(0.004))
    return replace(state, rate=ByteRate(low if rate is None else rate), calm=0.0)


latencies = st.lists(st.one_of(st.floats(0, 60), st.just(math.inf)), max_size=9)
windows = st.builds(
    ClientWindow,
    seconds=st.floats(0.5, 120),
    latencies=st.dictionaries(st.sampled_from(BROKERS), latencies),
    shrunk=st.integers(0, 3),
)
bounds = st.tuples(st.integers(1, 10**10), st.integers(1, 10**10)).map(sorted)


@given(bounds, st.integers(1, 10**11), st.lists(windows, max_size=12), st.data())
def test_the_rate_is_always_within_the_bounds(
    low_high: list[int], rate: int, given: Sequence[ClientWindow], data: st.DataObject
) -> None:
    """Also if others change the throttle in the meantime, or a write fails."""
    low, high = low_high
    state = begun(low, high, rate)
    for one in given:
        after, step = state.after(one)
        assert low <= step.rate <= high
        state = after if data.draw(st.booleans()) else replace(after, rate=ByteRate(data.draw(st.integers(1, 10**11))))


@given(st.lists(windows, max_size=12))
def test_without_a_baseline_the_throttle_is_the_lowest(given: Sequence[ClientWindow]) -> None:
    state = begun(rate=80 * MB)
    for one in given:
        state, step = state.after(one)
        assert step.rate == state.low
        assert step.pressure is Pressure.MEASURING
        if state.baseline:
            break


def test_the_baseline_is_measured_when_the_lowest_throttle_has_its_effect() -> None:
    state, seconds = begun(rate=80 * MB), 0.0
    state, _ = state.after(window(SLOW))
    while not state.baseline:
        state, _ = state.after(window(SLOW if seconds < state.settling else CALM))
        seconds += SECONDS
    assert seconds == state.settling + BASELINE_SECONDS
    assert state.baseline == dict.fromkeys(BROKERS, BASE)


def test_the_time_of_the_baseline_is_calm() -> None:
    """The first increase does not wait again."""
    state = begun()
    while not state.baseline:
        state, _ = state.after(window(CALM))
    _, step = state.after(window(CALM))
    assert step.rate == 2 * state.low


def test_a_broker_that_does_not_answer_has_no_baseline() -> None:
    state = begun()
    mute = window(CALM)
    mute = replace(mute, latencies={**mute.latencies, BROKERS[1]: (math.inf,) * 40})
    for _ in range(40):
        state, step = state.after(mute)
        assert not state.baseline
        assert step.rate == state.low


def reported(seconds: float) -> ClientWindow:
    """A calm window, in which the metrics of broker 1 show this time of produce requests."""
    return replace(window(CALM), reported=(BrokerTimes(broker="1", times={ReportedTime.PRODUCE: seconds}),))


BAD = {
    "slow produce requests in the metrics": reported(1.0),
    "slow": window(SLOW),
    "one slow broker": replace(window(CALM), latencies={**window(CALM).latencies, BROKERS[2]: (SLOW * BASE,) * 40}),
    "failed writes": replace(window(CALM), latencies={**window(CALM).latencies, BROKERS[0]: (math.inf,) * 40}),
    "lost in-sync replicas": window(CALM, shrunk=2),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@given(rate=st.integers(10 * MB, 110 * MB))
def test_a_bad_window_decreases_the_throttle(bad: ClientWindow, rate: int) -> None:
    after, step = measured(rate=rate).after(bad)
    if step.pressure is Pressure.SLOW and step.latency != math.inf:
        after, step = after.after(bad)
    assert step.rate == after.rate == max(10 * MB, int(rate * DECREASE))
    assert step.pressure in (Pressure.SLOW, Pressure.SHRUNK, Pressure.REPORTED)


@given(st.lists(st.integers(0, 3), max_size=9))
def test_single_slow_windows_between_calm_ones_change_nothing(calm: Sequence[int]) -> None:
    """A burst of a client makes one window slow. The throttle still rises."""
    state = measured(rate=50 * MB)
    for count in calm:
        for one in (window(SLOW), *(window(CALM),) * (count + 20)):
            before = state.rate
            state, step = state.after(one)
            assert step.rate >= before


def test_writes_that_are_slow_under_the_lowest_throttle_give_a_new_baseline() -> None:
    """The load of the clients has grown. Without a new baseline, the throttle would never rise again."""
    state = measured()
    for _ in range(6):
        state, step = state.after(window(SLOW))
        assert step.rate == state.low
    assert state.baseline == dict.fromkeys(BROKERS, SLOW * BASE)
    for _ in range(3):
        state, step = state.after(window(SLOW))
    assert step.rate == 2 * state.low


def test_an_operators_limit_needs_no_baseline() -> None:
    """Latencies count against the limit from the first window on, also under the lowest throttle."""
    state = replace(begun(), max_latency=2 * BASE, measures=False)
    rates = []
    for times in (*[CALM] * 3, *[SLOW] * 2, *[SLOW] * 9):
        state, step = state.after(window(times))
        rates.append(step.rate // MB)
        assert (step.pressure, step.limit) == (Pressure.CALM if times == CALM else Pressure.SLOW, 2 * BASE)
    assert rates == [10, 10, 20, 20, *[10] * 10]
    assert not state.baseline


@pytest.mark.parametrize("seconds", [2.0, 5.0, 8.0])
def test_a_load_that_grows_for_good_gives_a_new_baseline(seconds: float) -> None:
    """The decreases to the lowest throttle come first. They must not prevent the new baseline."""
    state = measured(rate=80 * MB)
    for _ in range(int(120 / seconds)):
        state, _ = state.after(window(SLOW, seconds=seconds))
    assert state.baseline == dict.fromkeys(BROKERS, SLOW * BASE)
    assert state.rate > state.low


def test_a_broker_that_left_does_not_keep_the_throttle_down() -> None:
    """The scratch topic is replaced each hour, and then has no partition on a dead broker."""
    state = measured(rate=50 * MB)
    two = replace(window(CALM), latencies=dict.fromkeys(BROKERS[:2], (BASE,) * 40))
    for _ in range(4):
        state, step = state.after(two)
    assert step.rate > 50 * MB


def test_failed_writes_decrease_the_throttle_at_once() -> None:
    after, step = measured(rate=100 * MB).after(BAD["failed writes"])
    assert step.rate == after.rate == 50 * MB


@pytest.mark.parametrize(("times", "share"), [(1.01, 0.85), (1.2, 1 / 1.44), (1.3, 1 / 1.69), (1.5, 0.5), (9.0, 0.5)])
def test_a_latency_just_above_its_limit_decreases_the_throttle_less(times: float, share: float) -> None:
    state = measured(rate=100 * MB)
    high = window(times * state.limit(BROKERS[0]) / BASE)
    state, _ = state.after(high)
    state, step = state.after(high)
    assert step.rate == pytest.approx(share * 100 * MB, rel=1e-6)


def test_a_decrease_has_its_effect_before_the_next_one() -> None:
    state, rates = measured(rate=100 * MB), []
    for _ in range(6):
        state, step = state.after(window(SLOW))
        rates.append(step.rate // MB)
    assert rates == [100, 50, 50, 50, 25, 25]
    assert RELIEF_SHARE * state.settling == 2 * SECONDS


def test_calm_windows_double_the_throttle_until_one_was_too_high() -> None:
    state, rates = measured(), []
    for _ in range(30):
        state, step = state.after(window(CALM))
        rates.append(step.rate // MB)
    assert rates[:11] == [10, 10, 20, 20, 20, 40, 40, 40, 80, 80, 80]
    assert rates[-1] == 110


def test_after_a_decrease_each_increase_is_half_the_way_to_the_throttle_that_was_too_high() -> None:
    state, rates = measured(rate=100 * MB), []
    for one in (window(SLOW), window(SLOW), *(window(CALM),) * 12):
        state, step = state.after(one)
        rates.append(step.rate // MB)
    assert list(dict.fromkeys(rates)) == [100, 50, 70, 80, 85, 90]
    while step.rate == 90 * MB:
        state, step = state.after(window(SLOW))
    assert step.rate == int(90 * MB * SMALL_DECREASE)


def delayed(writes: int, first: int = 4) -> ClientWindow:
    """Two seconds in which the whole machine stops once: these writes to each broker are slow."""
    times = [CALM * BASE] * 20
    times[first : first + writes] = [25 * BASE] * writes
    return ClientWindow(seconds=2.0, latencies=dict.fromkeys(BROKERS, times))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(2, 9)), min_size=1, max_size=20))
def test_single_delays_of_all_writes_do_not_count(delays: Sequence[tuple[int, int]]) -> None:
    """Every machine stops for a moment now and then, also without a move."""
    state = measured(rate=50 * MB)
    for writes, calm in delays:
        for one in (delayed(writes), *(delayed(0),) * calm):
            before = state.rate
            state, step = state.after(one)
            assert step.pressure is Pressure.CALM
            assert step.rate >= before


@pytest.mark.parametrize("writes", [2, 3, 10, 20])
def test_repeated_delays_count(writes: int) -> None:
    """Copies that come in bursts delay a part of the writes in each window."""
    state = measured(rate=50 * MB)
    for _ in range(5):
        state, step = state.after(delayed(writes))
    assert step.rate < 50 * MB


def test_writes_may_be_slow_in_a_twentieth_of_the_time() -> None:
    """Single slow windows that are more frequent than this lower the throttle."""
    state = measured(rate=50 * MB)
    rates = []
    for one in (window(SLOW), *(window(CALM),) * 4) * 3:
        state, step = state.after(one)
        rates.append(step.rate)
    assert any(after < before for before, after in pairwise(rates))


def test_a_burst_while_the_baseline_is_measured_does_not_count() -> None:
    state = begun()
    for number in range(20):
        state, _ = state.after(window(SLOW if number == 4 else CALM))
    assert state.baseline == dict.fromkeys(BROKERS, BASE)


def test_a_decrease_forgets_what_the_higher_throttle_did() -> None:
    state = replace(measured(rate=100 * MB), since_decrease=100.0, debt=9.0)
    state, step = state.after(window(SLOW))
    assert step.rate < 100 * MB
    assert (state.rate, state.since_decrease, state.debt, state.recent) == (step.rate, 0.0, 0.0, ())


def test_later_calm_windows_increase_the_throttle_by_steps() -> None:
    state, rates = replace(measured(), since_decrease=100.0), []
    for _ in range(100):
        state, step = state.after(window(CALM))
        assert step.pressure is Pressure.CALM
        rates.append(step.rate // MB)
    assert rates[:7] == [10, 10, 15, 15, 15, 20, 20]
    assert rates == sorted(rates)
    assert rates[-1] == 110
    assert state.settling == 3 * SECONDS


@given(st.lists(st.sampled_from([CALM, SLOW]), min_size=1, max_size=200))
def test_each_increase_follows_calm_windows(kinds: Sequence[float]) -> None:
    state, calm = measured(), 0.0
    for kind in kinds:
        before = state.rate
        state, step = state.after(window(kind))
        calm += SECONDS if step.pressure in (Pressure.CALM, Pressure.MEASURING) else 0.0
        if step.rate > before:
            assert calm >= state.settling
            doubled = before if math.isinf(state.since_decrease) else 0
            halfway = 0 if state.ceiling is None else (state.ceiling - before) // 2
            assert step.rate - before <= max(state.step, doubled, halfway)
            calm = 0.0


def test_an_unknown_latency_does_not_increase_the_throttle() -> None:
    state = measured(rate=50 * MB)
    partly = replace(window(CALM), latencies={BROKERS[0]: (BASE,) * 40, BROKERS[1]: (BASE,) * 2})
    for _ in range(40):
        state, step = state.after(partly)
        assert (step.rate, step.pressure) == (50 * MB, Pressure.UNKNOWN)


def test_unknown_metrics_do_not_increase_the_throttle() -> None:
    state = measured(rate=50 * MB)
    silent = replace(window(CALM), unreported="http://broker3: no metrics")
    for _ in range(40):
        state, step = state.after(silent)
        assert (step.rate, step.pressure) == (50 * MB, Pressure.UNKNOWN)
        assert step.unreported == "http://broker3: no metrics"


@dataclass(frozen=True)
class Course:
    """The throttle after each window, and whether clients were slow in it."""

    rates: Sequence[int]
    slow: Sequence[bool]

    def between(self, first: int, last: int) -> Course:
        """The course of some minutes."""
        part = slice(first * 12, last * 12)
        return Course(self.rates[part], self.slow[part])


def simulated(
    room: Callable[[float], int],
    minutes: int,
    noise: Sequence[float],
    seconds: float = SECONDS,
    high: int = 210 * MB,
    max_latency: float | None = None,
) -> Course:
    """A cluster with `room` for the copies in each second. Above it, the latency rises steeply."""
    state = replace(begun(high=high), max_latency=max_latency)
    rates: list[int] = []
    slow: list[bool] = []
    while (now := len(rates) * seconds) < minutes * 60:
        excess = max(0.0, state.rate / room(now) - 1)
        times = (1 + 20 * excess) * noise[len(rates) % len(noise)]
        state, step = state.after(ClientWindow(seconds=seconds, latencies={BROKERS[0]: (times * BASE,) * 5}))
        rates.append(int(state.rate))
        slow.append(step.pressure is Pressure.SLOW)
    return Course(rates, slow)


jitters = st.lists(st.floats(0.7, 1.1), min_size=1, max_size=20)


@examples(20)
@given(st.integers(20, 300).map(lambda size: size * MB), jitters)
@example(34 * MB, [1.0] * 9 + [1.0625])
@example(23 * MB, [1.068] + [1.0] * 11)
def test_below_a_capacity_the_throttle_is_stable(room: int, noise: list[float]) -> None:
    """After ten minutes, it wastes less than a fourth, and clients are slow in fewer than 10% of the windows.

    5% of the windows are forgiven. The others follow the increases that were too high.
    """
    course = simulated(lambda _: room, 60, noise).between(10, 60)
    best = min(room, 210 * MB)
    assert best * DECREASE * 0.9 <= min(course.rates)
    assert max(course.rates) <= best * 1.25
    assert sum(course.rates) / len(course.rates) >= best / 1.3
    assert sum(course.slow) / len(course.slow) <= 0.1
    assert sum(one != two for one, two in pairwise(course.rates)) <= len(course.rates) * SECONDS / begun().settling


@examples(20)
@given(st.integers(30, 60).map(lambda size: size * MB), st.integers(120, 200).map(lambda size: size * MB), jitters)
def test_the_throttle_follows_a_load_that_steps_up_and_down(small: int, large: int, noise: list[float]) -> None:
    course = simulated(lambda now: small if now % 3600 >= 1800 else large, 120, noise)
    for hour in (0, 60):
        assert max(course.between(hour, hour + 30).rates) >= large * 0.8
        assert max(course.between(hour + 32, hour + 60).rates) <= 1.1 * small + 10 * MB


@examples(20)
@given(
    st.sampled_from([30, 60]),
    st.integers(25, 60).map(lambda size: size * MB),
    st.integers(60, 110).map(lambda size: size * MB),
    jitters,
)
def test_beside_a_load_that_changes_each_minute_it_is_almost_as_fast_as_the_best_fixed_throttle(
    step: int, small: int, large: int, noise: list[float]
) -> None:
    """The best fixed throttle is the room under the larger load. In the first minutes, kquota looks for it."""
    course = simulated(lambda now: small if now % (2 * step) >= step else large, 20, noise, 2.5, high=110 * MB)
    slow = course.slow[len(course.slow) // 4 :]
    assert sum(slow) / len(slow) <= 0.05
    assert sum(course.rates) / len(course.rates) >= small / 1.3


@dataclass
class Reader:
    """A consumer group that commits every 5 s, and reads 10,000 records a second or this share of them."""

    now: float = 0.0
    position: float = 0.0
    committed: int = 0

    def after(self, seconds: float, share: float) -> OffsetsReading | None:
        """The reading of the group, every `READ_SECONDS`."""
        before, self.now = self.now, self.now + seconds
        self.position = min(10_000 * self.now, self.position + seconds * (10_000 * share if share < 1 else 20_000))
        if self.now // 5 > before // 5:
            self.committed = int(self.position)
        if self.now // READ_SECONDS == before // READ_SECONDS:
            return None
        offsets = {TopicPartition("orders", 0): GroupOffsets(self.committed, int(10_000 * self.now))}
        return OffsetsReading(at=self.now, groups={"billing": offsets})


def beside_a_group(share: Callable[[int], float], minutes: int) -> Sequence[tuple[int, ProtectionStep]]:
    """The throttle after each window, beside a group that reads a share of its records that depends on the throttle."""
    reader, state = Reader(), begun()
    found: list[tuple[int, ProtectionStep]] = []
    while len(found) * SECONDS < minutes * 60:
        state, step = state.after(replace(window(CALM), offsets=reader.after(SECONDS, share(state.rate))))
        found.append((int(state.rate), step))
    return found


@pytest.mark.parametrize("room", [25 * MB, 60 * MB])
def test_a_throttle_that_keeps_a_group_from_its_records_is_lowered(room: int) -> None:
    course = beside_a_group(lambda rate: 1.0 if rate <= room else 0.5 * room / rate, 60)
    lowered = [step for (before, _), (rate, step) in pairwise(course) if rate < before]
    assert lowered
    assert {(step.pressure, step.lag and step.lag.group) for step in lowered} == {(Pressure.LAGGING, "billing")}
    rates = [rate for rate, _ in course[120:]]
    assert sum(rate <= room for rate in rates) >= 0.7 * len(rates)
    assert sum(rates) / len(rates) >= room / 2


def test_a_group_that_is_too_slow_without_copies_does_not_keep_the_throttle_down() -> None:
    """At first, kquota cannot know that the copies do not hold it up."""
    course = beside_a_group(lambda _: 0.5, 30)
    (excused,) = [step for _, step in course if step.excused]
    assert [lag.group for lag in excused.excused] == ["billing"]
    assert {rate for rate, _ in course[120:]} == {110 * MB}


def test_caution_below_the_throttle_that_was_too_high() -> None:
    state = replace(measured(rate=95 * MB), ceiling=ByteRate(100 * MB))
    seconds = 0.0
    while state.rate == 95 * MB:
        state, _ = state.after(window(CALM))
        seconds += SECONDS
    assert seconds == CAUTIOUS_TIMES * state.settling


@given(st.lists(st.floats(0, 10), max_size=100))
def test_the_quantile_is_one_of_the_latencies_and_few_are_unknown(latencies: list[float]) -> None:
    found = quantile(latencies)
    assert (found is None) == (len(latencies) < 5)
    if found is not None:
        assert found in latencies
        assert sum(one <= found for one in latencies) >= 0.95 * len(latencies)
