"""Tables: aligned columns for people, and the columns of an entity."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from kquota.quota.entity import Entity
from kquota.settings.resource import Resource
from kquota.terms import ENTITY_TYPES, Default

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


def columns(entity: Entity | Resource | None, kinds: Sequence[str] = ENTITY_TYPES) -> list[str | None]:
    """Return the name of the entity for each of `kinds`. The name is empty without an entity or without a part of this
    kind, and None for the default.
    """
    parts = {} if entity is None else dict(entity.parts())
    return [None if isinstance(parts.get(kind), Default) else str(parts.get(kind, "")) for kind in kinds]
