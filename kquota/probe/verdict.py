"""Judges whether a client got what its quota allows: per broker, within a tenth."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

from kquota.probe.load import Kind, Load
from kquota.probe.meter import Reading

TOLERANCE: Final = 0.10


class Verdict(enum.Enum):
    """The result of a reading."""

    AS_EXPLAINED = "as explained"
    NOT_REACHED = "as explained, and the quota was not reached"
    MORE = "more than its quota allows"
    LESS = "less than its quota allows, and throttled"
    SLOW = "less than it asked for, and not throttled: the bottleneck is elsewhere"
    THROTTLED = "throttled, although no quota of this kind applies"


GOOD: Final = (Verdict.AS_EXPLAINED, Verdict.NOT_REACHED)
_WORST: Final = (Verdict.MORE, Verdict.THROTTLED, Verdict.LESS, Verdict.SLOW, Verdict.AS_EXPLAINED)


def of(load: Load, reading: Reading) -> Verdict:
    """The verdict on one reading of this load."""
    if load.kind is Kind.REQUESTS:
        return held(reading, load.limit)
    return verdict(reading, asked=load.rate, limit=load.limit)


def verdict(reading: Reading, *, asked: float, limit: float | None) -> Verdict:
    """The verdict on a reading, for a client that asked for `asked` under a quota of `limit`, or None without a quota.

    Both are per second, in the unit of the reading. The client should get the smaller of the two.
    """
    expected = asked if limit is None else min(asked, limit)
    off = difference(reading, expected)
    held = reading.throttles.count > 0
    if abs(off) <= TOLERANCE:
        if limit is None:
            return Verdict.THROTTLED if held else Verdict.AS_EXPLAINED
        return Verdict.AS_EXPLAINED if held or asked > limit else Verdict.NOT_REACHED
    if off > 0:
        # More than was requested is our own doing; only a quota can be exceeded.
        return Verdict.MORE if limit is not None and reading.rate > limit * (1 + TOLERANCE) else Verdict.AS_EXPLAINED
    if not held:
        return Verdict.SLOW
    return Verdict.LESS if limit is not None else Verdict.THROTTLED


def held(reading: Reading, limit: float | None) -> Verdict:
    """The verdict on a load whose cost only the broker knows: it must be throttled if and only if a quota is set."""
    if reading.throttles.count:
        return Verdict.THROTTLED if limit is None else Verdict.AS_EXPLAINED
    return Verdict.AS_EXPLAINED if limit is None else Verdict.NOT_REACHED


def worst(found: Sequence[Verdict]) -> Verdict:
    """The verdict on all brokers; a quota that was reached on one of them was reached."""
    return next((one for one in _WORST if one in found), Verdict.NOT_REACHED)


def difference(reading: Reading, expected: float) -> float:
    """The relative difference between the rate and the expected one: 0.05 is 5 % more."""
    return reading.rate / expected - 1
