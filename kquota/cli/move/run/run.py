"""`kquota move run`: check, throttle and submit the moves, wait until they end, and restore the throttle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kquota.cli import clock, move_stores, past_moves, rates, world
from kquota.cli.contract import DONE, FAILED, say, without_retry, worded, worst
from kquota.cli.keeping_up import PacedCopies, must_keep_up
from kquota.cli.move.leaders import LeadersElected, elected
from kquota.cli.move.run.checks import ClusterHealth, must_be_the_only_move, must_have_enough_in_sync, must_have_room
from kquota.cli.move.run.command import MoveRunOptions
from kquota.cli.move.run.progress import RunProgress
from kquota.cli.output import Answer, hidden, key, rounded, spread
from kquota.cli.pacing.pace import PaceRules, following, rules
from kquota.cli.pacing.protection import ScratchRemoval
from kquota.cli.pacing.setter import MovePace, RateSetter
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.execution import WouldExecute, would_execute
from kquota.cli.reassign_partitions.verification import Verified, verified
from kquota.cli.suggestion import plan_argument, readable_again, suggested
from kquota.errors import Busy, Invalid, KquotaError, Refused, Unknown, Unreachable
from kquota.measure import ByteRate, agreeing, byte_size, counted, exact_rate, human_duration, human_rate
from kquota.pace.share import Pace
from kquota.reassign.execution import carry_out
from kquota.reassign.plan import Plan, read
from kquota.reassign.preparation import MoveRequest, Prepared, prepare, prepare_again
from kquota.reassign.progress import Progress
from kquota.reassign.recovery import backwards, recover
from kquota.reassign.run import Run, covers
from kquota.reassign.turns import Turns
from kquota.reassign.verification import Verification, verify
from kquota.reassign.wave import ListFull, MoveLimits
from kquota.sizes.replica import LogDir, partition_sizes
from kquota.watch.observation import WatchPorts

_LOOK_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRan(Answer):
    """A whole move. Its JSON also has the fields of `--verify`."""

    run: str | None
    """The id of the run, or None if every partition was in place."""
    seconds: float = key("command_seconds", rounded(1))
    """The duration of the command, in seconds."""
    outcome: Verified = spread()
    elections: LeadersElected | None
    """The leader elections. None without `--elect-leaders`, and if the move was undone or ended without the replicas of
    the plan.
    """
    aborted: str | None
    """The reason why kquota undid the move, or None if kquota did not undo the move."""
    throttle: str | None = hidden()
    """The throttle rate at the start of the command, as text. None if there was no throttle or no run."""

    def text(self) -> Iterator[str]:
        found = self.outcome.found
        yield remarks.in_place(found, undoing=self.aborted is not None)
        if self.run is not None:
            throttle = "" if self.throttle is None else f", with a throttle of {self.throttle} at the start"
            yield f"Run {self.run}: this command took {human_duration(self.seconds)}{throttle}"
            yield f"See its report with {suggested(f'move report {self.run}')}"
        if found.pending:
            yield f"{agreeing(len(found.pending), 'throttle setting', 'is', 'are')} not restored yet"
        elif self.throttle is not None:
            yield "The throttle settings from before the run are restored"
        if self.elections is not None:
            yield f"Preferred leaders elected: {len(self.elections.elected):,}"


class _TroubleError(Exception):
    """A partition outside the plan has become unhealthy, so kquota must undo the move. The message is the reason."""


def run(options: MoveRunOptions) -> MoveRan | WouldExecute:
    """Run the whole move. A dry run only returns the changes.

    Before the first write, raises Invalid for an invalid plan and for options that are not valid or cannot be combined.
    Raises Refused if a check fails. Also raises the errors of `--execute` and `--verify`.

    The exit code is 1 if kquota undid the move, if a leader was not elected, or if a scratch topic may remain.
    Otherwise, it is as for `verified`.
    """
    followed = rules(options.pacing, options.connection)
    throttle = rates.any_throttle(options.throttle, "--throttle")
    if followed is not None:
        followed = followed.up_to(throttle)
    asked = _asked(options, throttle, followed)
    at = world.where(options.connection)
    plan = read(options.plan, lambda line: say(f"warning: {line}"))
    with remarks.resumable(), ExitStack() as stack:
        leaders = stack.enter_context(world.elections(at))
        ports, _ = stack.enter_context(move_stores.watching(at, options.state_dir))
        progress = RunProgress(ports, plan, readable_again(options.plan))
        began = clock.SystemClock().monotonic()
        health = ClusterHealth(cluster=leaders, clock=clock.SystemClock(), plan=plan.targets.keys())
        setter = RateSetter(
            connection=options.connection, state_dir=options.state_dir, reason=options.reason, force=True
        )
        pacing = None if followed is None else _Pacing(rules=followed, setter=setter, ports=ports, stack=stack)
        aborted = None
        try:
            started = _started(at, options, plan, asked, health, progress, pacing)
            if isinstance(started, WouldExecute):
                return started
            found = _ended(at, options, plan, progress, health if options.abort_on_trouble else None)
        except _TroubleError as error:
            aborted = str(error)
            started, back = _undone(at, options, plan, aborted)
            found = _ended(at, options, back, progress, None)
        moved = found.verdict is Progress.DONE and aborted is None
        elections = elected(leaders, plan, options.election_batch) if options.elect_leaders and moved else None
    outcome = verified(found)
    failed = elections is not None and not elections.complete
    removal = DONE if pacing is None else pacing.removal.code
    return MoveRan(
        run=started,
        seconds=clock.SystemClock().monotonic() - began,
        outcome=outcome,
        elections=elections,
        aborted=aborted,
        throttle=None if asked.throttle is None or started is None else human_rate(asked.throttle),
        notes=tuple(_notes(found, elections, options.plan, aborted)),
        code=worst([outcome.code, removal, FAILED if failed or aborted is not None else DONE]),
    )


def _asked(options: MoveRunOptions, throttle: ByteRate | None, followed: PaceRules | None) -> MoveRequest:
    if followed is not None and options.unthrottled:
        way = next(name for name, given in options.pacing.ways.items() if given)
        raise Invalid(f"--unthrottled: {way} needs a throttle that it can change. Leave out one of them")
    if followed is None and (options.throttle is None) != options.unthrottled:
        raise Invalid(
            "give either a throttle (--throttle RATE, --between SPANS or --protect) or --unthrottled, which copies "
            "without a throttle"
        )
    size = None if options.max_in_flight is None else byte_size(options.max_in_flight, "--max-in-flight")
    return MoveRequest(
        throttle=throttle if followed is None else followed.first(throttle),
        additional=True,  # `must_be_the_only_move` refuses other moves, with its own message
        force=options.force,
        reason=options.reason,
        limits=MoveLimits(partitions=options.batch, per_broker=options.max_per_broker, in_flight=size),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pacing:
    """Opens the pace of the throttle after all checks. `stack` closes the pace."""

    rules: PaceRules
    setter: RateSetter
    ports: WatchPorts
    stack: ExitStack
    removal: ScratchRemoval = field(default_factory=ScratchRemoval)

    def opened(self, rate: ByteRate, *, fresh: bool) -> MovePace:
        opening = following(self.rules, rate, self.setter, self.ports, self.removal, fresh=fresh)
        return self.stack.enter_context(opening)


def _started(
    at: world.Where,
    options: MoveRunOptions,
    plan: Plan,
    asked: MoveRequest,
    health: ClusterHealth,
    progress: RunProgress,
    pacing: _Pacing | None,
) -> str | WouldExecute | None:
    """Check the move, set the throttle, and submit all waves. Return the run id, or None if every partition is in
    place. A dry run only checks the move.
    """
    hold = None if options.dry_run else move_stores.LockRequest(doing="move run", patient=True, later=True)
    with (
        move_stores.staged(at, options.state_dir, hold) as stage,
        Turns(stage.hold, stage.clock, _PATIENCE_SECONDS, _wait_for_lock) as turns,
    ):
        health.must_be_good(force=asked.force)
        try:
            prepared, expected = _checked(stage, plan, asked, pacing)
        except ListFull as full:
            rate = asked.throttle if pacing is None else None
            raise Refused(full, f", or start the move with {_with_whole_topics(options.plan, rate)}") from full
        if options.dry_run:
            return would_execute(prepared)
        if prepared.run is not None:
            begins = "begins" if prepared.known is None else "continues"
            say(f"run {prepared.run.id} {begins}: {counted(len(prepared.moving), 'partition')} to move")
            if pacing is not None and prepared.run.rate is not None:
                progress.pace = pacing.opened(prepared.run.rate, fresh=prepared.known is None)
        started = stage.clock.now()
        prepared = past_moves.with_course(stage, prepared, expected, options.reason)
        for line in remarks.of_expected(prepared, expected):
            say(line)

        def hold_back() -> str | None:
            progress.step()
            if options.abort_on_trouble:
                _must_be_undamaged(health)
            return health.trouble()

        def noted(run: Run) -> Run:
            return past_moves.with_readings(run, progress.watch)

        done = carry_out(prepared, say, hold_back=hold_back, noted=noted, between=turns.released, wait=progress.wait)
        past_moves.keep_start(stage, prepared, done, expected, started)
        for line in remarks.of_log_dirs(done.log_dirs):
            say(line)
        return None if done.run is None else done.run.id


def _with_whole_topics(file: Path, throttle: ByteRate | None) -> str:
    plan = plan_argument(file)
    rate = "RATE" if throttle is None else exact_rate(throttle)
    return suggested(
        f"reassign-partitions --execute --additional --reassignment-json-file {plan} --throttle {rate} "
        "--throttle-whole-topics"
    )


def _checked(
    stage: move_stores.Stage, plan: Plan, asked: MoveRequest, pacing: _Pacing | None
) -> tuple[Prepared, Pace | None]:
    seen = _log_dirs(stage, plan)
    sized = replace(asked, sizes=partition_sizes(seen))
    prepared = prepare(stage, plan, sized)
    for note in prepared.notes:
        say(f"warning: {note}")
    if asked.force:
        return prepared, None
    must_be_the_only_move(prepared)
    must_have_enough_in_sync(stage.cluster, prepared)
    must_have_room(seen, prepared.moving, sized.sizes)
    return prepared, _must_keep_up(stage, prepared, pacing)


def _log_dirs(stage: move_stores.Stage, plan: Plan) -> Sequence[LogDir]:
    assert stage.log_dirs is not None
    return stage.log_dirs.describe(sorted(stage.cluster.snapshot(plan.topics).alive), plan.topics)


def _must_keep_up(stage: move_stores.Stage, prepared: Prepared, pacing: _Pacing | None) -> Pace | None:
    """Raise Refused if a copy can never catch up under the highest throttle that the options give. Return the pace of
    the copies, or None if it is unknown or `pacing` changes the throttle.

    Without a throttle, or if no setting has to change, kquota checks nothing, and the result is None.
    """
    if prepared.run is None or prepared.run.rate is None or not prepared.changes:
        return None
    copies = PacedCopies(moves=prepared.moving, partitions=prepared.found.partitions)
    rate = prepared.run.rate
    pace = must_keep_up(stage.log_dirs, copies, rate if pacing is None else pacing.rules.most(rate))
    return pace if pacing is None else None


def _must_be_undamaged(health: ClusterHealth) -> None:
    if (damage := health.damage()) is not None:
        raise _TroubleError(damage)


def _undone(at: world.Where, options: MoveRunOptions, plan: Plan, why: str) -> tuple[str, Plan]:
    """Submit the rollback of the open run. Return the run id and the rollback plan. The run is first recorded as
    aborting, so that `move resume` continues the rollback after a crash.
    """
    say(f"{why}. kquota undoes the move (--abort-on-trouble)")
    with move_stores.staged(at, options.state_dir, move_stores.LockRequest(doing="move run", patient=True)) as stage:
        found = covers(plan, stage.runs.unfinished())
        if found is None:
            runs = suggested("move report")
            raise Refused(f"the run of this plan is no longer open, so it cannot be undone. See how it ended: {runs}")
        back = backwards(found)
        prepared = prepare_again(stage, back, force=options.force, sizes=partition_sizes(_log_dirs(stage, plan)))
        recover(back, prepared, say)
        return back.id, back.goal


def _ended(
    at: world.Where, options: MoveRunOptions, plan: Plan, progress: RunProgress, health: ClusterHealth | None
) -> Verification:
    """Wait until no partition of the plan moves, and return the last verification. Unreachable and Unknown end the wait
    only if no check has succeeded for `_PATIENCE_SECONDS`, because brokers restart during long moves. A lock that
    another command holds never ends the wait. Raises _TroubleError if `health` (unless it is None) reports damage.
    """
    with move_stores.staged(at, options.state_dir, move_stores.LockRequest(doing="move run", later=True)) as stage:
        seen = stage.clock.monotonic()
        while True:
            try:
                found = _look(stage, plan, progress)
                seen = stage.clock.monotonic()
            except (Unreachable, Unknown) as error:
                if stage.clock.monotonic() - seen > _PATIENCE_SECONDS:
                    raise
                say(f"warning: {worded(error)}. Trying again")
                found = None
            if found is not None and found.verdict is not Progress.IN_PROGRESS:
                return found
            if health is not None:
                _must_be_undamaged(health)
            progress.wait(_LOOK_SECONDS)
            progress.step()


def _look(stage: move_stores.Stage, plan: Plan, progress: RunProgress) -> Verification | None:
    began = stage.clock.now()
    try:
        with stage.hold():
            found = verify(stage, plan)
            if found.verdict is not Progress.IN_PROGRESS:
                progress.step(ended=True)
            past_moves.keep_look(stage, found, began, progress.watch)
            return found
    except Busy as error:
        _wait_for_lock(error)
        return None


def _wait_for_lock(error: KquotaError) -> None:
    say(f"{without_retry(error)}. kquota waits and tries again")


def _notes(found: Verification, elections: LeadersElected | None, plan: Path, aborted: str | None) -> Iterator[str]:
    again = f"Run {suggested('reassign-partitions --verify --all-runs')}"
    yield from remarks.of_verification(found, again=again, undoing=aborted is not None, plan=plan)
    if elections is not None:
        yield from elections.notes(plan)
    if aborted is not None:
        done = found.verdict is Progress.DONE
        undid = "undid the move" if done else "could not completely undo the move. Reason for the undo"
        yield f"error: kquota {undid} (--abort-on-trouble): {aborted}"
