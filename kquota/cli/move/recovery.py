"""The work of `move resume` and `move abort`: select open runs, continue or undo each, and report the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kquota.cli import clock, confirmation, lost_brokers, move_stores, past_moves, world
from kquota.cli.contract import DONE, FAILED, NOT_YET, complain, exit_code, say, worded, worst
from kquota.cli.move.command import AbortOptions, RecoveryOptions, ResumeOptions
from kquota.cli.move.leaders import LeadersElected, elected
from kquota.cli.move.open_runs import chosen_runs
from kquota.cli.move.run.checks import ClusterHealth
from kquota.cli.options import ELECTION_BATCH
from kquota.cli.output import Answer, Part, hidden, spread
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.execution import WouldExecute, would_execute
from kquota.cli.reassign_partitions.verification import Verified, verified
from kquota.election.port import Elections
from kquota.errors import Busy, Conflict, Invalid, KquotaError
from kquota.measure import counted
from kquota.reassign.plan import Plan, read
from kquota.reassign.port import Runs
from kquota.reassign.preparation import Prepared, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import RunState, backwards, recover
from kquota.reassign.run import Run
from kquota.reassign.wave import UNLIMITED
from kquota.sizes.replica import partition_sizes
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecovered(Part):
    """A run that was continued or undone, or that failed."""

    run: str
    """The id of the run."""
    started: tuple[TopicPartition, ...] | None
    """The partitions whose moves this command started. Empty in a dry run, and None if the run failed."""
    why: str | None = None
    """The reason why the run failed, or None."""
    version: int = 1
    outcome: Verified | WouldExecute | None = spread()
    """The verification of the run, or the answer of a dry run. None if the run failed."""
    elections: LeadersElected | None = None
    """The leader elections. None without `--elect-leaders`, in a dry run, if the run failed, and if some replicas are
    not back yet.
    """
    aborting: bool = hidden()
    failure: int = hidden(default=DONE)
    """The exit code of the error for which the run failed."""

    @property
    def code(self) -> int:
        """The exit code of the outcome or of the error, or 1 if a leader was not elected."""
        failed = self.elections is not None and not self.elections.complete
        code = self.failure if self.outcome is None else self.outcome.code
        return worst([code, FAILED if failed else DONE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Answer):
    """The result for each selected run. For an abort, the result describes the rollback."""

    runs: tuple[RunRecovered, ...]

    def text(self) -> Iterator[str]:
        for one in self.runs:
            if one.outcome is None:
                yield f"Run {one.run}: failed"
                continue
            yield f"Run {one.run}{f', {RunState.ABORTING.value}' if one.aborting else ''}:"
            yield from one.outcome.text()
            if one.elections is not None:
                yield f"Preferred leaders elected: {len(one.elections.elected):,}"


def resume(options: ResumeOptions) -> Recovered:
    """Continue the selected runs, by default all open runs, until all moves are submitted. A dry run only returns the
    changes. If one of several runs fails, the command continues the others, and reports the error in the result.

    Raises Invalid for an invalid plan, for a run together with a plan, for `--gone` over ZooKeeper or with an invalid
    id, and for a takeover with neither a terminal nor `--yes`. Raises Refused if the selected run is not open, if a
    check fails, or if the operator does not confirm a takeover. Raises Conflict for a run that was not shown before the
    confirmation. Raises Busy if another kquota holds the lock, and Unreachable if the cluster does not answer. Also
    raises Unknown and Incomplete, as `carry_out` does.
    """
    return _recover(world.where(options.connection), options)


def abort(options: AbortOptions) -> Recovered:
    """Undo the selected run, by default the only open run. Returns when all moves of the rollback are submitted. A dry
    run only returns the changes. With `--elect-leaders`, also elects the preferred leaders if all replicas are already
    back.

    Raises the errors of `resume`, and Refused if the operator does not confirm. Also raises Invalid for
    `--elect-leaders` over ZooKeeper, and if several runs are open and none is selected.
    """
    at = world.where(options.connection)
    if not options.elect_leaders:
        return _recover(at, options)
    if at.zookeeper is not None:
        raise Invalid("--elect-leaders: Kafka elects no leaders over --zookeeper. Give --bootstrap-server instead")
    with world.elections(at) as leaders:
        return _recover(at, options, leaders)


def _recover(at: world.Where, options: RecoveryOptions, leaders: Elections | None = None) -> Recovered:
    """Continue or undo the selected runs. With `leaders`, also elect the preferred leaders of each run whose replicas
    are in place.

    The exit code is the worst of all runs, and 1 is worse than 8. It is also 8 if no run is selected and a recorded run
    cannot be read, or if no run was found and one may be hidden.
    """
    if options.run is not None and options.reassignment_json_file is not None:
        raise Invalid("--run and --reassignment-json-file both select a run. Give one of them")
    plan = None if options.reassignment_json_file is None else read(options.reassignment_json_file)
    lost = lost_brokers.asked(options.gone, at)
    shown = None if options.dry_run else _must_agree(at, options, plan, lost)
    takes = options.take_over and (shown is None or shown.takes)
    lock = move_stores.LockRequest(doing=f"move {options.VERB}", patient=True, take_over=takes)
    done: list[RunRecovered] = []
    with remarks.resumable(), move_stores.staged(at, options.state_dir, None if options.dry_run else lock) as stage:
        chosen = _chosen(stage.runs, options, plan)
        if shown is not None and (unseen := [each.id for each in chosen if each.id not in shown.runs]):
            took = (
                "kquota has taken over the lock, but changed no throttle and no move"
                if takes
                else "Nothing was written"
            )
            raise Conflict(
                f"run {unseen[0]} was not shown before the confirmation. {took}. Run the command again to see this run"
            )
        for each in chosen:
            # Read the record again, because the previous run may have ended and passed its rates on to this run.
            latest = [run for run in stage.runs.unfinished() if run.id == each.id]
            left = lost_brokers.without(latest, lost, stage.cluster)
            try:
                for run in left:
                    wanted, prepared = _prepared(stage, run, options)
                    if shown is None:
                        lost_brokers.warn(latest, lost)
                    done.append(_recovered(at, stage, wanted, prepared, options, leaders))
            except Busy:
                raise
            except KquotaError as error:
                if len(chosen) == 1:
                    raise
                done.append(_failed(each, error))
        unread = options.run is None and plan is None and bool(stage.runs.unreadable)
        unknown = unread or (not done and stage.runs.hidden)
        none = "known to be open" if unknown else f"open, so there is nothing to {options.VERB}"
        notes = () if done else (f"no run of a move is {none}", *world.unseen(stage.runs.unseen))
    return Recovered(
        runs=tuple(done),
        notes=notes,
        code=worst([NOT_YET if unknown else DONE, *(one.code for one in done)]),
    )


def _failed(run: Run, error: KquotaError) -> RunRecovered:
    why = worded(error)
    complain(why if why.startswith(f"run {run.id}") else f"run {run.id}: {why}")
    return RunRecovered(
        run=run.id, started=None, why=why, outcome=None, aborting=run.aborting, failure=exit_code(error)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The confirmed action: the ids of the runs that the operator saw, and whether kquota takes over a lock."""

    runs: frozenset[str] = frozenset()
    takes: bool = False


def _must_agree(
    at: world.Where, options: RecoveryOptions, plan: Plan | None, lost: Sequence[BrokerId]
) -> _Shown | None:
    """Ask the operator to confirm, and return the confirmed action. Return None if no confirmation is necessary, and an
    action without runs if there is nothing to confirm.
    """
    aborts = isinstance(options, AbortOptions)
    if options.yes or not (options.take_over or (aborts and confirmation.has_terminal())):
        return None
    if options.take_over:
        confirmation.must_have_terminal()
    with move_stores.staged(at, options.state_dir, None) as stage:
        chosen = _chosen(stage.runs, options, plan)
        left = lost_brokers.without(chosen, lost, stage.cluster)
        lines = [_intended(stage, each, options, alone=len(left) == 1) for each in left]
        writer = stage.runs.record_writer()
    takes = options.take_over and writer is not None
    if not left and not takes:
        return _Shown()
    lost_brokers.warn(chosen, lost)
    for line in lines:
        say(line)
    if takes:
        say(f"{writer} holds the lock and may still be running. After the takeover, that command writes nothing more")
    confirmation.must_agree(f"take over the lock and {options.VERB}?" if takes else f"{options.VERB}?")
    return _Shown(runs=frozenset(each.id for each in left), takes=takes)


def _intended(stage: move_stores.Stage, run: Run, options: RecoveryOptions, *, alone: bool) -> str:
    """Return a line for the operator that describes the intended action for a run.

    If the run cannot be continued, the line has the error, because the command then continues the other runs. If
    the run is `alone`, raises the error instead. It is never Busy, because kquota holds no lock before the
    confirmation.
    """
    try:
        wanted, prepared = _prepared(stage, run, options)
    except KquotaError as error:
        if alone:
            raise
        return f"cannot {options.VERB} run {run.id}: {worded(error)}"
    moves = sum(not move.submitted for move in prepared.moving)
    every = counted(len(wanted.goal.targets), "partition")
    then = ", then restore its throttle" if wanted.held else ""
    return f"{options.VERB} run {wanted.id}: submit the moves of {moves:,} of {every}{then}"


def _chosen(runs: Runs, options: RecoveryOptions, plan: Plan | None) -> list[Run]:
    one = isinstance(options, AbortOptions)
    return chosen_runs(runs, options.run, options.reassignment_json_file, plan, one=one)


def _prepared(stage: move_stores.Stage, run: Run, options: RecoveryOptions) -> tuple[Run, Prepared]:
    wanted = backwards(run) if isinstance(options, AbortOptions) else run
    return wanted, prepare_again(stage, wanted, force=options.force, sizes=_sizes(stage, wanted))


def _sizes(stage: move_stores.Stage, run: Run) -> Mapping[TopicPartition, int]:
    """Return the known sizes of partitions in bytes. Return no sizes if the run does not limit the bytes in flight, and
    over ZooKeeper, which does not store sizes.
    """
    if run.limits.in_flight is None or stage.log_dirs is None:
        return {}
    alive = stage.cluster.snapshot(run.goal.topics).alive
    return partition_sizes(stage.log_dirs.describe(sorted(alive), run.goal.topics))


@contextmanager
def _checked_waves(
    at: world.Where, run: Run, prepared: Prepared, *, force: bool
) -> Iterator[tuple[Prepared, Callable[[], str | None]]]:
    """Yield the prepared run, and a function that returns the reason why no further wave may start, or None.

    The health of the cluster is checked only for runs with limits, which are runs of `move run`. Runs that are aborting
    and runs over ZooKeeper are not checked. If the cluster is unhealthy now, or its health is unknown, the yielded run
    submits no new partition. With `force`, which `--gone` implies, partitions that are already unhealthy do not count,
    and an unknown health is an error (see `ClusterHealth.must_be_good`).
    """
    if run.aborting or run.limits == UNLIMITED or at.zookeeper is not None:
        yield prepared, lambda: None
        return
    with world.elections(at) as leaders:
        health = ClusterHealth(cluster=leaders, clock=clock.SystemClock(), plan=run.plan.targets.keys())
        if force:
            health.must_be_good(force=True)
        elif health.trouble() is not None:
            prepared = replace(prepared, wave=tuple(move for move in prepared.wave if move.submitted))

        def why() -> str | None:
            reason = health.trouble()
            if reason is None or force or health.damage() is None:  # `--force` does not help if the health is unknown
                return reason
            return f"{reason}. To ignore partitions that are unhealthy now, run the command again with --force"

        yield prepared, why


def _recovered(
    at: world.Where,
    stage: move_stores.Stage,
    wanted: Run,
    prepared: Prepared,
    options: RecoveryOptions,
    leaders: Elections | None,
) -> RunRecovered:
    for note in prepared.notes:
        say(f"warning: {note}")
    if options.dry_run:
        return RunRecovered(run=wanted.id, started=(), outcome=would_execute(prepared), aborting=wanted.aborting)
    began = stage.clock.now()
    with _checked_waves(at, wanted, prepared, force=options.force or bool(options.gone)) as (prepared, hold_back):
        done = recover(wanted, prepared, say, hold_back)
    found = done.verification
    past_moves.keep_look(stage, found, began)
    elections = None
    if leaders is not None and found.verdict is Progress.DONE:
        elections = elected(leaders, wanted.goal, ELECTION_BATCH)
        found = replace(found, led_by_others=())
    again = "Run the same command again"
    for line in (
        *remarks.of_log_dirs(done.execution.log_dirs, again=again),
        *remarks.of_verification(found, again=again, undoing=wanted.aborting, plan=options.reassignment_json_file),
        *([] if elections is None else elections.notes(options.reassignment_json_file)),
    ):
        say(line)
    return RunRecovered(
        run=wanted.id,
        started=done.execution.started,
        outcome=verified(found),
        elections=elections,
        aborting=wanted.aborting,
    )
