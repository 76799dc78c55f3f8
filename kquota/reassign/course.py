"""The course of a run for its report: expected values, readings during the move, and changes of its throttle.

The run records its course, so every host that shares the record can read it. The course only informs people: no move
and no throttle depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Final, TypeVar

from kquota.measure import ByteRate, total
from kquota.settings.resource import Setting
from kquota.terms import BrokerId

MOST_READINGS: Final = 200
"""The maximum number of readings that a run keeps."""
MOST_CHANGES: Final = 100
"""The maximum number of throttle changes that a run keeps."""
MOST_NAMED_RATES: Final = 1_000
"""The maximum number of rates that the kept changes name in total, unless the first and the newest change name more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseReading:
    """One reading: `copied` bytes were on the destinations, and `left` bytes were still to copy. None means unknown."""

    at: datetime
    copied: int | None
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerCourse:
    """The copies to one broker: their bytes, and the end of the last copy. None means unknown."""

    broker: BrokerId
    expected_bytes: int | None = None
    expected: float | None = None
    """The expected end, in seconds from the start of the run."""
    copied: int | None = None
    """The copied bytes on the broker, in the last reading that has them."""
    ended: datetime | None = None
    """The time of the first reading in which all copies were complete. None if they are not known to be complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateChange:
    """A change of a run's throttle, in bytes per second. A rate of None means no throttle."""

    at: datetime
    before: ByteRate | None
    rate: ByteRate | None
    settings: tuple[Setting, ...] = ()
    """The rates that changed. Empty if the change applies to all brokers of the run."""
    by: str | None = None
    """The user who made the change, or None if the user is unknown."""
    reason: str | None = None


_Moment = TypeVar("_Moment", CourseReading, RateChange)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of one run. None means unknown. The oldest readings and changes come first."""

    expected: float | None = None
    """The expected end, in seconds from the start of the run."""
    brokers: tuple[BrokerCourse, ...] = ()
    readings: tuple[CourseReading, ...] = ()
    changes: tuple[RateChange, ...] = ()
    changes_dropped: int = 0
    """The number of changes that are not kept."""
    verdict: str | None = None
    """The value of the `Progress` that was found when the run had ended, for example `done`."""

    def __bool__(self) -> bool:
        """Return True if anything is recorded."""
        return self != EMPTY

    @property
    def copied(self) -> int | None:
        """The bytes on the destinations in the last reading with known bytes, or None if no reading has them."""
        return next((one.copied for one in reversed(self.readings) if one.copied is not None), None)

    @property
    def expected_bytes(self) -> int | None:
        """The expected bytes of all brokers, or None if there are no brokers or the bytes of one are unknown."""
        found = [one.expected_bytes for one in self.brokers]
        return total(found) if found else None

    def changed(self, change: RateChange) -> Course:
        """Return the course with one more change of the throttle. A change that keeps the rate is not added.

        At most `MOST_CHANGES` changes are kept, including the first one and the newest `MOST_CHANGES // 2`. If the kept
        changes name more than `MOST_NAMED_RATES` rates, the oldest ones after the first one are also dropped.
        """
        if change.before == change.rate:
            return self
        found = (*self.changes, change)
        kept = list(found)
        if len(found) > MOST_CHANGES:
            newest = MOST_CHANGES // 2
            kept = [*thinned(found[:-newest], MOST_CHANGES - newest), *found[-newest:]]
        while len(kept) > 2 and sum(len(one.settings) for one in kept) > MOST_NAMED_RATES:
            del kept[1]
        return replace(self, changes=tuple(kept), changes_dropped=self.changes_dropped + len(found) - len(kept))

    def read(self, readings: Iterable[CourseReading], brokers: Iterable[BrokerCourse]) -> Course:
        """Return the course after more readings. `brokers` has the copies in the last reading, without expected values.

        Readings that are not newer than the last known reading are ignored. At most `MOST_READINGS` are kept.
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


def thinned(moments: Sequence[_Moment], most: int = MOST_READINGS) -> tuple[_Moment, ...]:
    """Return at most `most` of these readings or changes, spread over the whole time, with the first and the last one.
    `moments` are in the order in which they were added.
    """
    if len(moments) <= most // 2:
        return tuple(moments)
    step = (moments[-1].at - moments[0].at) / (most - 2)
    kept: list[_Moment] = [moments[0]]
    for moment in moments[1:-1]:
        if moment.at - kept[-1].at >= step:
            kept.append(moment)
    kept.append(moments[-1])
    if len(kept) > most:  # times can be equal, or fall if a clock is set back
        del kept[1 : len(kept) - most + 1]
    return tuple(kept)


def throughput(readings: Sequence[CourseReading]) -> dict[datetime, float]:
    """Return the bytes per second that arrived since the previous reading with known bytes, by the time of each
    reading.

    A reading has no throughput if its bytes are unknown, if no earlier reading has known bytes, or if its time is not
    later than that of the previous reading with known bytes. Log truncation can make a copy smaller, so a negative
    difference counts as 0.
    """
    known = [(one.at, one.copied) for one in readings if one.copied is not None]
    return {
        until: max(0, after - before) / (until - since).total_seconds()
        for (since, before), (until, after) in pairwise(known)
        if until > since
    }
