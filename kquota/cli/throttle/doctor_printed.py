"""What `throttle doctor` prints: findings, one a line, as JSON, as a table; and the diff of --fix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.cli import fields, tsv
from kquota.cli.contract import printable
from kquota.cli.throttle.entries import compact
from kquota.measure import counted
from kquota.reassign.throttle import Change, Setting, entries
from kquota.throttle.cure import Sightings
from kquota.throttle.finding import Finding
from kquota.throttle.standing import written

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What doctor found, since when, and what --fix would take away, took away, or could not."""

    found: Sequence[Finding]
    sightings: Sightings | None
    planned: Sequence[Change] = ()
    fixed: Sequence[Change] = ()
    pending: Mapping[Setting, str] = field(default_factory=dict)

    def first_seen(self, setting: Setting, value: str) -> str | None:
        """When doctor first saw this leftover, None where it is not known, or no leftover that --fix may take."""
        known = None if self.sightings is None else self.sightings.first.get(setting, {}).get(value)
        return None if known is None else known.isoformat(timespec="seconds")


def text(examined: Examined) -> str:
    """One line each: what, where, what it does, what to do."""
    lines = [f"{one.rule}: {one.where}: {one.what}; {one.effect}. Do: {one.do}" for one in examined.found]
    return "".join(f"{printable(line)}\n" for line in lines)


def document(examined: Examined) -> str:
    """The contract with scripts, version 1."""
    findings = [
        {
            "rule": one.rule,
            "where": one.where,
            "what": one.what,
            "effect": one.effect,
            "do": one.do,
            "fixable": one.fixable,
            "values": [
                {**fields.setting(setting), "value": value, "first_seen": examined.first_seen(setting, value)}
                for setting, values in one.values.items()
                for value in values
            ],
        }
        for one in examined.found
    ]
    planned, fixed = ([fields.change(c) for c in of] for of in (examined.planned, examined.fixed))
    pending = [{**fields.setting(setting), "why": why} for setting, why in sorted(examined.pending.items())]
    head = {"version": VERSION, "findings": findings, "planned": planned, "fixed": fixed, "pending": pending}
    return json.dumps(head, ensure_ascii=False) + "\n"


def table(examined: Examined) -> str:
    """A row for each finding; its values as `key=value` of the place, joined by blanks."""
    rows = [
        [one.rule, one.where, one.what, one.effect, one.do, "yes" if one.fixable else "no"] for one in examined.found
    ]
    return tsv.table(("rule", "where", "what", "effect", "do", "fixable"), rows)


def difference(changes: Sequence[Change]) -> Iterator[str]:
    """Each setting as it is and as it will be."""
    for change in changes:
        yield f"{change.setting}: {value(change.setting, change.before)} -> {value(change.setting, change.after)}"


def value(setting: Setting, stored: str | None) -> str:
    """A stored value for people."""
    if stored is None:
        return "unset"
    return compact(setting, entries(stored)) if setting.is_list else written(stored)


def summary(found: Sequence[Finding]) -> str:
    """How many of which rule."""
    counts = Counter(one.rule for one in found)
    told = ", ".join(f"{rule} {count}" for rule, count in counts.items())
    return f"{counted(len(found), 'finding')}: {told}"
