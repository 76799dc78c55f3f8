"""The arithmetic of KIP-599's two drafts for mutations, before Kafka shipped a token bucket instead.

Both measure a rate over samples of one second and spread a burst over them, so that it drains sample by sample.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kquota.simulate.delay import delay_ms
from kquota.simulate.rate import must_be_positive, must_be_whole
from kquota.terms import SAMPLE_MS


class Spread(enum.Enum):
    """How a burst is spread.

    `EVEN`: over all samples alike (100 x 5.6). `FRONT`: each earlier sample is filled up to the quota, and the last one
    gets the rest (99 x 5 + 65).
    """

    EVEN = "draft-even"
    FRONT = "draft-front"


@dataclass(slots=True)
class Draft:
    """`rate` is in mutations per second; a burst of `samples` seconds of it is possible at once.

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
        """The average of the samples, per second."""
        began = now if self._began is None else self._began
        ended = (now - began) // SAMPLE_MS
        self._kept = (self._kept + [0.0] * min(ended, self.samples))[-self.samples :]
        self._began = began + ended * SAMPLE_MS
        return sum(self._kept) / (self.samples * SAMPLE_MS / 1_000)

    def admit(self, mutations: float, now: int) -> int | None:
        """None if accepted, otherwise the ms that the client must wait: (R - Q) / Q x S x W."""
        average = self.average(now)
        # One draft accepts requests only below the quota, the other also at the quota.
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
