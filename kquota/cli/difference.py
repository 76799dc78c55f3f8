"""How a change of many quotas is written: for a person, for a table, for a program."""

from __future__ import annotations

import json
from collections.abc import Sequence

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


def table(found: Difference) -> str:
    """One row a key; an empty cell is absent, `<default>` the default entity."""
    rows = [["user", "client", "ip", "key", "old", "new"]]
    for replacement in found.replacements:
        entity = replacement.entity
        names = ["" if n is None else "<default>" if n is DEFAULT else _cell(n) for n in _names(entity)]
        rows += [[*names, key, _bare(old), _bare(new)] for key, old, new in replacement.differing()]
    return "\n".join("\t".join(row) for row in rows)


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


def _names(entity: Entity) -> tuple[object, object, object]:
    return entity.user, entity.client_id, entity.ip


def _cell(name: object) -> str:
    """A name in a table: what is not printable is escaped, and so is what only looks like the default entity."""
    shown = "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in str(name))
    return "\\x3cdefault>" if shown == "<default>" else shown


def _shown(key: str, limit: float | None) -> str:
    if limit is None:
        return "not set"
    exact = written(key, limit)
    return f"{exact} ({human_rate(limit)})" if key in BYTE_RATES and exact.isdigit() and limit >= 1000 else exact


def _bare(limit: float | None) -> str:
    return "" if limit is None else plain(limit)


def _json(limit: float | None) -> object:
    return None if limit is None else number(limit)


def _dumped(found: dict[str, object]) -> str:
    return json.dumps({"version": 1} | found, ensure_ascii=False, indent=2)
