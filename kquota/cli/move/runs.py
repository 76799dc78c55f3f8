"""`kquota move status`, `resume` and `abort`: what is on record and not at its end, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from kquota.cli import gone as gone_brokers
from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import DryRun, Gone, Output, OutputFormat, StateDir
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.cli.move.runs_printed import Recovered
    from kquota.reassign.port import Runs
    from kquota.reassign.run import Run

EPILOGS: Final = {
    "status": """Exit codes: 0 no run is open, 8 some are.

Examples:
  kquota move status --bootstrap-server localhost:9092
  kquota move status --cluster prod --output json""",
    "resume": """Exit codes: 0 the runs are done, 8 they still move: ask again; 1 replicas ended elsewhere.

Examples:
  kquota move resume --bootstrap-server localhost:9092 --dry-run
  kquota move resume --cluster prod --reassignment-json-file plan.json""",
    "abort": """Exit codes: 0 all is as it was before the run, 8 replicas are still copied back: ask again.

Examples:
  kquota move abort --bootstrap-server localhost:9092 --dry-run
  kquota move abort --cluster prod --reassignment-json-file plan.json""",
}

PlanFile: TypeAlias = Annotated[
    Path | None, typer.Option("--reassignment-json-file", metavar="FILE", help="The open run of this plan.")
]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Also where too few replicas would stay in sync, and over others' moves.")
]


def _run(default: str) -> Any:
    return typer.Option("--run", metavar="ID", help=f"The run, as `move status` names it.  [default: {default}]")


@connected()
def status(connection: Connection, state_dir: StateDir = None, output: OutputFormat = Output.text) -> int:
    """Say which runs are on record and not at their end, and how far each is."""
    from kquota.cli.move import runs_printed
    from kquota.reassign.recovery import state
    from kquota.reassign.run import Purpose

    at = world.where(connection)
    with world.moves(at, state_dir) as (cluster, runs):
        every = runs.unfinished()
        unfinished = [run for run in every if run.purpose is Purpose.MOVE]
        found = cluster.snapshot(sorted({topic for run in unfinished for topic in run.plan.topics}))
        told = [
            runs_printed.Told(run=run, state=state(run, found), found=found, place=runs.place(run))
            for run in unfinished
        ]
    if not told:
        say("no run is open")
    if held := [run.id for run in every if run.purpose is Purpose.THROTTLE]:
        say(f"throttles without a move are held, too, which kquota throttle show tells of: {', '.join(held)}")
    if told or output is Output.json:
        print(runs_printed.document(told) if output is Output.json else runs_printed.text(told))
    return NOT_YET if told else DONE


@connected()
def resume(
    connection: Connection,
    run: Annotated[str | None, _run("all that are open")] = None,
    reassignment_json_file: PlanFile = None,
    state_dir: StateDir = None,
    dry_run: DryRun = False,
    force: Force = False,
    gone: Gone = None,
    output: OutputFormat = Output.text,
) -> int:
    """Bring interrupted runs to where undisturbed ones would be: all that are open, or the one that is named."""
    which = (run, reassignment_json_file, state_dir)
    return _recover(connection, "resume", *which, output, dry_run=dry_run, force=force, gone=gone)


@connected()
def abort(
    connection: Connection,
    run: Annotated[str | None, _run("the one that is open")] = None,
    reassignment_json_file: PlanFile = None,
    state_dir: StateDir = None,
    dry_run: DryRun = False,
    force: Force = False,
    gone: Gone = None,
    output: OutputFormat = Output.text,
) -> int:
    """Take a run back: cancel what moves, copy back what has moved, give its throttle back."""
    which = (run, reassignment_json_file, state_dir)
    return _recover(connection, "abort", *which, output, dry_run=dry_run, force=force, gone=gone)


def _recover(
    connection: Connection,
    verb: str,
    run: str | None,
    plan: Path | None,
    state_dir: Path | None,
    output: Output,
    *,
    dry_run: bool,
    force: bool,
    gone: list[str] | None,
) -> int:
    from kquota.cli.move import runs_printed
    from kquota.cli.reassign_partitions import execution

    if run is not None and plan is not None:
        raise Invalid("--run and --reassignment-json-file both name a run: give one of them")
    at = world.where(connection)
    lost = gone_brokers.asked(gone, at)
    with execution.resumable(), world.staged(at, state_dir, None if dry_run else f"move {verb}") as stage:
        chosen = _chosen(stage.runs, run, plan, verb)
        chosen = gone_brokers.without(chosen, lost, stage.cluster)
        told = [_one(stage, each, verb, dry_run=dry_run, force=force) for each in chosen]
    if not told:
        say(f"no run is open: nothing to {verb}")
        if output is Output.text:
            return DONE
    print(runs_printed.recovered_document(told) if output is Output.json else runs_printed.recovered_text(told))
    return max((one.code for one in told), key=lambda code: (code != DONE, code != NOT_YET), default=DONE)


def _chosen(runs: Runs, run: str | None, plan: Path | None, verb: str) -> list[Run]:
    """The open runs that are meant. Raises Invalid where that is not clear."""
    from kquota.reassign.plan import read
    from kquota.reassign.run import Purpose, covers

    unfinished = runs.unfinished()
    moving = [each for each in unfinished if each.purpose is Purpose.MOVE]
    ids = ", ".join(each.id for each in moving) or "none"
    if plan is not None:
        covered = covers(read(plan), unfinished)
        if covered is None:
            raise Invalid(f"{plan}: no run of this plan is open; open are: {ids}")
        return [covered]
    if run is not None:
        named = [each for each in moving if each.id == run]
        if not named:
            raise Invalid(f"--run {run}: no such run is open; open are: {ids}")
        return named
    if verb == "abort" and len(moving) > 1:
        raise Invalid(f"{len(moving)} runs are open: say which to abort with --run: {ids}")
    return moving


def _one(stage: world.Stage, run: Run, verb: str, *, dry_run: bool, force: bool) -> Recovered:
    from kquota.cli.move.runs_printed import Recovered
    from kquota.cli.reassign_partitions import execution, printed
    from kquota.reassign.preparation import prepare_again
    from kquota.reassign.recovery import backwards, recover

    wanted = backwards(run) if verb == "abort" else run
    clock = world.SystemClock()
    prepared = prepare_again(stage.cluster, stage.runs, clock, wanted, stage.dirs, force=force)
    for note in prepared.notes:
        say(f"warning: {note}")
    if dry_run:
        return Recovered(run=wanted, prepared=prepared, recovery=None, code=DONE)
    recovery = recover(stage.cluster, stage.runs, clock, wanted, prepared, say, stage.dirs)
    for line in (*printed.log_dirs_remarks(recovery.execution.log_dirs), *printed.remarks(recovery.verification)):
        say(line)
    code = execution.verdict(recovery.verification)
    return Recovered(run=wanted, prepared=prepared, recovery=recovery, code=code)
