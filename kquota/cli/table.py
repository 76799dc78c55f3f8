"""Tables: `aligned` columns for people, and for scripts a header and rows whose fields are separated by tabs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from kquota.quota.entity import Entity
from kquota.settings.resource import Resource
from kquota.terms import ENTITY_TYPES, Default

COLUMNS: Final = tuple(kind[:-1] for kind in ENTITY_TYPES)
"""The columns of the function `columns`, in their order."""
NULL: Final = "\\N"
"""The text for null. No field can be confused with it, because a backslash in a field is doubled."""

_WRITTEN: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def aligned(rows: Sequence[Sequence[object]], heads: Sequence[str], left: Container[int] = ()) -> str:
    """Align rows below their headings, without a final newline. Columns are right-aligned, except those in `left`.

    >>> print(aligned([("a", 1), ("bc", 20)], ("name", "size"), left=[0]))
    name      size
    a            1
    bc          20
    """
    from tabulate import tabulate

    sides = ["left" if column in left else "right" for column in range(len(heads))]
    return str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=sides))


def tab_separated(header: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    r"""Return the document with a final newline. None becomes `\N`, and control characters become Python's escapes.

    >>> tab_separated(["user", "key"], [["a\tb", "k"], [None, "k"]])
    'user\tkey\na\\tb\tk\n\\N\tk\n'
    """
    lines = ["\t".join(header), *("\t".join(map(_field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def columns(entity: Entity | Resource | None, kinds: Sequence[str] = ENTITY_TYPES) -> list[str | None]:
    """Return a column for each of `kinds`: empty if the entity has no such part, null for the default."""
    parts = {} if entity is None else dict(entity.parts())
    return [None if isinstance(parts.get(kind), Default) else str(parts.get(kind, "")) for kind in kinds]


def _field(value: str | None) -> str:
    if value is None:
        return NULL
    escaped = value.translate(_WRITTEN)
    if escaped.isprintable():
        return escaped
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
