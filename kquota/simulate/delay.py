"""How long a broker delays a client: what its quota managers answer to each request."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from kquota.quota_keys import Model
from kquota.simulate.bucket import Bucket
from kquota.simulate.rate import Rate
from kquota.terms import SAMPLES

_PERCENT_OF_A_NANOSECOND: Final = 100 / 1_000_000_000


def delay_ms(observed: float, bound: float, window_ms: int) -> int:
    """X = (O - T) / T x W, in whole ms as Java rounds them; 0 if the bound is kept. Source: KIP-124, QuotaUtils."""
    return rounded((observed - bound) / bound * window_ms) if observed > bound else 0


def rounded(value: float) -> int:
    """Java's Math.round: halves are rounded up."""
    return math.floor(value + 0.5)


def percent(thread_ms: float) -> float:
    """The cost of a request for request_percentage: 100 for each second of one thread, rounded as brokers do."""
    return round(thread_ms * 1_000_000) * _PERCENT_OF_A_NANOSECOND


@dataclass(slots=True)
class Throughput:
    """A quota on bytes or thread time: requests are always accepted, and the client is delayed afterwards.

    `bound` is per second. The delay of a byte rate has no limit, that of a request quota is one sample (`longest_ms`,
    KIP-124).
    """

    bound: float
    longest_ms: int | None = None
    rate: Rate = field(default_factory=Rate)

    def record(self, value: float, now: int) -> int:
        """Count a request at `now`. Returns the ms for which its client is muted (its throttle_time_ms)."""
        self.rate.record(value, now)
        observed, window_ms = self.rate.observed(now)
        delay = delay_ms(observed, self.bound, window_ms)
        return delay if self.longest_ms is None else min(delay, self.longest_ms)

    def forget(self, value: float, now: int) -> None:
        """Undo the last count: a fetch that has to wait gets an empty answer."""
        self.rate.record(-value, now)

    @property
    def most(self) -> int:
        """The most that one fetch returns: the quota of all samples but one, so that an idle client is never delayed.

        At least 1, because a broker returns a larger message anyway.
        """
        return max(1, int(self.bound * (self.rate.samples - 1) * self.rate.sample_ms / 1_000))


def throughput(model: Model, bound: float, samples: int = SAMPLES) -> Throughput:
    """A limit of this model on one broker: RATE for bytes per second, SHARE for the `percent` of each request."""
    rate = Rate(samples=samples)
    return Throughput(bound=bound, longest_ms=rate.sample_ms if model is Model.SHARE else None, rate=rate)


@dataclass(slots=True)
class Mutations:
    """controller_mutation_rate: partitions created and deleted per second (KIP-599)."""

    bucket: Bucket

    def admit(self, mutations: float, now: int) -> int | None:
        """Request a topic that can be rejected: None if accepted, otherwise the ms to wait, and nothing is spent."""
        if self.bucket.tokens(now) < 0:
            return self._wait_ms(now)
        self.bucket.record(mutations, now)
        return None

    def delay(self, mutations: float, now: int) -> int:
        """Accept a request of an old client, which can only be delayed, and return the ms to wait afterwards."""
        self.bucket.record(mutations, now)
        return self._wait_ms(now)

    def _wait_ms(self, now: int) -> int:
        return rounded(self.bucket.debt(now) / self.bucket.rate * 1_000)
