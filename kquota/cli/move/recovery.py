"""The work of `move resume` and `move abort`: select open runs, continue or undo each, and report the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kquota.cli import confirmation, lost_brokers, move_stores, past_moves, world
from kquota.cli.contract import DONE, NOT_YET, say, worst
from kquota.cli.move.command import AbortOptions, RecoveryOptions, ResumeOptions
from kquota.cli.output import Answer, Part, hidden, spread
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.execution import WouldExecute, would_execute
from kquota.cli.reassign_partitions.verification import Verified, verified
from kquota.errors import Invalid, Refused
from kquota.measure import counted
from kquota.reassign.plan import read
from kquota.reassign.port import Runs
from kquota.reassign.preparation import Prepared, prepare_again
from kquota.reassign.recovery import RunState, backwards
from kquota.reassign.recovery import recover as brought
from kquota.reassign.run import Purpose, Run, covers
from kquota.sizes.replica import partition_sizes
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecovered(Part):
    """A run that was continued or undone, with its verification or the answer of a dry run."""

    run: str
    started: tuple[TopicPartition, ...]
    version: int = 1
    outcome: Verified | WouldExecute = spread()
    aborting: bool = hidden()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Answer):
    """The result for each run. For an abort, the result describes the rollback."""

    runs: tuple[RunRecovered, ...]

    def text(self) -> Iterator[str]:
        """Yield the id of each run, then the text of its outcome."""
        for one in self.runs:
            yield f"Run {one.run}{f', {RunState.ABORTING.value}' if one.aborting else ''}:"
            yield from one.outcome.text()


def resume(options: ResumeOptions) -> Recovered:
    """Continue the selected runs, by default all open runs.

    Raises Invalid if both a run and a plan are given, for --gone over ZooKeeper, and for a takeover without a terminal.
    Raises Refused if the selected run is not open, if a check fails, and if the operator does not confirm a takeover.
    """
    return _recover(options, "resume")


def abort(options: AbortOptions) -> Recovered:
    """Undo the selected run, by default the only open run.

    Raises Invalid if both a run and a plan are given, if several runs are open and none is selected, for --gone over
    ZooKeeper, and for a takeover without a terminal. Raises Refused if the selected run is not open, if a check fails,
    and if the operator does not confirm.
    """
    return _recover(options, "abort")


def _recover(options: RecoveryOptions, verb: str) -> Recovered:
    """Continue or undo the runs. The exit code is the worst of all runs, and 1 is worse than 8."""
    if options.run is not None and options.reassignment_json_file is not None:
        raise Invalid("--run and --reassignment-json-file both select a run. Give one of them")
    at = world.where(options.connection)
    lost = lost_brokers.asked(options.gone, at)
    asks = move_stores.Hold(doing=f"move {verb}", patient=True, take_over=options.take_over)
    hold = None if options.dry_run else asks
    if hold is not None:
        _must_agree(at, options, verb, lost)
    done: list[RunRecovered] = []
    with remarks.resumable(), move_stores.staged(at, options.state_dir, hold) as stage:
        for each in _chosen(stage.runs, options, verb):
            # Read the record again, because the previous run may have ended and passed its rates on to this run.
            latest = [run for run in stage.runs.unfinished() if run.id == each.id]
            done += [_one(stage, run, options, verb) for run in lost_brokers.without(latest, lost, stage.cluster)]
        notes = [] if done else [f"no run is open: nothing to {verb}", *world.unseen(stage.runs.alone)]
        unknown = not done and (stage.runs.hidden or bool(stage.runs.unreadable))
    return Recovered(
        runs=tuple(done),
        notes=tuple(notes),
        code=worst([NOT_YET if unknown else DONE, *(one.outcome.code for one in done)]),
    )


def _must_agree(at: world.Where, options: RecoveryOptions, verb: str, lost: Sequence[BrokerId]) -> None:
    """Without --yes, ask before an abort on a terminal, and before every takeover of the lock.

    Raises Refused for any answer except yes, and if a check of a selected run fails. Raises Invalid for a takeover
    without a terminal. Also raises the errors of `_chosen`.
    """
    asks = not options.yes and (options.take_over or (verb == "abort" and confirmation.has_terminal()))
    if not asks:
        return
    if options.take_over:
        confirmation.must_have_terminal()
    with move_stores.staged(at, options.state_dir, None) as stage:
        chosen = lost_brokers.without(_chosen(stage.runs, options, verb), lost, stage.cluster)
        prepared = [_prepared(stage, each, options, verb) for each in chosen]
        writer = stage.runs.writer()
    if not prepared and writer is None:
        return
    for wanted, found in prepared:
        moves, every = sum(not move.submitted for move in found.moving), counted(len(wanted.goal.targets), "partition")
        then = ", then restore its throttle" if any(taken.ours for taken in wanted.taken.values()) else ""
        say(f"{verb} run {wanted.id}: submit {moves:,} of {every}{then}")
    takes = options.take_over and writer is not None
    if takes:
        say(f"{writer} holds the lock and may still be running. After the takeover, that command writes nothing more")
    confirmation.must_agree(f"take over the lock and {verb}?" if takes else f"{verb}?")


def _chosen(runs: Runs, options: RecoveryOptions, verb: str) -> list[Run]:
    """Return the selected open runs, by default all.

    Raises Refused if the selected run is not open, or if no run of the selected plan is open. Raises Invalid for an
    abort without a selection if several runs are open.
    """
    unfinished = runs.unfinished()
    moving = [each for each in unfinished if each.purpose is Purpose.MOVE]
    ids = ", ".join(each.id for each in moving) or "none"
    if (plan := options.reassignment_json_file) is not None:
        covered = covers(read(plan), unfinished)
        if covered is None:
            raise Refused(f"{plan}: no run of this plan is open (open runs: {ids})")
        return [covered]
    if options.run is not None:
        named = [each for each in moving if each.id == options.run]
        if not named:
            raise Refused(f"--run {options.run}: no run with this id is open (open runs: {ids})")
        return named
    if verb == "abort" and len(moving) > 1:
        raise Invalid(f"{len(moving)} runs are open ({ids}). Select the one to abort with --run")
    return moving


def _prepared(stage: move_stores.Stage, run: Run, options: RecoveryOptions, verb: str) -> tuple[Run, Prepared]:
    """Return the run, or its rollback for an abort, and its preparation. Raises Refused if a check fails."""
    wanted = backwards(run) if verb == "abort" else run
    return wanted, prepare_again(
        stage.cluster, stage.runs, stage.clock, wanted, stage.dirs, force=options.force, sizes=_sizes(stage, wanted)
    )


def _sizes(stage: move_stores.Stage, run: Run) -> Mapping[TopicPartition, int]:
    """Return the sizes of the run's partitions in bytes.

    Returns no sizes if the run does not limit the bytes in flight, or over ZooKeeper, which does not store sizes.
    """
    if run.limits.in_flight is None or stage.log_dirs is None:
        return {}
    alive = stage.cluster.snapshot(run.goal.topics).alive
    return partition_sizes(stage.log_dirs.describe(sorted(alive), run.goal.topics))


def _one(stage: move_stores.Stage, run: Run, options: RecoveryOptions, verb: str) -> RunRecovered:
    wanted, prepared = _prepared(stage, run, options, verb)
    for note in prepared.notes:
        say(f"warning: {note}")
    if options.dry_run:
        return RunRecovered(run=run.id, started=(), outcome=would_execute(prepared), aborting=wanted.aborting)
    began = stage.clock.now()
    done = brought(stage.cluster, stage.runs, stage.clock, wanted, prepared, say, stage.dirs)
    found = done.verification
    past_moves.keep_look(stage, found, began)
    again = "Run the same command again"
    for line in (
        *remarks.of_log_dirs(done.execution.log_dirs, again=again),
        *remarks.of_verification(found, again=again, undoing=wanted.aborting),
    ):
        say(line)
    return RunRecovered(run=run.id, started=done.execution.started, outcome=verified(found), aborting=wanted.aborting)
