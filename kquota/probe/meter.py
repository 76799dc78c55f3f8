"""What a client got, broker by broker: counted in the steady window alone, once the quota's own windows have filled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleCounts:
    """How often a broker asked this client to wait (throttle_time_ms, KIP-219), and for how long."""

    count: int = 0
    longest_ms: int = 0
    total_ms: int = 0

    @property
    def mean_ms(self) -> float | None:
        """Of one; None where there was none."""
        return self.total_ms / self.count if self.count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one broker let through in `seconds`, in the unit of the load. `broker` None: the controller."""

    broker: BrokerId | None
    amount: float
    seconds: float
    throttles: ThrottleCounts

    @property
    def rate(self) -> float:
        """Per second."""
        return self.amount / self.seconds


@dataclass(slots=True, kw_only=True)
class Meter:
    """Counts from `starts` to `ends`, in seconds of a monotonic clock; what comes before or after is not counted."""

    starts: float
    ends: float
    _amounts: dict[BrokerId, float] = field(default_factory=lambda: defaultdict(float))
    _waits: dict[BrokerId, list[int]] = field(default_factory=lambda: defaultdict(list))

    def got(self, broker: BrokerId, amount: float, at: float) -> None:
        """A broker let so much through."""
        if self.starts <= at < self.ends:
            self._amounts[broker] += amount

    def throttled(self, broker: BrokerId, ms: int, at: float) -> None:
        """A broker asked to wait; 0 is its word that it no longer does."""
        if ms > 0 and self.starts <= at < self.ends:
            self._waits[broker].append(ms)

    def readings(self, brokers: Iterable[BrokerId]) -> tuple[Reading, ...]:
        """One for each broker, in their order; a broker that let nothing through has 0."""
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
    """Of single waits, in ms."""
    found = [ms for ms in waits if ms > 0]
    return ThrottleCounts(count=len(found), longest_ms=max(found, default=0), total_ms=sum(found))
