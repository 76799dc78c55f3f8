"""The answers of `quota apply`: what would be sent, or what was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.cli.contract import DONE, FAILED
from kquota.cli.output import Answer, Part, hidden, spread
from kquota.cli.quota.diff.answer import EntityChanged, Reviewed, bare, changed, named, summary, words
from kquota.list_text import few
from kquota.measure import counted
from kquota.quota.difference import Difference
from kquota.quota.entity import Entity
from kquota.settings.resource import Resource

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent(Reviewed):
    """The answer of --dry-run: the values that a write would send, one line per entity."""

    def text(self) -> Iterator[str]:
        for one in self.changes:
            parts = [f"set {name}={bare(limit.new)}" for name, limit in one.limits.items() if limit.new is not None]
            parts += [f"delete {name}" for name, limit in one.limits.items() if limit.new is None]
            yield f"{words(one.entity)}: {'; '.join(parts)}"
        if self.changes:
            yield named(self.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityUndone(Part):
    """An entity that was not changed, or whose result is unknown."""

    entity: Entity | Resource = spread()
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Answer):
    """The changed and the unchanged entities. `confirmed`: the operator already saw the change before confirming it."""

    INDENT = 2

    change: str
    changes: tuple[EntityChanged, ...]
    undone: tuple[EntityUndone, ...]
    protected: tuple[Entity, ...]
    confirmed: bool = hidden(default=False)

    def text(self) -> Iterator[str]:
        if self.confirmed:
            return
        for one in self.changes:
            yield from one.lines()
        if self.changes:
            yield named(self.change)


def unsent(found: Difference) -> Unsent:
    """The answer of `apply` if nothing is sent."""
    return Unsent(change=found.hash, changes=changed(found.changes), protected=found.kept, closing_notes=summary(found))


def applied(found: Difference, undone: Mapping[Entity | Resource, str], *, confirmed: bool) -> Applied:
    """The answer after the change. `undone` has the entities that were not changed, with the reasons."""
    done = [change for change in found.changes if change.entity not in undone]
    note = f"{counted(len(done), 'entity')} changed"
    if undone:
        entities = few([f"{entity} ({why})" for entity, why in undone.items()], _SHOWN)
        note = (
            f"error: {len(undone)} of {counted(len(found.changes), 'entity')} not changed, or with unknown result: "
            f"{entities}. Run the same command again to apply the rest"
        )
    return Applied(
        change=found.hash,
        changes=changed(done),
        undone=tuple(EntityUndone(entity=entity, why=why) for entity, why in undone.items()),
        protected=found.kept,
        confirmed=confirmed,
        closing_notes=(note,),
        code=FAILED if undone else DONE,
    )
