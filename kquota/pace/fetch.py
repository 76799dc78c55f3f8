"""KIP-73's condition on the size of a fetch (Q&A 5): the first fetches must fit into the quota's window."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.pace.enforcement import AS_SHIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """#brokers x replica.fetch.response.max.bytes / min(T x #brokers, N) < window.

    `throttle` is the leaders' and `network` the NIC's rate, bytes per second; None when nobody told the NIC's.
    """

    brokers: int
    throttle: float
    network: float | None = None
    response_max_bytes: int = AS_SHIPPED.response_bytes
    window_seconds: float = AS_SHIPPED.window

    @property
    def rate(self) -> float:
        """The narrow place, in bytes per second: all leaders' throttles together, or the follower's network."""
        together = self.throttle * self.brokers
        return together if self.network is None else min(together, self.network)

    @property
    def seconds(self) -> float:
        """How long the first fetches take."""
        return self.brokers * self.response_max_bytes / self.rate

    @property
    def holds(self) -> bool:
        """Whether they fit; else the throttle is exceeded before it is noticed, and the copies come in bursts."""
        return self.seconds < self.window_seconds

    @property
    def largest(self) -> float:
        """replica.fetch.response.max.bytes must be below this."""
        return self.window_seconds * self.rate / self.brokers
