"""The course of a run for its report: expected values, readings during the move, and changes of its throttle.

The run records its course, so every host that shares the record can read it. The course only informs people: no move
and no throttle depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

from kquota.measure import ByteRate
from kquota.settings.resource import Setting
from kquota.terms import BrokerId

MOST_READINGS: Final = 200
"""The maximum number of readings that a run keeps. `thinned` spreads them evenly over the time of the run."""
MOST_CHANGES: Final = 100
"""The maximum number of throttle changes that a run keeps. Older changes are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseReading:
    """One reading: `copied` bytes were on the destinations, and `left` bytes were still to copy. None means unknown."""

    at: datetime
    copied: int | None
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCourse:
    """The copies to one broker: their bytes, and when the last copy ended. None means unknown.

    `expected` is the expected end, in seconds from the start of the run. `ended` is the time of the first reading in
    which all copies to the broker were complete, or None if they are not known to be complete.
    """

    broker: BrokerId
    expected_bytes: int | None = None
    expected: float | None = None
    copied: int | None = None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChange:
    """A change of a run's throttle, in bytes per second. None means no throttle. `by` and `reason` may be unknown.

    `settings` are the rates that changed, or empty if all rates changed.
    """

    at: datetime
    before: ByteRate | None
    rate: ByteRate | None
    settings: tuple[Setting, ...] = ()
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of one run. `expected` is the expected end, in seconds from the start, and `verdict` is the state at
    the end. None means unknown.
    """

    expected: float | None = None
    brokers: tuple[BrokerCourse, ...] = ()
    readings: tuple[CourseReading, ...] = ()
    changes: tuple[RateChange, ...] = ()
    verdict: str | None = None

    def __bool__(self) -> bool:
        """True if anything is recorded."""
        return self != EMPTY

    @property
    def copied(self) -> int | None:
        """The bytes on the destinations in the last reading with known bytes, or None if no reading has them."""
        return next((one.copied for one in reversed(self.readings) if one.copied is not None), None)

    @property
    def expected_bytes(self) -> int | None:
        """The expected bytes of all brokers, or None if there are no brokers or the bytes of one are unknown."""
        found = [one.expected_bytes for one in self.brokers]
        known = [size for size in found if size is not None]
        return sum(known) if known and len(known) == len(found) else None

    def changed(self, change: RateChange) -> Course:
        """Return the course with one more change of the throttle. A change that keeps the rate is not added.

        Only the last `MOST_CHANGES` changes are kept.
        """
        if change.before == change.rate:
            return self
        return replace(self, changes=(*self.changes, change)[-MOST_CHANGES:])

    def read(self, readings: Iterable[CourseReading], brokers: Iterable[BrokerCourse]) -> Course:
        """Return the course after more readings. `brokers` has the copies in the last reading, without expected values.

        Readings that are not newer than the last known reading are ignored.
        """
        found = list(self.readings)
        for reading in readings:
            if not found or reading.at > found[-1].at:
                found.append(reading)
        known = {one.broker: one for one in self.brokers}
        for now in brokers:
            old = known.get(now.broker, now)
            known[now.broker] = replace(
                old,
                copied=old.copied if now.copied is None else now.copied,
                ended=now.ended if now.ended is None or old.ended is None else min(old.ended, now.ended),
            )
        return replace(self, readings=thinned(found), brokers=tuple(known[b] for b in sorted(known)))


EMPTY: Final = Course()


def thinned(readings: Sequence[CourseReading]) -> tuple[CourseReading, ...]:
    """Return at most `MOST_READINGS` of these readings (oldest first), always with the first and the last reading.

    If there are more than `MOST_READINGS` / 2 readings, kept readings are at least 1 / (`MOST_READINGS` - 2) of the
    whole time apart. Only the last reading can be closer.
    """
    if len(readings) <= MOST_READINGS // 2:
        return tuple(readings)
    step = (readings[-1].at - readings[0].at) / (MOST_READINGS - 2)
    kept = [readings[0]]
    for reading in readings[1:-1]:
        if reading.at - kept[-1].at >= step:
            kept.append(reading)
    return (*kept, readings[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseStep:
    """The bytes per second that arrived between two readings."""

    since: datetime
    until: datetime
    rate: float


def throughput(readings: Sequence[CourseReading]) -> tuple[CourseStep, ...]:
    """Return the throughput between successive readings. Readings without known bytes are skipped.

    Log truncation can make a copy smaller, so a negative difference counts as 0.
    """
    known = [(one.at, one.copied) for one in readings if one.copied is not None]
    return tuple(
        CourseStep(since=since, until=until, rate=max(0, after - before) / (until - since).total_seconds())
        for (since, before), (until, after) in pairwise(known)
        if until > since
    )
