"""The answer of `quota diff`: a change of many quotas, which `quota apply` also shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, Part, Row, hidden, key, spread
from kquota.cli.tsv import columns
from kquota.list_text import few
from kquota.measure import counted, exact_rate, human_rate
from kquota.quota.difference import Difference
from kquota.quota.document import leaf, written
from kquota.quota.entity import Entity
from kquota.quota.limits import plain
from kquota.quota.replacement import Replacement
from kquota.quota.throttling import Throttling
from kquota.quota_keys import QUOTA_KEYS
from kquota.settings.resource import THROTTLE_KEYS, Resource
from kquota.terms import DEFAULT, ENTITY_TYPES

Value: TypeAlias = float | str | None
"""A limit, or the text of a replication throttle; None means not set."""

_KINDS: Final = (*ENTITY_TYPES, *THROTTLE_KEYS)
_SHOWN: Final = 5


def _number(value: Value) -> float | str | None:
    return None if value is None else leaf(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChanged(Part):
    """A value that changes."""

    old: Value = key(form=_number)
    new: Value = key(form=_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChanged(Part):
    """The changes of one entity. `sign` is + if it gets its first limits, - if it loses all, otherwise ~."""

    entity: Entity | Resource = spread()
    pruned: bool
    limits: Mapping[str, LimitChanged]
    sign: str = hidden()

    def lines(self) -> Iterator[str]:
        """The entity, followed by the old and the new value of each key."""
        yield f"{self.sign} {words(self.entity)}{' (not in the document)' if self.pruned else ''}"
        for name, limit in self.limits.items():
            yield f"    {name}: {_shown(name, limit.old)} -> {_shown(name, limit.new)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed(Answer):
    """The changes; `change` is their hash. `protected` are the entities that pruning keeps."""

    HEADER = (*(kind[:-1] for kind in _KINDS), "key", "old", "new")
    INDENT = 2

    change: str
    changes: tuple[EntityChanged, ...]
    protected: tuple[Entity, ...]

    def text(self) -> Iterator[str]:
        for one in self.changes:
            yield from one.lines()
        if self.changes:
            yield named(self.change)

    def rows(self) -> Iterator[Row]:
        for one in self.changes:
            for name, limit in one.limits.items():
                yield [*columns(one.entity, _KINDS), name, bare(limit.old), bare(limit.new)]


def reviewed(found: Difference) -> Reviewed:
    """The answer of `diff`."""
    return Reviewed(
        change=found.hash,
        changes=changed(found.changes),
        protected=found.kept,
        closing_notes=summary(found),
        code=NOT_YET if found.changes else DONE,
    )


def changed(changes: Iterable[Replacement | Throttling]) -> tuple[EntityChanged, ...]:
    """Each entity with its changes."""
    return tuple(
        EntityChanged(
            entity=one.entity,
            pruned=one.pruned,
            limits={name: LimitChanged(old=old, new=new) for name, old, new in one.differing()},
            sign="+" if not one.before else "~" if one.after else "-",
        )
        for one in changes
    )


def named(change: str) -> str:
    """The line with the hash of a change."""
    return f"change: {change}"


def summary(found: Difference) -> tuple[str, ...]:
    """The protected entities that pruning keeps although they are in `owns`, and the number of changes."""
    kept = [f"warning: protected, so not pruned: {few(found.kept, _SHOWN)}"] if found.kept else []
    if not found.changes:
        return (*kept, "nothing to change")
    keys = sum(1 for one in found.changes for _ in one.differing())
    return (*kept, f"{counted(keys, 'limit')} of {counted(len(found.changes), 'entity')} would change")


def words(entity: Entity | Resource) -> str:
    """An entity, broker or topic in words; `default` follows the kind."""
    return " ".join(f"{kind[:-1]} {'default' if name is DEFAULT else repr(name)}" for kind, name in entity.parts())


def _shown(name: str, value: Value) -> str:
    """A value for people: exact, and for a rate without a unit also rounded."""
    if value is None:
        return "not set"
    if isinstance(value, str) and not value.isdecimal():
        return value
    exact, rate = (
        (written(name, value), QUOTA_KEYS[name].in_bytes)
        if isinstance(value, float)
        else (exact_rate(int(value)), True)
    )
    return f"{exact} ({human_rate(float(value))})" if rate and exact.isdigit() and float(value) >= 1000 else exact


def bare(value: Value) -> str | None:
    """A value as it is sent to the cluster."""
    return plain(value) if isinstance(value, float) else value
