"""The results of one part of `make bench`: a table for people, rows for programs, and whether its promises hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The results of one part. `rows` has the values of `table`, not rounded, with the unit in each key."""

    name: str
    headers: Sequence[str]
    table: Sequence[Sequence[str]]
    rows: Sequence[Mapping[str, object]]
    kept: bool

    def text(self) -> str:
        """Return the table as text."""
        return tabulate(self.table, headers=self.headers, disable_numparse=True)


def verdict(promise: str, kept: bool) -> str:
    """Return a cell with the promise and whether it holds. The cell is empty without a promise."""
    return f"{promise}: {'kept' if kept else 'BROKEN'}" if promise else ""
