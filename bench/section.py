"""What one part of `make bench` found: a table for people, rows for programs, and whether its promises hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`rows` say the same as `table`, unrounded, with the unit in each key."""

    name: str
    headers: Sequence[str]
    table: Sequence[Sequence[str]]
    rows: Sequence[Mapping[str, object]]
    kept: bool

    def text(self) -> str:
        """As people read it."""
        return tabulate(self.table, headers=self.headers, disable_numparse=True)


def verdict(promise: str, kept: bool) -> str:
    """A cell: what is promised, and whether it holds; empty where nothing is."""
    return f"{promise}: {'kept' if kept else 'BROKEN'}" if promise else ""
