"""The throughput of a client on each broker after the first quota windows, and the verdict on this throughput."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.probe.load import Kind, Load
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleCounts:
    """The waits that a broker requested from this client (`throttle_time_ms`, KIP-219): their number, the longest and
    the total.
    """

    count: int
    longest_ms: int
    total_ms: int

    @property
    def mean_ms(self) -> float | None:
        """The mean wait in ms, or None if there was no wait."""
        return self.total_ms / self.count if self.count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The amount that one broker processed in `seconds`, in the unit of the load.

    `broker` is None for the controller.
    """

    broker: BrokerId | None
    amount: float
    seconds: float
    throttles: ThrottleCounts

    @property
    def rate(self) -> float:
        """The rate per second."""
        return self.amount / self.seconds


@dataclass(slots=True, kw_only=True)
class Meter:
    """A meter that counts from `starts` to `ends`, in seconds of a monotonic clock. It ignores everything before and
    after this time.
    """

    starts: float
    ends: float
    _amounts: dict[BrokerId, float] = field(default_factory=lambda: defaultdict(float))
    _waits: dict[BrokerId, list[int]] = field(default_factory=lambda: defaultdict(list))

    def got(self, broker: BrokerId, amount: float, at: float) -> None:
        """Record that a broker processed this amount at the time `at`."""
        if self.starts <= at < self.ends:
            self._amounts[broker] += amount

    def throttled(self, broker: BrokerId, ms: int, at: float) -> None:
        """Record that a broker asked the client at the time `at` to wait for `ms`. 0 means that the broker no longer
        asks for a wait, and is ignored.
        """
        if ms > 0 and self.starts <= at < self.ends:
            self._waits[broker].append(ms)

    def readings(self, brokers: Iterable[BrokerId]) -> tuple[Reading, ...]:
        """Return one reading for each broker, in the given order. A broker that processed nothing has the amount 0."""
        return tuple(
            Reading(
                broker=broker,
                amount=self._amounts.get(broker, 0.0),
                seconds=self.ends - self.starts,
                throttles=throttles(self._waits.get(broker, ())),
            )
            for broker in brokers
        )


def throttles(waits: Iterable[int]) -> ThrottleCounts:
    """Return the number, the longest and the total of the waits above 0. Waits are in ms."""
    found = [ms for ms in waits if ms > 0]
    return ThrottleCounts(count=len(found), longest_ms=max(found, default=0), total_ms=sum(found))


TOLERANCE: Final = 0.10


class Verdict(enum.Enum):
    """The verdict on a reading: the rate of the client compared with its quota."""

    AS_EXPLAINED = "as explained"
    NOT_REACHED = "as explained, and the quota was not reached"
    MORE = "more than its quota allows"
    LESS = "less than its quota allows, and throttled"
    SLOW = "less than it asked for, and not throttled: the bottleneck is elsewhere"
    THROTTLED = "throttled, although no quota of this kind applies"


GOOD: Final = (Verdict.AS_EXPLAINED, Verdict.NOT_REACHED)
_WORST: Final = (Verdict.MORE, Verdict.THROTTLED, Verdict.LESS, Verdict.SLOW, Verdict.AS_EXPLAINED)


def of(load: Load, reading: Reading) -> Verdict:
    """Return the verdict on one reading of this load."""
    if load.kind is Kind.REQUESTS:
        return held(reading, load.limit)
    return verdict(reading, asked=load.rate, limit=load.limit)


def verdict(reading: Reading, *, asked: float, limit: float | None) -> Verdict:
    """Return the verdict on a reading of a client that requested the rate `asked`. `limit` is its quota, or None
    without one.

    `asked` and `limit` are per second, in the unit of the reading. The client should get the lower of these two rates.
    """
    expected = asked if limit is None else min(asked, limit)
    off = difference(reading, expected)
    throttled = reading.throttles.count > 0
    if abs(off) <= TOLERANCE:
        if limit is None:
            return Verdict.THROTTLED if throttled else Verdict.AS_EXPLAINED
        return Verdict.AS_EXPLAINED if throttled or asked > limit else Verdict.NOT_REACHED
    if off > 0:
        # The probe itself can cause a rate above the requested one, so only a rate above the quota counts.
        return Verdict.MORE if limit is not None and reading.rate > limit * (1 + TOLERANCE) else Verdict.AS_EXPLAINED
    if not throttled:
        return Verdict.SLOW
    return Verdict.LESS if limit is not None else Verdict.THROTTLED


def held(reading: Reading, limit: float | None) -> Verdict:
    """Return the verdict on a load whose cost only the broker knows. Without a quota, throttling is unexpected.

    Under a quota, no throttling means that the quota was not reached.
    """
    if reading.throttles.count:
        return Verdict.THROTTLED if limit is None else Verdict.AS_EXPLAINED
    return Verdict.AS_EXPLAINED if limit is None else Verdict.NOT_REACHED


def worst(found: Sequence[Verdict]) -> Verdict:
    """Return the worst of the verdicts on all brokers. It is `NOT_REACHED` only if the client reached its quota on no
    broker.
    """
    return next((one for one in _WORST if one in found), Verdict.NOT_REACHED)


def difference(reading: Reading, expected: float) -> float:
    """Return the relative difference between the rate of the reading and the expected rate. 0.05 means 5% more than
    expected.
    """
    return reading.rate / expected - 1
