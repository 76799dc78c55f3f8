"""KIP-73's condition on the size of a fetch (Q&A 5): the first fetches must fit into the quota window."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.pace.enforcement import AS_SHIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """The condition #brokers x replica.fetch.response.max.bytes / min(T x #brokers, N) < window.

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
        """The lower of two rates in bytes per second: the throttles of all leaders together, or the follower's NIC."""
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
        """The exclusive upper limit of replica.fetch.response.max.bytes, in bytes."""
        return self.window_seconds * self.rate / self.brokers
