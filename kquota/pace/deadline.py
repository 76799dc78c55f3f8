"""The smallest throttle under which a move meets its deadline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from kquota.errors import Parameter, Refused
from kquota.measure import ByteRate, highest, total
from kquota.pace.enforcement import AS_SHIPPED, QUICK_SECONDS, Enforcement
from kquota.pace.share import Share, pace, shares
from kquota.pace.work import Work
from kquota.terms import LONG_MAX

_FINE: Final = 10_000


def shortest(waves: int) -> float:
    """Return the shortest time, in seconds, that this number of waves can take one after the other under any throttle.

    The result is a sum, because the times of the waves are also added. A product can differ by a rounding error.
    """
    return sum([QUICK_SECONDS] * waves)


def throttle_within(works: Iterable[Work], seconds: float, enforcement: Enforcement = AS_SHIPPED) -> ByteRate | None:
    """Return the smallest throttle under which `works`, one after the other, are expected to take at most `seconds`.

    The result may be too large by one part in ten thousand. It is 1 B/s without copies, and None if a write rate is
    unknown. Raises Refused if no throttle is enough, because the start and the end of the waves alone take `seconds` or
    longer.
    """
    waves = [work for work in works if work.links]
    if not waves:
        return ByteRate(1)
    each = "" if len(waves) == 1 else f" each of its {len(waves)} waves"
    too_short = Refused(
        f"{seconds:g} s is too short: a move needs {QUICK_SECONDS:g} s to start and end{each}, whatever the "
        "throttle. Give a longer ",
        Parameter("deadline"),
    )
    if seconds <= shortest(len(waves)):
        raise too_short
    sides = [shares(work, ByteRate(1), enforcement) for work in waves]
    if any(side.needed is None for of_wave in sides for side in of_wave):
        return None

    def alone(throttle: int, of_wave: Iterable[Share]) -> float | None:
        """Return the seconds of a wave if its slowest side never waits for another side."""
        slowest = highest(replace(side, throttle=ByteRate(throttle)).seconds for side in of_wave)
        return None if slowest is None else enforcement.seconds(slowest)

    def one_is_late(throttle: int) -> bool:
        least = total(alone(throttle, of_wave) for of_wave in sides)
        return least is None or least > seconds

    def late(throttle: int) -> bool:
        expected = total(pace(work, ByteRate(throttle), enforcement).seconds for work in waves)
        return expected is None or expected > seconds

    # Begin with the slowest side alone, because no move is faster than this, and most moves are not slower.
    least = _smallest(one_is_late, 0)
    if least is not None and late(least):
        least = _smallest(late, least - 1, least, fine=_FINE)
    if least is None:
        raise too_short
    return ByteRate(least)


def _smallest(late: Callable[[int], bool], low: int, most: int = 1, fine: int = sys.maxsize) -> int | None:
    """Return the smallest number above `low` for which `late` is False. The result may be too large by one part in
    `fine`. It is None if `late` is True even for `LONG_MAX`. With larger numbers, `late` must change from True to False
    only once.
    """
    while late(most):
        if most == LONG_MAX:
            return None
        low, most = most, min(most * 2, LONG_MAX)
    while most - low > max(1, most // fine):
        middle = (low + most) // 2
        low, most = (middle, most) if late(middle) else (low, middle)
    return most
