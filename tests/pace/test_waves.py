"""A move in waves takes at least as long as the whole move at once, and each wave has its own pace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.deadline import throttle_within
from kquota.pace.enforcement import QUICK_SECONDS, START_SECONDS, TURNOVER_SECONDS
from kquota.pace.share import pace
from kquota.pace.waves import Wave, in_waves
from kquota.pace.work import Link, Work, work

MB = 10**6


def part(size: int, writes: float | None = 0.0) -> Work:
    return work([Link(leader=1, destination=2, copies=1, bytes=size * MB, writes=writes)], {})


def wave(carried: Work) -> Wave:
    return Wave(first="t-0", last="t-9", partitions=10, work=carried)


def test_each_wave_starts_and_ends() -> None:
    whole = pace(part(900), ByteRate(10 * MB))
    found = in_waves([wave(part(300))] * 3, whole)
    assert found.seconds is not None
    assert whole.seconds is not None
    assert found.seconds == pytest.approx(sum(each.seconds or 0.0 for _, each in found.each))
    assert found.seconds > whole.seconds
    assert found.seconds < whole.seconds + 2 * (START_SECONDS + TURNOVER_SECONDS)


@pytest.mark.parametrize("writes", [None, 20.0 * MB], ids=["unknown", "never"])
def test_one_wave_without_a_time_leaves_the_sum_unknown(writes: float | None) -> None:
    whole = pace(part(600), ByteRate(10 * MB))
    found = in_waves([wave(part(300)), wave(part(300, writes))], whole)
    assert found.seconds is None
    assert found.each[0][1].seconds is not None


FEASIBLE: dict[str, tuple[list[float | None], bool | None, int]] = {
    # The writes to each wave in MB/s, under 10 MB/s: whether all waves finish, and the wave that delays the move.
    "every wave finishes, and at once they would not": ([8.0, 8.0], True, 0),
    "the longest": ([0.0, 8.0, 1.0], True, 1),
    "one never does": ([0.0, 20.0, 1.0], False, 1),
    "one never does, whatever another does": ([None, 20.0], False, 1),
    "one is unknown": ([8.0, None], None, 0),
}


@pytest.mark.parametrize(("writes", "feasible", "worst"), FEASIBLE.values(), ids=FEASIBLE)
def test_the_whole_is_feasible_when_every_wave_is(
    writes: list[float | None], feasible: bool | None, worst: int
) -> None:
    parts = [part(300, None if rate is None else rate * MB) for rate in writes]
    whole = pace(work([link for each in parts for link in each.links], {}), ByteRate(10 * MB))
    found = in_waves(map(wave, parts), whole)
    assert (found.feasible, found.worst) == (feasible, worst)
    assert found.bottleneck == found.each[worst][1].bottleneck
    if feasible:
        assert found.least_throttle == max(rate or 0.0 for rate in writes) * MB
        assert found.under(ByteRate(20 * MB)).seconds == pytest.approx(
            sum(pace(each, ByteRate(20 * MB)).seconds or 0.0 for each in parts)
        )


@given(st.lists(st.integers(0, 900), min_size=1, max_size=4), st.floats(20, 10**5))
def test_a_deadline_applies_to_all_waves_together(sizes: list[int], deadline: float) -> None:
    parts = [part(size, 1.0 * MB) for size in sizes]
    throttle = throttle_within(parts, deadline)
    assert throttle is not None
    found = in_waves(map(wave, parts), pace(part(1), throttle))
    assert found.seconds is not None
    assert found.seconds <= deadline


def test_a_deadline_includes_the_waits_between_brokers_of_a_wave() -> None:
    """Leader 1 is delayed at both destinations, and then serves both at once. No side alone takes as long."""
    flows = [(1, 3, 200), (1, 4, 200), (2, 3, 50), (5, 3, 50), (6, 4, 50), (7, 4, 50)]
    links = [Link(leader=a, destination=b, copies=1, bytes=size * MB, writes=0.0) for a, b, size in flows]
    parts = [work(links, {}), part(100)]
    throttle = throttle_within(parts, 120)
    assert throttle is not None
    found = in_waves(map(wave, parts), pace(parts[0], throttle))
    assert found.seconds is not None
    assert 119.9 < found.seconds <= 120


def test_each_wave_starts_and_ends_whatever_the_throttle() -> None:
    with pytest.raises(Refused, match=r"needs 0\.3 s to start and end each of its 3 waves"):
        throttle_within([part(1)] * 3, 3 * QUICK_SECONDS)


def test_the_least_time_of_many_waves_has_no_rounding_error() -> None:
    """The sum of 36 times 0.3 is 10.800000000000004 on Python 3.11, so no throttle meets 10.8 s."""
    least = sum([QUICK_SECONDS] * 36)
    for deadline in {min(10.8, least), least}:
        with pytest.raises(Refused, match=r"10\.8 s is too short: a move needs 0\.3 s .* its 36 waves"):
            throttle_within([part(1)] * 36, deadline)
