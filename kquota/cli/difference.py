"""How a change of many quotas is written: for a person, for a table, for a program."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kquota.cli.tsv import table
from kquota.measure import human_rate
from kquota.quota.apply import Outcome
from kquota.quota.difference import Difference
from kquota.quota.document import BYTE_RATES, number, written
from kquota.quota.entity import Entity
from kquota.quota.limits import plain
from kquota.quota.replacement import Replacement
from kquota.terms import DEFAULT


def text(replacements: Sequence[Replacement]) -> str:
    """Each entity with `+` (gets its first limits), `-` (loses all) or `~`, and under it old and new of each key."""
    lines = []
    for replacement in replacements:
        sign = "+" if not replacement.before else "~" if replacement.after else "-"
        why = " (not in the document)" if replacement.pruned else ""
        lines.append(f"{sign} {replacement.entity}{why}")
        lines += [f"    {key}: {_shown(key, old)} -> {_shown(key, new)}" for key, old, new in replacement.differing()]
    return "\n".join(lines)


def rows(found: Difference) -> str:
    r"""One row a key; an empty field is absent, `\N` the default entity or a limit that is not set."""
    return table(
        ("user", "client", "ip", "key", "old", "new"),
        (
            (*_fields(replacement.entity), key, _bare(old), _bare(new))
            for replacement in found.replacements
            for key, old, new in replacement.differing()
        ),
    )


def document(found: Difference) -> str:
    """The change as JSON; a name that is null is the default entity, a limit that is null is not set."""
    return _dumped({"change": found.hash, "changes": _changes(found.replacements), "protected": _parts(found.kept)})


def outcome(found: Difference, became: Outcome) -> str:
    """What was changed and what was not, as JSON."""
    done = set(became.done)
    return _dumped(
        {
            "change": found.hash,
            "changes": _changes([r for r in found.replacements if r.entity in done]),
            "undone": [_named(entity) | {"why": why} for entity, why in became.undone.items()],
            "protected": _parts(found.kept),
        }
    )


def sent(replacements: Sequence[Replacement]) -> str:
    """The very values that a write sends, one line an entity."""
    lines = []
    for change in (replacement.change for replacement in replacements):
        words = []
        if change.add:
            words.append("set " + ",".join(f"{key}={plain(value)}" for key, value in sorted(change.add.items())))
        if change.delete:
            words.append("delete " + ",".join(change.delete))
        lines.append(f"{change.entity}: {'; '.join(words)}")
    return "\n".join(lines)


def _changes(replacements: Sequence[Replacement]) -> list[dict[str, object]]:
    return [
        _named(replacement.entity)
        | {
            "pruned": replacement.pruned,
            "limits": {key: {"old": _json(old), "new": _json(new)} for key, old, new in replacement.differing()},
        }
        for replacement in replacements
    ]


def _parts(entities: Sequence[Entity]) -> list[dict[str, object]]:
    return [_named(entity) for entity in entities]


def _named(entity: Entity) -> dict[str, object]:
    return {kind[:-1]: None if name is DEFAULT else name for kind, name in entity.parts()}


def _fields(entity: Entity) -> list[str | None]:
    names = (entity.user, entity.client_id, entity.ip)
    return ["" if name is None else None if name is DEFAULT else str(name) for name in names]


def _shown(key: str, limit: float | None) -> str:
    if limit is None:
        return "not set"
    exact = written(key, limit)
    return f"{exact} ({human_rate(limit)})" if key in BYTE_RATES and exact.isdigit() and limit >= 1000 else exact


def _bare(limit: float | None) -> str | None:
    return None if limit is None else plain(limit)


def _json(limit: float | None) -> object:
    return None if limit is None else number(limit)


def _dumped(found: dict[str, object]) -> str:
    return json.dumps({"version": 1} | found, ensure_ascii=False, indent=2)
