"""A rate as brokers measure it: the sum of the last samples divided by the time that they cover (SampledStat, Rate)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kquota.errors import Invalid
from kquota.terms import SAMPLE_MS


def must_be_positive(value: float, what: str) -> None:
    """Raise Invalid for an invalid quota: 0, a negative number, NaN or infinity. The message begins with `what`."""
    if not (value > 0 and math.isfinite(value)):
        raise Invalid(f"{what} {value:g}: must be more than 0 and finite")


def must_be_whole(value: int, what: str) -> None:
    """Raise Invalid for a value less than 1. The message begins with `what`."""
    if value < 1:
        raise Invalid(f"{what} {value}: must be 1 or more")


@dataclass(slots=True)
class _Sample:
    start: int
    last: int
    value: float = 0.0

    def reset(self, now: int) -> None:
        self.start = self.last = now
        self.value = 0.0


@dataclass(slots=True)
class Rate:
    """The recorded amount per second, over the last `samples` samples of `sample_ms` each.

    The first value after the end of a sample begins the next sample, so samples are not aligned to the clock. A sample
    that began before the window and has a value in it still counts, as in Kafka 3.9.1 and 4.3.1. Kafka 2.8.2 drops this
    sample.
    """

    samples: int
    sample_ms: int = SAMPLE_MS
    _kept: list[_Sample] = field(default_factory=list)
    _current: int = 0

    def record(self, value: float, now: int) -> None:
        """Add an amount at `now`."""
        if not self._kept:
            self._kept.append(_Sample(now, now))
        sample = self._kept[self._current]
        if now - sample.start >= self.sample_ms:
            sample = self._next(now)
        sample.value += value
        sample.last = now

    def observed(self, now: int) -> tuple[float, int]:
        """Return the recorded amount per second, and the time in ms that it covers. Drop samples that are too old.

        The time begins with the oldest sample. It is at least as long as all samples except one, so that a first burst
        does not count as a high rate (KIP-13).
        """
        if not self._kept:
            self._kept.append(_Sample(now, now))
        age = self.samples * self.sample_ms
        # Add the samples one by one, as Java does, because `sum` gives a more exact result since Python 3.12.
        total, oldest = 0.0, now
        for sample in self._kept:
            if now - sample.last >= age:
                sample.reset(now)
            total += sample.value
            oldest = min(oldest, sample.start)
        elapsed = now - oldest
        missing = self.samples - 1 - elapsed // self.sample_ms
        window = max(elapsed + max(0, missing) * self.sample_ms, 1)
        return total / (window / 1_000), window

    def _next(self, now: int) -> _Sample:
        self._current = (self._current + 1) % (self.samples + 1)
        if self._current >= len(self._kept):
            self._kept.append(_Sample(now, now))
        else:
            self._kept[self._current].reset(now)
        return self._kept[self._current]
