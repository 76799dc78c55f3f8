"""The throughput of a client by broker, counted only in the steady state after the quota windows have filled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleCounts:
    """How often and for how long a broker asked this client to wait (throttle_time_ms, KIP-219)."""

    count: int = 0
    longest_ms: int = 0
    total_ms: int = 0

    @property
    def mean_ms(self) -> float | None:
        """The mean wait; None if there was none."""
        return self.total_ms / self.count if self.count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The load that one broker accepted in `seconds`, in its own unit. `broker` is None for the controller."""

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
    """Counts from `starts` to `ends`, in seconds of a monotonic clock; everything before and after is ignored."""

    starts: float
    ends: float
    _amounts: dict[BrokerId, float] = field(default_factory=lambda: defaultdict(float))
    _waits: dict[BrokerId, list[int]] = field(default_factory=lambda: defaultdict(list))

    def got(self, broker: BrokerId, amount: float, at: float) -> None:
        """Record that a broker accepted this amount."""
        if self.starts <= at < self.ends:
            self._amounts[broker] += amount

    def throttled(self, broker: BrokerId, ms: int, at: float) -> None:
        """Record that a broker asked to wait; 0 means that it no longer does."""
        if ms > 0 and self.starts <= at < self.ends:
            self._waits[broker].append(ms)

    def readings(self, brokers: Iterable[BrokerId]) -> tuple[Reading, ...]:
        """One for each broker, in their order; 0 for a broker that accepted nothing."""
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
    """The counts of these waits, in ms."""
    found = [ms for ms in waits if ms > 0]
    return ThrottleCounts(count=len(found), longest_ms=max(found, default=0), total_ms=sum(found))
