"""The smallest throttle under which a move is done in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED, START_SECONDS, Enforcement
from kquota.pace.share import pace, shares
from kquota.pace.work import Work

_FINE: Final = 10_000


def throttle_within(work: Work, seconds: float, enforcement: Enforcement = AS_SHIPPED) -> ByteRate | None:
    """The smallest throttle under which the expected time of `work` is at most `seconds`, to a ten-thousandth.

    None when a rate is unknown. Raises Refused where no throttle helps: starting and ending alone take as long.
    """
    if not work.links:
        return ByteRate(1)
    if seconds <= START_SECONDS:
        raise Refused(f"a move takes {START_SECONDS:g} s to start and end, whatever its throttle")
    sides = shares(work, ByteRate(1), enforcement)
    if any(side.needed is None for side in sides):
        return None

    def one_is_late(throttle: int) -> bool:
        each = (replace(side, throttle=ByteRate(throttle)).seconds for side in sides)
        return any(time is None or START_SECONDS + time > seconds for time in each)

    def late(throttle: int) -> bool:
        expected = pace(work, ByteRate(throttle), enforcement).seconds
        return expected is None or expected > seconds

    # No move is faster than its slowest side alone; most are not slower, either.
    least = _smallest(one_is_late, 0)
    return ByteRate(_smallest(late, least - 1, least, fine=_FINE) if late(least) else least)


def _smallest(late: Callable[[int], bool], low: int, most: int = 1, fine: int = sys.maxsize) -> int:
    """The smallest number above `low`, which is late, that is not; or one that exceeds it by a `fine`-th part."""
    while late(most):
        low, most = most, most * 2
    while most - low > max(1, most // fine):
        middle = (low + most) // 2
        low, most = (middle, most) if late(middle) else (low, middle)
    return most
