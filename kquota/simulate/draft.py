"""The arithmetic that KIP-599's two drafts had for mutations, before Kafka shipped a token bucket instead.

Both keep a rate over samples of one second and spread a burst over them, so that it drains with every sample that ends.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kquota.simulate.delay import delay_ms
from kquota.simulate.rate import must_be_positive, must_be_whole
from kquota.terms import SAMPLE_MS


class Spread(enum.Enum):
    """Where a burst goes: `EVEN`, to all samples alike (100 x 5.6); `FRONT`, up to the quota to each one before,
    and the rest to the last (99 x 5 + 65)."""

    EVEN = "draft-even"
    FRONT = "draft-front"


@dataclass(slots=True)
class Draft:
    """`rate` in mutations per second; a burst of `samples` seconds' worth may be taken at once.

    Raises Invalid for a rate that is not more than 0 and finite, and for less than 1 sample.
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
        """What the samples hold, per second."""
        began = now if self._began is None else self._began
        ended = (now - began) // SAMPLE_MS
        self._kept = (self._kept + [0.0] * min(ended, self.samples))[-self.samples :]
        self._began = began + ended * SAMPLE_MS
        return sum(self._kept) / (self.samples * SAMPLE_MS / 1_000)

    def admit(self, mutations: float, now: int) -> int | None:
        """None when let through, else the ms that its client is told to wait: (R - Q) / Q x S x W."""
        average = self.average(now)
        # The one draft lets through below the quota only, the other at the quota, too.
        if average < self.rate or (average == self.rate and self.spread is Spread.FRONT):
            self._record(mutations)
            return None
        return delay_ms(average, self.rate, self.samples * SAMPLE_MS)

    def delay(self, mutations: float, now: int) -> int:
        """Mutations of an old client: let through whatever they cost, and the ms to wait after."""
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
