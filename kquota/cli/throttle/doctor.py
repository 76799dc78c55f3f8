"""`kquota throttle doctor`: leftovers of throttles found, and with --fix taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import confirmation, world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import DryRun, Output, StateDir, TableFormat, Yes
from kquota.errors import Invalid, Refused
from kquota.measure import duration

if TYPE_CHECKING:
    from kquota.cli.throttle.doctor_printed import Examined
    from kquota.reassign.throttle import Change
    from kquota.throttle.actions import Leftovers
    from kquota.throttle.port import Ports

EPILOG: Final = """Exit codes: 0 nothing is left over, 8 something is. In cron give --older-than: what was seen at
every look for so long goes, and younger leftovers stay (exit code 8).

Examples:
  kquota throttle doctor --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092 --fix --yes --older-than 1h"""


@connected()
def doctor(
    connection: Connection,
    fix: Annotated[bool, typer.Option("--fix", help="Take away what no run holds and no move can use.")] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="TIME", help="With --fix: only what was there at every look for so long: 1h."
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    state_dir: StateDir = None,
    output: TableFormat = Output.text,
) -> int:
    """Find rates and lists that outlived their move, that do nothing, or that contradict each other."""
    for option, given in (("--older-than", older_than is not None), ("--yes", yes), ("--dry-run", dry_run)):
        if given and not fix:
            raise Invalid(f"{option} goes with --fix")
    asks = fix and not (yes or dry_run)
    if asks:
        confirmation.must_have_terminal()
    seconds = 0.0 if older_than is None else duration(older_than, "--older-than")
    at = world.where(connection)
    if not fix or dry_run:
        return _look(at, state_dir, output, seconds if fix else None)
    return _fix(at, state_dir, output, seconds, asks=asks)


def _look(at: world.Where, state_dir: Path | None, output: Output, older_than: float | None) -> int:
    """Find, and with `older_than` say what --fix would do."""
    from kquota.cli.throttle import doctor_printed
    from kquota.cli.throttle.show import warnings
    from kquota.throttle import actions, doctor

    with world.throttling(at, state_dir) as ports:
        standing = actions.read(ports)
        found = doctor.findings(standing)
        try:
            left: Leftovers | None = actions.leftovers(ports, standing, world.SystemClock(), older_than or 0.0)
        except Refused as error:
            if older_than:
                raise
            left = None
            say(f"warning: since when they are there is not remembered: {error}")
    for line in warnings(standing):
        say(f"warning: {line}")
    planned: Sequence[Change] = ()
    if older_than is not None and left is not None:
        planned = left.changes
        _say_difference(planned)
    sightings = None if left is None else left.sightings
    _print(doctor_printed.Examined(found=found, sightings=sightings, planned=planned), output)
    say(doctor_printed.summary(found) if found else "nothing is left over")
    return NOT_YET if found else DONE


def _fix(at: world.Where, state_dir: Path | None, output: Output, older_than: float, *, asks: bool) -> int:
    """Take away what may go, look again, and tell what remains."""
    from kquota.cli.throttle import doctor_printed
    from kquota.cli.throttle.show import warnings
    from kquota.throttle import actions, doctor

    clock = world.SystemClock()
    with world.throttling(at, state_dir, holding="throttle doctor --fix") as ports:
        standing = actions.read(ports)
        left = actions.leftovers(ports, standing, clock, older_than)
        if left.changes and asks:
            _ask(left.changes, lambda: _changes(ports, older_than))
        removal = actions.remove(ports, clock, left.changes)
        standing = actions.read(ports)
        found = doctor.findings(standing)
        sightings = actions.leftovers(ports, standing, clock, older_than).sightings
    for line in warnings(standing):
        say(f"warning: {line}")
    for line in doctor_printed.difference(removal.done):
        say(f"taken away: {line}")
    for setting, why in removal.undone.items():
        say(f"warning: still there: {setting} ({why}); run it again")
    if left.young:
        say(f"some leftovers are younger than {older_than:g} s, as far as doctor has seen: they stay")
    _print(
        doctor_printed.Examined(found=found, sightings=sightings, fixed=removal.done, pending=removal.undone),
        output,
    )
    say(doctor_printed.summary(found) if found else "nothing is left over")
    return NOT_YET if found or removal.undone else DONE


def _changes(ports: Ports, older_than: float) -> tuple[Change, ...]:
    from kquota.throttle import actions

    return actions.leftovers(ports, actions.read(ports), world.SystemClock(), older_than).changes


def _print(examined: Examined, output: Output) -> None:
    from kquota.cli.throttle import doctor_printed

    writes = {Output.text: doctor_printed.text, Output.json: doctor_printed.document, Output.tsv: doctor_printed.table}
    print(writes[output](examined), end="")


def _ask(changes: Sequence[Change], again: Callable[[], Sequence[Change]]) -> None:
    """One confirmation. Raises Refused without it, Conflict when something changed while the operator thought."""
    _say_difference(changes)
    confirmation.must_agree("take them away?")
    confirmation.must_still_be(tuple(changes), tuple(again()), "the throttles")


def _say_difference(changes: Sequence[Change]) -> None:
    from kquota.cli.throttle import doctor_printed

    shown = list(doctor_printed.difference(changes))
    confirmation.show(shown)
    if not shown:
        say("there is nothing that --fix may take away")
