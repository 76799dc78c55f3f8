"""The delay of a client under each kind of quota, and under the two drafts of KIP-599."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.quota_keys import Model
from kquota.simulate.rate import Rate, must_be_positive, must_be_whole
from kquota.terms import LONG_MAX, SAMPLE_MS, SAMPLES


@dataclass(slots=True)
class Bucket:
    """A token bucket (KIP-599). `rate` tokens are added per second, up to `burst`. The number of tokens can become
    negative.

    A request is accepted while there are 0 or more tokens, whatever it costs. An unused bucket is full. Raises Invalid
    for a rate that is 0, negative or not finite, and for fewer than 1 sample.
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
        """The maximum number of tokens: `rate` x `controller.quota.window.num` x
        `controller.quota.window.size.seconds`.
        """
        return self.samples * (self.sample_ms / 1_000) * self.rate

    def tokens(self, now: int) -> float:
        """Add the tokens that are due at `now` (ms), and return the new number. A negative number is a debt."""
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
        """Return the debt in tokens if their number is negative, otherwise 0."""
        return max(0.0, -self.tokens(now))


_PERCENT_OF_A_NANOSECOND: Final = 100 / 1_000_000_000


def delay_ms(observed: float, bound: float, window_ms: int) -> int:
    """Return the delay X = (O - T) / T x W, in whole ms as Java rounds them. It is 0 if O does not exceed T.

    O is `observed`, T is `bound` and W is `window_ms`. Source: KIP-124, QuotaUtils.
    """
    return rounded((observed - bound) / bound * window_ms) if observed > bound else 0


def rounded(value: float) -> int:
    """Round like Java's Math.round: halves are rounded up, and a larger value than 2^63 - 1 becomes 2^63 - 1."""
    return math.floor(value + 0.5) if value < LONG_MAX else LONG_MAX


def percent(thread_ms: float) -> float:
    """Return the cost of a request for `request_percentage`: 100 for each second of one thread, rounded as brokers
    round it.
    """
    return round(thread_ms * 1_000_000) * _PERCENT_OF_A_NANOSECOND


def throttle_time_ms(request_ms: int, rejected_ms: Sequence[int], waited_ms: int = 0) -> int:
    """Return the throttle time in the response to a mutation: the larger of `request_ms` and min(`rejected_ms`) -
    `waited_ms`, but at least 0.

    `request_ms` is the delay under the request quota. `rejected_ms` has the wait of each rejected topic, and is empty
    if none is rejected. `waited_ms` is the time between the rejection and the response. Source: KIP-599.
    """
    return max(request_ms, min(rejected_ms, default=0) - waited_ms, 0)


def most_thread_ms(bound: float, connections: int, request_ms: float) -> float:
    """Return the most thread time, in ms per second on one broker, that a user gets in the long run: max(quota, C x R).

    `bound` is the `request_percentage`, C is `connections` and R is `request_ms`. The longest delay is one second, so
    each connection can send one request per second. The user exceeds the quota if these requests together need more
    than the quota. Source: KIP-124.
    """
    return max(bound * SAMPLE_MS / 100, connections * request_ms)


@dataclass(slots=True)
class Throughput:
    """A quota on bytes or thread time. Brokers reject no request under this quota, but delay the client afterwards."""

    bound: float
    """The limit, in bytes per second or in percent of one thread."""
    longest_ms: int | None
    """The longest delay. A request quota delays by at most one sample (KIP-124). None means no limit, as for a byte
    rate.
    """
    rate: Rate

    def record(self, value: float, now: int) -> int:
        """Count the cost of a request at `now`. Return how long the broker mutes the client, in ms."""
        self.rate.record(value, now)
        observed, window_ms = self.rate.observed(now)
        delay = delay_ms(observed, self.bound, window_ms)
        return delay if self.longest_ms is None else min(delay, self.longest_ms)

    def forget(self, value: float, now: int) -> None:
        """Undo the last count, because a fetch that has to wait gets an empty answer."""
        self.rate.record(-value, now)

    @property
    def most(self) -> int:
        """The maximum that one fetch returns, in bytes: the quota of all samples except one, so that a client that was
        idle is not delayed.

        It is at least 1, because a broker returns at least one message even if the message is larger.
        """
        return max(1, int(self.bound * (self.rate.samples - 1) * self.rate.sample_ms / 1_000))


def throughput(model: Model, bound: float, samples: int = SAMPLES) -> Throughput:
    """Return the meter of a limit on one broker. With `Model.RATE`, it records bytes. With `Model.SHARE`, it records
    the `percent` of each request.
    """
    rate = Rate(samples=samples)
    return Throughput(bound=bound, longest_ms=rate.sample_ms if model is Model.SHARE else None, rate=rate)


@dataclass(slots=True)
class Mutations:
    """A quota on mutations (`controller_mutation_rate`), which are created and deleted partitions (KIP-599)."""

    bucket: Bucket

    def admit(self, mutations: float, now: int) -> int | None:
        """Request mutations that can be rejected. Return None if they are accepted, otherwise the ms to wait. Rejected
        mutations spend no tokens.
        """
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


class Spread(enum.Enum):
    """The rule by which a draft of KIP-599 spreads a burst over the samples. The examples have a burst of 560, 100
    samples, and a quota of 5.
    """

    EVEN = "draft-even"
    """Give all samples the same part (5.6)."""
    FRONT = "draft-front"
    """Fill each earlier sample up to the quota (5), and give the rest to the last sample (65)."""


@dataclass(slots=True)
class Draft:
    """A draft of KIP-599. `rate` is in mutations per second. A burst of `rate` x `samples` mutations is possible at
    once.

    Raises Invalid for a rate that is 0, negative or not finite, and for fewer than 1 sample.
    """

    spread: Spread
    rate: float
    samples: int
    _kept: list[float] = field(init=False)
    _began: int | None = None

    def __post_init__(self) -> None:
        must_be_positive(self.rate, "rate")
        must_be_whole(self.samples, "samples")
        self._kept = [0.0] * self.samples

    def average(self, now: int) -> float:
        """Return the average of the samples, per second."""
        began = now if self._began is None else self._began
        ended = (now - began) // SAMPLE_MS
        self._kept = (self._kept + [0.0] * min(ended, self.samples))[-self.samples :]
        self._began = began + ended * SAMPLE_MS
        return sum(self._kept) / (self.samples * SAMPLE_MS / 1_000)

    def admit(self, mutations: float, now: int) -> int | None:
        """Return None if the request is accepted, otherwise the ms that the client must wait: (R - Q) / Q x S x W.

        R is the average, Q is the rate, S is the number of samples and W the time of one sample.
        """
        average = self.average(now)
        # `EVEN` accepts requests only below the quota. `FRONT` also accepts requests at the quota.
        if average < self.rate or (average == self.rate and self.spread is Spread.FRONT):
            self._record(mutations)
            return None
        return delay_ms(average, self.rate, self.samples * SAMPLE_MS)

    def delay(self, mutations: float, now: int) -> int:
        """Accept mutations of an old client, whatever they cost, and return the ms to wait afterwards."""
        self.average(now)
        self._record(mutations)
        return delay_ms(self.average(now), self.rate, self.samples * SAMPLE_MS)

    def _record(self, mutations: float) -> None:
        if self.spread is Spread.EVEN:
            self._kept = [value + mutations / self.samples for value in self._kept]
            return
        full = self.rate * SAMPLE_MS / 1_000
        for n, value in enumerate(self._kept[:-1]):
            part = min(mutations, max(0.0, full - value))
            self._kept[n] += part
            mutations -= part
        self._kept[-1] += mutations
