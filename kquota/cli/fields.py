"""What several commands write into JSON or a table: one form of each, so that scripts learn it once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kquota.quota.entity import ENTITY_TYPES
from kquota.terms import DEFAULT, Default, TopicPartition

if TYPE_CHECKING:
    from kquota.reassign.throttle import Change, Setting

COLUMNS: Final = tuple(kind[:-1] for kind in ENTITY_TYPES)
"""The columns of `columns`, in its order."""


class Parted(Protocol):
    """A quota entity, or whatever else is told by parts."""

    def parts(self) -> Iterator[tuple[str, str | Default]]:
        """(kind in the plural, name) for each part that is there."""


def named(entity: Parted) -> dict[str, object]:
    """For JSON: null is the default entity, so that no name that a user may have can be taken for it."""
    return {kind[:-1]: None if name is DEFAULT else name for kind, name in entity.parts()}


def columns(entity: Parted | None, kinds: Sequence[str] = ENTITY_TYPES) -> list[str | None]:
    """For a table, a column for each of `kinds`: empty where the entity does not speak of it, null for the default."""
    parts = {} if entity is None else dict(entity.parts())
    return [None if parts.get(kind) is DEFAULT else str(parts.get(kind, "")) for kind in kinds]


def number(value: float | None) -> float | str | None:
    """A value for JSON, which has no word for what other tools may have stored: `nan` and `inf` become text."""
    return value if value is None or math.isfinite(value) else str(value)


def partition(name: TopicPartition) -> dict[str, object]:
    """A partition for JSON."""
    return {"topic": name.topic, "partition": name.partition}


def setting(of: Setting) -> dict[str, str]:
    """Where a throttle's value stands, for JSON: `kind` is topic or broker, `name` the topic or the broker's id."""
    return {"kind": of.kind, "name": of.name, "key": of.key}


def change(made: Change) -> dict[str, str | None]:
    """A value that changed, for JSON; null is unset."""
    return {**setting(made.setting), "from": made.before, "to": made.after}
