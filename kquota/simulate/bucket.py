"""The token bucket of controller mutation quotas as Kafka ships it (KIP-599, TokenBucket)."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.simulate.rate import must_be_positive, must_be_whole
from kquota.terms import SAMPLE_MS, SAMPLES


@dataclass(slots=True)
class Bucket:
    """Tokens are added at `rate` per second up to the `burst`, and can become negative.

    A request is accepted while there are 0 or more, whatever it costs. An unused bucket is full. Raises Invalid for a
    rate that is not more than 0 and finite, and for less than 1 sample.
    """

    rate: float
    samples: int = SAMPLES
    sample_ms: int = SAMPLE_MS
    _tokens: float = 0.0
    _seen: int | None = None

    def __post_init__(self) -> None:
        must_be_positive(self.rate, "rate")
        must_be_whole(self.samples, "samples")

    @property
    def burst(self) -> float:
        """The most tokens: rate x controller.quota.window.num x controller.quota.window.size.seconds."""
        return self.samples * (self.sample_ms / 1_000) * self.rate

    def tokens(self, now: int) -> float:
        """The current tokens; negative means debt."""
        if self._seen is None:
            self._tokens = self.burst
        else:
            self._tokens = min(self.burst, self._tokens + self.rate * ((now - self._seen) / 1_000))
        self._seen = now
        return self._tokens

    def record(self, mutations: float, now: int) -> None:
        """Spend tokens at `now`, one for each partition that is created or deleted."""
        self._tokens = min(self.burst, self.tokens(now) - mutations)

    def debt(self, now: int) -> float:
        """How many tokens are missing until there are 0; 0 if none are."""
        return max(0.0, -self.tokens(now))
