"""A curve of amounts over time, in a limited number of cells for any duration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

MOST: Final = 120
"""The maximum number of cells in a curve. Without it, a trace of a million seconds would need a million cells."""


@dataclass(slots=True, kw_only=True)
class Curve:
    """Sums over cells of `seconds` each. `seconds` is a power of two, and doubles if there would be too many cells.

    Cell n begins at second (`first` + n) x `seconds`, so that any two curves can be added without loss.
    """

    seconds: int = 1
    first: int = 0
    cells: list[int] = field(default_factory=list)

    def add(self, ms: int, amount: int) -> None:
        """Add an amount at `ms`, which must not be before the time of an earlier amount."""
        if not self.cells:
            self.first = ms // 1_000 // self.seconds
        while (cell := ms // 1_000 // self.seconds - self.first) >= MOST:
            self._widen()
        self.cells.extend([0] * (cell + 1 - len(self.cells)))
        self.cells[cell] += amount

    def within(self, cells: int) -> Curve:
        """Return the same curve in at most this many cells."""
        found = Curve(seconds=self.seconds, first=self.first, cells=list(self.cells))
        while len(found.cells) > cells:
            found._widen()
        return found

    def _widen(self) -> None:
        if self.first % 2:
            self.cells.insert(0, 0)
        self.cells = [sum(self.cells[n : n + 2]) for n in range(0, len(self.cells), 2)]
        self.first, self.seconds = self.first // 2, self.seconds * 2


def total(curves: Sequence[Curve]) -> Curve:
    """Return the sum of all curves."""
    filled = [one for one in curves if one.cells]
    found = Curve(seconds=max((one.seconds for one in filled), default=1))
    parts = [(one.first * one.seconds + n * one.seconds, cell) for one in filled for n, cell in enumerate(one.cells)]
    for second, cell in sorted(parts):
        found.add(second * 1_000, cell)
    return found
