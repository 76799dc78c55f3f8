"""The verdict of a reading on a quota. A reading covers the steady window."""

from __future__ import annotations

import pytest

from kquota.probe.verdict import GOOD, Meter, Reading, ThrottleCounts, Verdict, held, throttles, verdict, worst
from kquota.terms import BrokerId

ONE, TWO = BrokerId(1), BrokerId(2)


def reading(rate: float, waits: int = 0) -> Reading:
    return Reading(
        broker=ONE,
        amount=rate * 20,
        seconds=20.0,
        throttles=ThrottleCounts(count=waits, longest_ms=5 * waits, total_ms=5 * waits),
    )


CASES: dict[str, tuple[float, int, float, float | None, Verdict]] = {
    # measured rate, throttled, requested rate, limit
    "the quota, and throttled": (1.01e6, 90, 3e6, 1e6, Verdict.AS_EXPLAINED),
    "at the edge": (0.9e6, 90, 3e6, 1e6, Verdict.AS_EXPLAINED),
    "a tenth and more below": (0.89e6, 90, 3e6, 1e6, Verdict.LESS),
    "a tenth and more above": (1.11e6, 90, 3e6, 1e6, Verdict.MORE),
    "all that it asked for, below its quota": (0.5e6, 0, 0.5e6, 1e6, Verdict.NOT_REACHED),
    "all that it asked for, no quota": (3e6, 0, 3e6, None, Verdict.AS_EXPLAINED),
    "a little, below its quota, never throttled": (0.1e6, 0, 0.5e6, 1e6, Verdict.SLOW),
    "a little, no quota": (1e6, 0, 3e6, None, Verdict.SLOW),
    "throttled without a quota": (1e6, 9, 3e6, None, Verdict.THROTTLED),
    "throttled without a quota, and all the same": (3e6, 9, 3e6, None, Verdict.THROTTLED),
    "throttled far below its quota": (0.1e6, 9, 3e6, 1e6, Verdict.LESS),
    "nothing at all": (0.0, 0, 3e6, 1e6, Verdict.SLOW),
    "as if there were no quota": (3e6, 0, 3e6, 1e6, Verdict.MORE),
}


@pytest.mark.parametrize(("got", "waits", "asked", "limit", "expected"), CASES.values(), ids=CASES)
def test_a_rate(got: float, waits: int, asked: float, limit: float | None, expected: Verdict) -> None:
    assert verdict(reading(got, waits), asked=asked, limit=limit) is expected


HELD = {
    "throttled by its quota": (9, 10.0, Verdict.AS_EXPLAINED),
    "never throttled": (0, 10.0, Verdict.NOT_REACHED),
    "no quota": (0, None, Verdict.AS_EXPLAINED),
    "throttled, without a quota": (9, None, Verdict.THROTTLED),
}


@pytest.mark.parametrize(("waits", "limit", "expected"), HELD.values(), ids=HELD)
def test_requests_with_a_cost_that_only_the_broker_knows(waits: int, limit: float | None, expected: Verdict) -> None:
    assert held(reading(1_000, waits), limit) is expected


def test_one_wrong_broker_decides_the_verdict() -> None:
    for one in Verdict:
        assert worst([Verdict.AS_EXPLAINED, one, Verdict.NOT_REACHED]) is (
            one if one not in GOOD else Verdict.AS_EXPLAINED
        )
    assert worst([Verdict.NOT_REACHED, Verdict.NOT_REACHED]) is Verdict.NOT_REACHED


def test_only_the_steady_window_counts_and_0_is_not_a_throttle() -> None:
    meter = Meter(starts=22.0, ends=44.0)
    for at in (21.9, 22.0, 43.9, 44.0):
        meter.got(ONE, 100, at)
        meter.throttled(ONE, 7, at)
        meter.throttled(ONE, 0, at)
    first, second = meter.readings([ONE, TWO])
    assert (first.amount, first.rate, first.throttles) == (200, 200 / 22, throttles([7, 7]))
    assert (first.throttles.mean_ms, second.rate, second.throttles.mean_ms) == (7, 0, None)
