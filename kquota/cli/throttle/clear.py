"""`kquota throttle clear`: what `throttle set` took goes back value by value; or every throttle of the cluster goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import confirmation, world
from kquota.cli import gone as gone_brokers
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import DryRun, Gone, Output, OutputFormat, StateDir, Yes
from kquota.errors import Invalid, Refused

if TYPE_CHECKING:
    from kquota.reassign.run import Run
    from kquota.reassign.throttle import Change
    from kquota.terms import BrokerId
    from kquota.throttle.port import Ports
    from kquota.throttle.standing import Standing

EPILOG: Final = """Without --all only what `kquota throttle set` took goes back; the throttle of a move ends with
`kquota reassign-partitions --verify`. Exit code 8: a broker was not reached and is still throttled.

Examples:
  kquota throttle clear --bootstrap-server localhost:9092
  kquota throttle clear --bootstrap-server localhost:9092 --all --dry-run"""


@connected()
def clear(
    connection: Connection,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Only what this run took.  [default: every `throttle set` on record]"
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Take every replication throttle of the cluster away, whoever set it.")
    ] = False,
    gone: Gone = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    state_dir: StateDir = None,
    output: OutputFormat = Output.text,
) -> int:
    """Give back what `throttle set` took, exactly as it stood before; again, it changes nothing."""
    if everything and run is not None:
        raise Invalid("give --run or --all, not both")
    if everything and gone:
        raise Invalid("--gone goes with what is on record, not with --all")
    if yes and not everything:
        raise Invalid("--yes goes with --all: nothing else asks")
    asks = everything and not (yes or dry_run)
    if asks:
        confirmation.must_have_terminal()
    at = world.where(connection)
    if everything:
        return _clear_all(at, state_dir, output, asks=asks, dry_run=dry_run)
    lost = gone_brokers.asked(gone, at)
    return _give_back(at, state_dir, run, lost, output, dry_run=dry_run)


def _give_back(
    at: world.Where, state_dir: Path | None, run: str | None, lost: Sequence[BrokerId], output: Output, *, dry_run: bool
) -> int:
    from kquota.cli.throttle import set_printed
    from kquota.throttle import holding

    with world.throttling(at, state_dir, holding=None if dry_run else "throttle clear") as ports:
        ending = gone_brokers.without(_ending(ports.runs.unfinished(), run), lost, ports.cluster)
        if dry_run:
            given = holding.would_give_back(ports.cluster, ports.runs, ending)
        else:
            for each in ending if lost else ():
                ports.runs.update(each)
            given = holding.give_back(ports.cluster, ports.runs, world.SystemClock(), ending)
    if not ending:
        say("no throttle set is on record here: nothing is to be given back")
    set_printed.say_back(given)
    print(set_printed.back(given, output, dry_run=dry_run), end="")
    return NOT_YET if given.pending else DONE


def _ending(open_runs: Sequence[Run], run: str | None) -> list[Run]:
    """The throttle runs to end. Raises Refused for a run that is not there, or that moves partitions."""
    from kquota.reassign.run import Purpose

    throttles = [one for one in open_runs if one.purpose is Purpose.THROTTLE]
    if run is None:
        return throttles
    if found := [one for one in throttles if one.id == run]:
        return found
    if any(one.id == run for one in open_runs):
        raise Refused(f"run {run} is a move: kquota reassign-partitions --verify ends its throttle with it")
    there = ", ".join(one.id for one in throttles) or "none"
    raise Refused(f"no open throttle {run} is on record here, open are: {there}. Nothing was written")


def _clear_all(at: world.Where, state_dir: Path | None, output: Output, *, asks: bool, dry_run: bool) -> int:
    """Take away every list and rate that stands, after showing it; then close the records of throttles."""
    from kquota.cli.throttle import set_printed
    from kquota.cli.throttle.show import warnings
    from kquota.reassign.run import Purpose
    from kquota.throttle import actions, holding
    from kquota.throttle.holding import GivenBack

    clock = world.SystemClock()
    with world.throttling(at, state_dir, holding=None if dry_run else "throttle clear --all") as ports:
        standing = actions.read(ports)
        wanted = _every(standing)
        _disclose(standing)
        if asks and wanted:
            _ask(ports, wanted)
        if dry_run:
            given = GivenBack(given_back=wanted)
        else:
            removal = actions.remove(ports, clock, wanted)
            ours = [run for run in ports.runs.unfinished() if run.purpose is Purpose.THROTTLE]
            closed = holding.give_back(ports.cluster, ports.runs, clock, ours) if not removal.undone else GivenBack()
            given = GivenBack(given_back=removal.done, pending={**removal.undone, **closed.pending})
    for line in warnings(standing):
        say(f"warning: {line}")
    if not wanted:
        say("nothing is throttled")
    set_printed.say_back(given)
    print(set_printed.back(given, output, dry_run=dry_run), end="")
    return NOT_YET if given.pending or standing.unread else DONE


def _every(standing: Standing) -> tuple[Change, ...]:
    from kquota.reassign.throttle import Change, lists_first
    from kquota.throttle.standing import order

    now = standing.values
    every = (Change(setting=setting, before=now[setting], after=None) for setting in sorted(now, key=order))
    lists, rates = lists_first(every)
    return (*lists, *rates)


def _disclose(standing: Standing) -> None:
    """What running moves lose, and what this command cannot take away."""
    from kquota.terms import DEFAULT

    if running := len(standing.snapshot.running):
        say(f"warning: {running:,} partitions move: without their throttle they take all that the network gives")
    if default := standing.limits.get(DEFAULT):
        keys = ",".join(default)
        say(
            f"warning: rates on the default of all brokers stay: kquota configs --alter --delete-config {keys} "
            "--broker-defaults"
        )


def _ask(ports: Ports, changes: Sequence[Change]) -> None:
    """One confirmation. Raises Refused without it, Conflict when something changed meanwhile."""
    from kquota.cli.throttle.doctor_printed import difference
    from kquota.throttle import actions

    confirmation.show(list(difference(changes)))
    confirmation.must_agree("take them all away, whoever set them?")
    confirmation.must_still_be(tuple(changes), _every(actions.read(ports)), "the throttles")
