"""Tables: aligned columns for people, and the columns of an entity."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from typing import Final, TextIO

from kquota.quota.entity import Entity
from kquota.settings.resource import Resource
from kquota.terms import ENTITY_TYPES, Default

_SHORTEST: Final = 20
"""`fitted` does not make a shortened column narrower than this."""
COLUMNS: Final = tuple(kind[:-1] for kind in ENTITY_TYPES)
"""The headings for the values of `columns`, in the same order."""


def aligned(rows: Sequence[Sequence[object]], heads: Sequence[str], left: Container[int] = ()) -> list[str]:
    """Return lines with aligned rows below their headings. Columns are right-aligned, except those in `left`.

    >>> aligned([("a", 1), ("bc", 20)], ("name", "size"), left=[0])
    ['name      size', 'a            1', 'bc          20']
    """
    from tabulate import tabulate

    sides = ["left" if column in left else "right" for column in range(len(heads))]
    return str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=sides)).splitlines()


def fitted(
    rows: Sequence[Sequence[str]],
    heads: Sequence[str],
    left: Container[int] = (),
    *,
    width: int | None,
    optional: Sequence[str] = (),
) -> list[str]:
    """Return the lines of `aligned`, if possible at most `width` characters wide. Without a width, every line is whole.

    Too wide a table first loses the extra space before its right-aligned columns, then the columns in `optional`, in
    this order. If it then fits, the texts of its first column lose characters in the middle, but keep `_SHORTEST`.

    >>> fitted([("consumer-of-orders-from-eu-west-1", "9 ms")], ("client", "time"), left=[0], width=28)
    ['client                  time', 'consumer-of…-eu-west-1  9 ms']
    """
    lines = aligned(rows, heads, left)
    if width is None or _widest(lines) <= width:
        return lines
    for dropped in range(len(optional) + 1):
        shown = [number for number, head in enumerate(heads) if head not in optional[:dropped]]
        cells = [[line[number] for number in shown] for line in (heads, *rows)]
        sides = {place for place, number in enumerate(shown) if number in left}
        lines = _compact(cells, sides)
        if _widest(lines) <= width:
            return lines
    most = max(len(name) for name, *_ in cells) - (_widest(lines) - width)
    return lines if most < _SHORTEST else _compact([[_shortened(name, most), *rest] for name, *rest in cells], sides)


def terminal_width(stream: TextIO) -> int | None:
    """Return the width in characters, or None if the stream is not a terminal, or if the width is unknown."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _compact(cells: Sequence[Sequence[str]], left: Container[int]) -> list[str]:
    """Return aligned lines with two spaces between columns. tabulate adds two more before a heading."""
    from tabulate import tabulate

    sides = ["left" if column in left else "right" for column in range(len(cells[0]))]
    return str(tabulate(cells, tablefmt="plain", disable_numparse=True, colalign=sides)).splitlines()


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines))


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def columns(entity: Entity | Resource | None, kinds: Sequence[str] = ENTITY_TYPES) -> list[str | None]:
    """Return the name of the entity for each of `kinds`. The name is empty without an entity or without a part of this
    kind, and None for the default.
    """
    parts = {} if entity is None else dict(entity.parts())
    return [None if isinstance(parts.get(kind), Default) else str(parts.get(kind, "")) for kind in kinds]
