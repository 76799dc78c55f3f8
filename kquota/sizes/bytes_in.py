"""What producers write to the partitions that a broker leads, as far as somebody told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesIn:
    """Bytes per second: the mean and, where it was looked at for long enough, the 5th, 95th and 99th percentile.

    None is "nobody told", never 0.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    peak: float | None = None
