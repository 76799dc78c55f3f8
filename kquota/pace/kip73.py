"""KIP-73's arithmetic of a move. T is the throttle, IN the highest write rate of one broker, N the rate of a NIC, and R
the replication factor.

- The estimate, MoveTime. It ignores the load of individual brokers.
- The window for a throttle, IN < T < N - IN/R (Q&A 4), within the limits of the operator.
- The condition on the size of a fetch (Q&A 5): the first fetches must fit into the quota window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED
from kquota.pace.work import move_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTime:
    """MoveTime = MoveRatio x TotalLogSizePerBroker x #Brokers / (replication-quota - max(BytesInPerSec)).

    Sizes are in bytes, rates in bytes per second. If `max_bytes_in` is None, the rate and the time are unknown. Source:
    KIP-73, Q&A 1. Kafka does not calculate this time.
    """

    partitions_to_be_moved: int
    total_partition_count: int
    total_log_size: int
    brokers: int
    replication_quota: ByteRate
    max_bytes_in: float | None

    @property
    def move_ratio(self) -> float:
        """The share of the cluster's partitions that move."""
        return move_ratio(self.partitions_to_be_moved, self.total_partition_count)

    @property
    def log_size_per_broker(self) -> float:
        """TotalLogSizePerBroker: the mean log size of a broker, in bytes. It is 0 without brokers."""
        return self.total_log_size / self.brokers if self.brokers else 0.0

    @property
    def in_below_throttle(self) -> bool | None:
        """KIP-73's condition IN < T (Q&A 4), or None if IN is unknown. It is an approximation, because IN covers all
        partitions of a broker.

        `Share.finishes` is the condition for the copies themselves.
        """
        return None if self.max_bytes_in is None else self.max_bytes_in < self.replication_quota

    @property
    def seconds(self) -> float | None:
        """MoveTime in seconds. None if `max_bytes_in` is None, or if the formula has no result (`in_below_throttle` is
        False).
        """
        if self.max_bytes_in is None or not self.in_below_throttle:
            return None
        return self.move_ratio * self.total_log_size / (self.replication_quota - self.max_bytes_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A rate in bytes per second (None means unknown) and its reason.

    If `closed` is True, the throttle may equal the rate. If `binds` is False, the bound is only shown.
    """

    rate: float | None
    why: str
    closed: bool = False
    binds: bool = True

    def kept(self, throttle: float, *, above: bool) -> bool | None:
        """Return True if a throttle in bytes per second satisfies the bound. None if the rate of the bound is unknown.

        The bound is a lower bound if `above` is True, and an upper bound otherwise.
        """
        if self.rate is None:
            return None
        room = throttle - self.rate if above else self.rate - throttle
        return room > 0 or (room == 0 and self.closed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The lower bounds (`above`) and the upper bounds (`below`) of a throttle. Only bounds that bind count."""

    above: tuple[Bound, ...]
    below: tuple[Bound, ...]

    @property
    def least(self) -> Bound | None:
        """The highest binding lower bound, or None if none is known.

        Among equal bounds, an open one takes precedence, then the first.
        """
        return max(_known(self.above), key=lambda bound: (bound.rate or 0.0, not bound.closed), default=None)

    @property
    def most(self) -> Bound | None:
        """The lowest binding upper bound, or None if none is known.

        Among equal bounds, an open one takes precedence, then the first.
        """
        return min(_known(self.below), key=lambda bound: (bound.rate or 0.0, bound.closed), default=None)

    @property
    def empty(self) -> bool:
        """True if no throttle satisfies the known bounds."""
        least, most = self.least, self.most
        if most is None or most.rate is None:
            return False
        if least is None or least.rate is None:
            return most.rate <= 0
        return most.rate < least.rate or (most.rate == least.rate and not (most.closed and least.closed))

    def broken(self, throttle: float) -> tuple[Bound, ...]:
        """Return the known and binding bounds that a throttle, in bytes per second, does not satisfy."""
        low = [bound for bound in _known(self.above) if not bound.kept(throttle, above=True)]
        high = [bound for bound in _known(self.below) if not bound.kept(throttle, above=False)]
        return (*low, *high)


def network_bound(network: float, bytes_in: float | None, replication_factor: int) -> float | None:
    """Return N - IN/R, an upper bound of the throttle, or None if IN is unknown. Clients need the rest of the network
    after all leaders have moved.

    All rates are in bytes per second. A negative result means that the network is full even without a move. Source:
    KIP-73, Q&A 4.
    """
    return None if bytes_in is None else network - bytes_in / replication_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """The condition `#brokers x replica.fetch.response.max.bytes / min(T x #brokers, N) < window`.

    `throttle` (T) is the throttle of each leader, and `network` (N) is the rate of the follower's NIC, in bytes per
    second. None means that the rate of the NIC is unknown.
    """

    brokers: int
    throttle: float
    network: float | None = None
    response_max_bytes: int = AS_SHIPPED.response_bytes
    window_seconds: float = AS_SHIPPED.window

    @property
    def rate(self) -> float:
        """The sum of the throttles of all leaders, or the rate of the follower's NIC if it is lower, in bytes per
        second.
        """
        together = self.throttle * self.brokers
        return together if self.network is None else min(together, self.network)

    @property
    def seconds(self) -> float:
        """The time that the first fetches take, in seconds."""
        return self.brokers * self.response_max_bytes / self.rate

    @property
    def holds(self) -> bool:
        """True if the first fetches fit into the window. Otherwise, they exceed the throttle before it takes effect."""
        return self.seconds < self.window_seconds

    @property
    def largest(self) -> float:
        """The exclusive upper limit of `replica.fetch.response.max.bytes`, in bytes."""
        return self.window_seconds * self.rate / self.brokers


def _known(bounds: Iterable[Bound]) -> list[Bound]:
    return [bound for bound in bounds if bound.rate is not None and bound.binds]
