"""The answers of `quota export`, `diff` and `apply`: all quotas, the changes, and the completed changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Answer, JsonObject, Row, each, hidden, key, named
from kquota.cli.table import columns
from kquota.list_text import few
from kquota.measure import counted, exact_rate, human_rate
from kquota.quota.difference import Difference, Throttling
from kquota.quota.document import Document
from kquota.quota.document_text import as_json, leaf, text, unfit, written
from kquota.quota.entity import Entity
from kquota.quota.limits import Replacement, plain
from kquota.quota_keys import QUOTA_KEYS
from kquota.settings.resource import THROTTLE_KEYS, Resource
from kquota.terms import DEFAULT, ENTITY_TYPES

HEADER: Final = """\
# Quotas of a Kafka cluster, for `kquota quota diff` and `kquota quota apply`.
# An entity that is named here has exactly the limits written here. Other entities stay unchanged, unless
# `owns: [patterns]` covers them and --prune is given. Byte rates are per broker and accept units.
"""

LimitValue: TypeAlias = float | str | None
"""A limit, or the text of a replication throttle. None means not set."""

_KINDS: Final = (*ENTITY_TYPES, *THROTTLE_KEYS)
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Answer):
    """The quotas of a cluster in the form that `quota diff` and `quota apply` read."""

    quotas: Document = hidden()

    def text(self) -> Sequence[str]:
        return (HEADER + text(self.quotas)).splitlines()

    def document(self) -> str:
        return as_json(self.quotas)


def _change(one: Replacement | Throttling) -> JsonObject:
    limits = {name: {"old": _number(old), "new": _number(new)} for name, old, new in one.differing()}
    return {**named(one.entity), "pruned": one.pruned, "limits": limits}


def _number(value: LimitValue) -> float | str | None:
    return None if value is None else leaf(value)


def change_lines(one: Replacement | Throttling) -> Iterator[str]:
    """Yield the entity, then the old and the new value of each key.

    The sign is + if the entity gets its first limits, - if it loses all limits, and ~ otherwise.
    """
    sign = "+" if not one.before else "~" if one.after else "-"
    yield f"{sign} {words(one.entity)}{' (not in the document)' if one.pruned else ''}"
    for name, old, new in one.differing():
        yield f"    {name}: {_shown(name, old)} -> {_shown(name, new)}"


def _change_lines(changes: Sequence[Replacement | Throttling], change: str) -> Iterator[str]:
    for one in changes:
        yield from change_lines(one)
    if changes:
        yield hash_line(change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed(Answer):
    """The changes that a document makes."""

    HEADER = (*(kind[:-1] for kind in _KINDS), "key", "old", "new")
    INDENT = 2

    change: str
    """The hash of the changes."""
    changes: Sequence[Replacement | Throttling] = key(form=each(_change))
    protected: tuple[Entity, ...]
    """The entities that `--prune` keeps although `owns:` covers them."""

    def text(self) -> Iterator[str]:
        return _change_lines(self.changes, self.change)

    def rows(self) -> Iterator[Row]:
        for one in self.changes:
            for name, old, new in one.differing():
                yield [*columns(one.entity, _KINDS), name, bare(old), bare(new)]


def reviewed(found: Difference) -> Reviewed:
    """Return the answer of `diff`. The exit code is 8 if something would change, otherwise 0."""
    return Reviewed(
        change=found.hash,
        changes=found.changes,
        protected=found.kept,
        closing_notes=summary(found),
        code=NOT_YET if found.changes else DONE,
    )


def hash_line(change: str) -> str:
    """Return the line from which an operator copies the hash for `--change`."""
    return f"change: {change}"


def summary(found: Difference) -> tuple[str, ...]:
    """Return notes: protected entities that `--prune` keeps although `owns:` covers them, and the number of changes."""
    if not found.changes:
        return (*_kept(found), "nothing to change")
    keys = sum(1 for one in found.changes for _ in one.differing())
    return (*_kept(found), f"{counted(keys, 'limit')} of {counted(len(found.changes), 'entity')} would change")


def _kept(found: Difference) -> tuple[str, ...]:
    protected = counted(len(found.kept), "protected entity")
    return (f"warning: --prune keeps {protected}: {few(found.kept, _SHOWN)}",) if found.kept else ()


def words(entity: Entity | Resource) -> str:
    """Return an entity, broker or topic as text. The name of a default entity is `default`."""
    return " ".join(f"{kind[:-1]} {'default' if name is DEFAULT else repr(name)}" for kind, name in entity.parts())


def _shown(name: str, value: LimitValue) -> str:
    """Format a value exactly. A whole byte rate of 1000 or more without a unit is followed by the rounded rate."""
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


def bare(value: LimitValue) -> str | None:
    """Format a value as it is sent to the cluster. Return None if it is not set."""
    return plain(value) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent(Reviewed):
    """The answer of `apply` if nothing is sent: the values that a write would send, one line per entity."""

    def text(self) -> Iterator[str]:
        for one in self.changes:
            parts = [f"set {name}={bare(new)}" for name, _, new in one.differing() if new is not None]
            parts += [f"delete {name}" for name, _, new in one.differing() if new is None]
            yield f"{words(one.entity)}: {'; '.join(parts)}"
        if self.changes:
            yield hash_line(self.change)


def _undone(reasons: Mapping[Entity | Resource, str]) -> list[JsonObject]:
    return [{**named(entity), "why": why} for entity, why in reasons.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Answer):
    """The changes that `apply` made."""

    INDENT = 2

    change: str
    """The hash of all changes of the document, including those that were not made."""
    changes: Sequence[Replacement | Throttling] = key(form=each(_change))
    """The changes that were made."""
    undone: Mapping[Entity | Resource, str] = key(form=_undone)
    """The reason for each entity that was not changed or may not have been changed."""
    protected: tuple[Entity, ...]
    """The entities that `--prune` keeps although `owns:` covers them."""
    confirmed: bool = hidden()
    """True if the operator already saw the changes at the prompt. The text then does not repeat them."""

    def text(self) -> Iterator[str]:
        return iter(()) if self.confirmed else _change_lines(self.changes, self.change)


def unsent(found: Difference) -> Unsent:
    """Return the answer of `apply` if nothing is sent, because of `--dry-run` or because nothing would change."""
    return Unsent(change=found.hash, changes=found.changes, protected=found.kept, closing_notes=summary(found))


def applied(found: Difference, undone: Mapping[Entity | Resource, str], next_step: str, *, confirmed: bool) -> Applied:
    """Return the answer after the change. `undone` has the reason for each entity that was not changed or may not have
    been changed. The exit code is 1 if there is such an entity, otherwise 0. `next_step` is the sentence about how to
    apply the rest.
    """
    done = [change for change in found.changes if change.entity not in undone]
    note = f"{counted(len(done), 'entity')} changed"
    if undone:
        entities = few([f"{entity} ({why})" for entity, why in undone.items()], _SHOWN)
        note = (
            f"error: {len(undone):,} of {counted(len(found.changes), 'entity')} could not be changed, or the result is "
            f"unknown: {entities}. {next_step}"
        )
    return Applied(
        change=found.hash,
        changes=done,
        undone=undone,
        protected=found.kept,
        confirmed=confirmed,
        closing_notes=(note,) if confirmed else (*_kept(found), note),
        code=FAILED if undone else DONE,
    )


def unfit_notes(document: Document) -> list[str]:
    """Return a warning about each limit of a printed document that `diff` and `apply` refuse, for example NaN or 0."""
    return [
        f"warning: {entity}: {name} is {document.limits[entity][name]!r}, which is not valid in a document. "
        "Correct the value before you apply the document"
        for entity, name in unfit(document.limits)
    ]
