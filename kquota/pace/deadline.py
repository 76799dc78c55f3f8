"""The smallest throttle under which a move is done in time."""

from __future__ import annotations

import math

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED, START_SECONDS, Enforcement
from kquota.pace.share import pace
from kquota.pace.work import Work


def throttle_within(work: Work, seconds: float, enforcement: Enforcement = AS_SHIPPED) -> ByteRate | None:
    """The smallest throttle under which the expected time of `work` is at most `seconds`.

    None when a rate is unknown. Raises Refused where no throttle helps: starting and ending alone take as long.
    """
    if not work.links:
        return ByteRate(1)
    if seconds <= START_SECONDS:
        raise Refused(f"a move takes {START_SECONDS:g} s to start and end, whatever its throttle")
    least = pace(work, ByteRate(1), enforcement).least_throttle
    if least is None:
        return None

    def late(throttle: int) -> bool:
        expected = pace(work, ByteRate(throttle), enforcement).seconds
        return expected is None or expected > seconds

    # Nothing is faster than bytes / T, and start-up costs more than what passes at once saves.
    most = max(1, math.ceil(least), math.ceil(max(s.bytes for s in pace(work, ByteRate(1)).shares) / seconds))
    low = most - 1
    while late(most):
        low, most = most, most * 2
    while most - low > 1:
        middle = (low + most) // 2
        low, most = (middle, most) if late(middle) else (low, middle)
    return ByteRate(most)
