"""How a change of many quotas is written: for a person, for a table, for a program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from kquota.cli.contract import printable
from kquota.cli.fields import columns, named
from kquota.cli.tsv import table
from kquota.measure import exact_rate, human_rate
from kquota.quota.difference import Difference
from kquota.quota.document import leaf, written
from kquota.quota.entity import ENTITY_TYPES, Entity
from kquota.quota.limits import plain
from kquota.quota.replacement import Replacement
from kquota.quota.throttled import KEYS, Throttled, Throttling
from kquota.terms import BYTE_RATES

_KINDS: Final = (*ENTITY_TYPES, *KEYS)


def text(changes: Sequence[Replacement | Throttling]) -> str:
    """Each entity with `+` (gets its first limits), `-` (loses all) or `~`, and under it old and new of each key."""
    lines = []
    for change in changes:
        sign = "+" if not change.before else "~" if change.after else "-"
        why = " (not in the document)" if change.pruned else ""
        lines.append(f"{sign} {change.entity}{why}")
        lines += [f"    {key}: {_shown(key, old)} -> {_shown(key, new)}" for key, old, new in change.differing()]
    return "\n".join(lines)


def rows(found: Difference) -> str:
    r"""One row a key; an empty field is absent, `\N` the default entity or a limit that is not set."""
    return table(
        (*(kind[:-1] for kind in _KINDS), "key", "old", "new"),
        (
            (*columns(change.entity, _KINDS), key, _bare(old), _bare(new))
            for change in found.changes
            for key, old, new in change.differing()
        ),
    )


def document(found: Difference) -> str:
    """The change as JSON; a name that is null is the default entity, a limit that is null is not set."""
    return _dumped(
        {
            "change": found.hash,
            "changes": _changes(found.changes),
            "protected": [named(entity) for entity in found.kept],
        }
    )


def outcome(found: Difference, undone: Mapping[Entity | Throttled, str]) -> str:
    """What was changed and what was not, as JSON."""
    return _dumped(
        {
            "change": found.hash,
            "changes": _changes([change for change in found.changes if change.entity not in undone]),
            "undone": [named(entity) | {"why": why} for entity, why in undone.items()],
            "protected": [named(entity) for entity in found.kept],
        }
    )


def sent(changes: Sequence[Replacement | Throttling]) -> str:
    """The very values that a write sends, one line an entity."""
    lines = []
    for change in changes:
        keys = list(change.differing())
        words = [f"set {key}={_bare(new)}" for key, _, new in keys if new is not None]
        words += [f"delete {key}" for key, _, new in keys if new is None]
        lines.append(f"{change.entity}: {'; '.join(words)}")
    return "\n".join(lines)


def _changes(changes: Sequence[Replacement | Throttling]) -> list[dict[str, object]]:
    return [
        named(change.entity)
        | {
            "pruned": change.pruned,
            "limits": {key: {"old": _json(old), "new": _json(new)} for key, old, new in change.differing()},
        }
        for change in changes
    ]


def _shown(key: str, value: float | str | None) -> str:
    """A value for a person: exact, and a rate that has no unit also in round figures."""
    if value is None:
        return "not set"
    if isinstance(value, str) and not value.isdecimal():
        return printable(value)
    exact, rate = (
        (written(key, value), key in BYTE_RATES) if isinstance(value, float) else (exact_rate(int(value)), True)
    )
    return f"{exact} ({human_rate(float(value))})" if rate and exact.isdigit() and float(value) >= 1000 else exact


def _bare(value: float | str | None) -> str | None:
    return plain(value) if isinstance(value, float) else value


def _json(value: float | str | None) -> object:
    return None if value is None else leaf(value)


def _dumped(found: dict[str, object]) -> str:
    return json.dumps({"version": 1} | found, ensure_ascii=False, indent=2)
