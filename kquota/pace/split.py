"""The split of a move into waves. Partitions stay in their order, and each wave is a range of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The number of `waves`, or the maximum bytes of one wave, `in_flight`. Exactly one of the two is set."""

    waves: int | None = None
    in_flight: int | None = None

    def starts(self, copied: Sequence[int]) -> list[int]:
        """Return the index at which each wave begins. `copied` has the bytes to copy for each partition."""
        return _no_more_than(copied, self.in_flight) if self.in_flight is not None else _even(copied, self.waves or 1)


def _no_more_than(copied: Sequence[int], limit: int) -> list[int]:
    """Return the first index of each wave, for as few waves as possible.

    No wave exceeds `limit` bytes, unless it is a single partition.
    """
    starts: list[int] = []
    flying = 0
    for n, size in enumerate(copied):
        if not starts or flying + size > limit:
            starts.append(n)
            flying = 0
        flying += size
    return starts


def _even(copied: Sequence[int], waves: int) -> list[int]:
    """Return the first index of each wave, for at most `waves` waves with about the same bytes. No wave is empty.

    A partition belongs to the wave that contains its middle. If no partition has bytes, waves have about the same
    number of partitions.
    """
    whole = sum(copied)
    if not whole:
        copied, whole = [1] * len(copied), len(copied)
    starts: list[int] = []
    wave = -1
    for n, end in enumerate(accumulate(copied)):
        part = min((2 * end - copied[n]) * waves // (2 * whole), waves - 1)
        if part > wave:
            starts.append(n)
            wave = part
    return starts
