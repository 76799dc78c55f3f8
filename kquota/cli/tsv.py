"""Tables for scripts: a header, then one row per line, with fields separated by tabs. No field can break a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kquota.quota.entity import Entity
from kquota.settings.resource import Resource
from kquota.terms import ENTITY_TYPES, Default

COLUMNS: Final = tuple(kind[:-1] for kind in ENTITY_TYPES)
"""The columns of `columns`, in its order."""
NULL: Final = "\\N"
"""The text for null. No field can be confused with it, because a backslash in a field is doubled."""

_WRITTEN: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def table(header: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    r"""The whole document with a final newline; None becomes `\N`, and control characters become Python's escapes.

    >>> table(["user", "key"], [["a\tb", "k"], [None, "k"]])
    'user\tkey\na\\tb\tk\n\\N\tk\n'
    """
    lines = ["\t".join(header), *("\t".join(map(_field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def columns(entity: Entity | Resource | None, kinds: Sequence[str] = ENTITY_TYPES) -> list[str | None]:
    """A column for each of `kinds`: empty if the entity has no such part, null for the default."""
    parts = {} if entity is None else dict(entity.parts())
    return [None if isinstance(parts.get(kind), Default) else str(parts.get(kind, "")) for kind in kinds]


def _field(value: str | None) -> str:
    if value is None:
        return NULL
    escaped = value.translate(_WRITTEN)
    if escaped.isprintable():
        return escaped
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
