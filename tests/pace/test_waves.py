"""A move in waves takes at least as long as at once, and each wave has a pace of its own."""

from __future__ import annotations

import pytest

from kquota.measure import ByteRate
from kquota.pace.enforcement import START_SECONDS
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
    assert found.seconds < whole.seconds + 2 * START_SECONDS


@pytest.mark.parametrize("writes", [None, 20.0 * MB], ids=["unknown", "never"])
def test_one_wave_without_a_time_leaves_the_sum_without(writes: float | None) -> None:
    whole = pace(part(600), ByteRate(10 * MB))
    found = in_waves([wave(part(300)), wave(part(300, writes))], whole)
    assert found.seconds is None
    assert found.each[0][1].seconds is not None
