"""What `throttle set` and `clear` print: each value as it was and as it is, and whose record tells of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from kquota.cli import fields
from kquota.cli.contract import printable, say
from kquota.cli.options import Output
from kquota.cli.throttle.doctor_printed import difference
from kquota.reassign.throttle import Change
from kquota.throttle.holding import GivenBack, Held, Recovery
from kquota.throttle.standing import order

VERSION: Final = 1


def say_held(held: Held, record: str | None, *, dry_run: bool) -> None:
    """For the person: what came of it."""
    if held.run is None or not held.changes:
        say("all of it stands already: nothing " + ("would be" if dry_run else "was") + " written")
    elif dry_run:
        say("nothing was written")
    if held.run is not None and record is not None:
        say(f"run {held.run.id} is on record, with every prior value, in {record}")


def held(held: Held, record: str | None, output: Output, *, dry_run: bool) -> str:
    """For people the changes; for scripts one line of JSON."""
    if output is Output.text:
        return lines(held.changes)
    run = None if held.run is None or dry_run else held.run.id
    changes = [fields.change(change) for change in held.changes]
    head = {"version": VERSION, "run": run, "record": record, "dry_run": dry_run, "changes": changes}
    return json.dumps(head, ensure_ascii=False) + "\n"


def back(given: GivenBack, output: Output, *, dry_run: bool = False) -> str:
    """The same for what was given back."""
    if output is Output.text:
        return lines(given.given_back)
    head = {
        "version": VERSION,
        "dry_run": dry_run,
        "given_back": [fields.change(change) for change in given.given_back],
        "pending": [{**fields.setting(setting), "why": why} for setting, why in sorted(given.pending.items())],
    }
    return json.dumps(head, ensure_ascii=False) + "\n"


def recovery(seen: Recovery, output: Output) -> str:
    """The state at the end of `--recovering`."""
    if output is Output.text:
        return lines((*seen.given_back.given_back, *seen.changes))
    head = {
        "version": VERSION,
        "run": None if seen.run is None else seen.run.id,
        "done": seen.done,
        "behind": [fields.partition(name) for name in seen.behind],
        "changes": [fields.change(change) for change in seen.changes],
        "given_back": [fields.change(change) for change in seen.given_back.given_back],
        "pending": [{**fields.setting(s), "why": why} for s, why in sorted(seen.given_back.pending.items())],
        "unlimited": list(seen.unlimited),
    }
    return json.dumps(head, ensure_ascii=False) + "\n"


def lines(changes: Iterable[Change]) -> str:
    """A line for each value, lists first."""
    ordered = sorted(changes, key=lambda change: (not change.setting.is_list, order(change.setting)))
    return "".join(f"{printable(line)}\n" for line in difference(ordered))


def say_back(given: GivenBack) -> None:
    """For the person: what stays, and what is still to come."""
    for note in given.notes:
        say(note)
    for setting, why in sorted(given.pending.items()):
        say(f"warning: still to be given back: {setting} ({why}); run the same again")
