"""`reassign-partitions --execute`: start the moves of a plan under a throttle, or show what would be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli import rates, world
from kquota.cli.contract import say, worded
from kquota.cli.output import Answer, hidden, key
from kquota.cli.reassign_partitions import plan_option, remarks
from kquota.cli.reassign_partitions.answer import Placed, ReplicaTold, log_dirs_code, plan_document, replicas_told
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.sampling import listed, sampled
from kquota.cli.why_never import why_never
from kquota.errors import Invalid, KquotaError, Refused
from kquota.list_text import joined
from kquota.measure import ByteRate, human_rate
from kquota.pace.share import Pace, pace
from kquota.reassign import log_dirs, words
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.move_work import carried
from kquota.reassign.moves import Move
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import Asked, Prepared, prepare
from kquota.settings.change import Change
from kquota.sizes.port import LogDirs
from kquota.terms import TopicPartition

_GLANCE: Final = 0.3
_LOOK: Final = 3.0
"""Seconds of a measurement. A refusal needs the longer one, because clients write in bursts."""


def run(at: world.Where, options: ReassignOptions) -> Executed | WouldExecute:
    """Start the moves of the plan, and report where the rollback plan is recorded."""
    asked = _asked(options)
    timeout, plan = plan_option.timeout(options), plan_option.plan(at, options)
    hold = None if options.dry_run else world.Hold(doing="reassign-partitions --execute")
    with remarks.resumable(), world.staged(at, options.state_dir, hold) as stage:
        prepared = prepare(stage.cluster, stage.runs, stage.clock, plan, asked, stage.dirs)
        for note in prepared.notes:
            say(f"warning: {note}")
        if not asked.force:
            _must_keep_up(stage.log_dirs, prepared, asked.throttle)
        if options.dry_run:
            return would_execute(prepared)
        done = carry_out(prepared, say, stage.dirs, timeout)
        record = None if done.run is None else stage.runs.place(done.run)
        alone = stage.runs.alone
    notes = [*remarks.of_execution(done, record)]
    if done.run is not None and alone is not None:
        notes.append(f"note: other hosts do not see this run: {worded(alone)}")
    return executed(done, asked.throttle, asked.log_dir_throttle, record, tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldExecute(Answer):
    """The changes that --execute would write: every value, then the moves of the first wave. Nothing was written."""

    dry_run: bool = True
    changes: tuple[Change, ...]
    moves: tuple[Placed, ...]
    log_dirs: tuple[ReplicaTold, ...]
    later: int
    rollback: Plan = key(form=plan_document)

    def text(self) -> Iterator[str]:
        yield from words.current_assignment(self.rollback).split("\n")
        yield ""
        yield "Would be written (nothing was written):"
        for change in self.changes:
            yield f"  {change.setting}: {_value(change.before)} -> {_value(change.after)}"
        for move in self.moves:
            yield f"  move {move.partition} to {joined(move.replicas or ())}"
        for one in self.log_dirs:
            yield f"  {one.partition} on broker {one.broker} into {one.told}"
        if self.later:
            yield f"  and {self.later} more partitions in later waves"
        if not self.changes and not self.moves and not self.log_dirs:
            yield "  nothing"


def would_execute(found: Prepared) -> WouldExecute:
    """Return the answer to a dry run."""
    return WouldExecute(
        changes=found.changes,
        moves=tuple(Placed(partition=m.partition, replicas=m.target) for m in found.wave if not m.submitted),
        log_dirs=replicas_told(found.log_dirs),
        later=max(0, len(found.moving) - len(found.wave)),
        rollback=found.rollback,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed(Answer):
    """The answer of --execute, printed like kafka-reassign-partitions, without its last line if nothing was started."""

    done: Execution = hidden()
    log_dir_throttle: ByteRate | None = hidden()
    run: str | None
    record: str | None
    throttle: ByteRate | None
    started: tuple[TopicPartition, ...]
    running: tuple[TopicPartition, ...]
    log_dirs_started: tuple[ReplicaTold, ...]
    log_dirs_failed: tuple[ReplicaTold, ...]
    log_dirs_waiting: tuple[ReplicaTold, ...]
    rollback: Plan = key(form=plan_document)

    def text(self) -> Iterator[str]:
        yield from words.current_assignment(self.rollback).split("\n")
        run = self.done.run
        if run is not None and (self.throttle or self.log_dir_throttle) is not None and run.taken:
            yield words.RUN_VERIFY
            if self.throttle is not None:
                yield words.throttle_set(self.throttle)
            if self.log_dir_throttle is not None:
                yield log_dirs.throttle_set(self.log_dir_throttle)
        if self.started:
            yield words.started(self.started)
        if begun := self.done.log_dirs.begun:
            yield from log_dirs.started_lines(begun).split("\n")


def executed(
    done: Execution,
    throttle: ByteRate | None,
    log_dir_throttle: ByteRate | None,
    record: str | None,
    notes: tuple[str, ...],
) -> Executed:
    """Return the answer. `record` is where the run is recorded."""
    return Executed(
        done=done,
        log_dir_throttle=log_dir_throttle,
        run=None if done.run is None else done.run.id,
        record=record,
        throttle=throttle,
        started=done.started,
        running=done.running,
        log_dirs_started=replicas_told(done.log_dirs.begun),
        log_dirs_failed=replicas_told(done.log_dirs.refused),
        log_dirs_waiting=replicas_told(done.log_dirs.waiting),
        rollback=done.rollback,
        notes=notes,
        code=log_dirs_code(done.log_dirs),
    )


def _asked(options: ReassignOptions) -> Asked:
    throttle = _throttle(options)
    log_dir_throttle = rates.any_throttle(options.replica_alter_log_dirs_throttle, "--replica-alter-log-dirs-throttle")
    if log_dir_throttle is not None:
        say(f"log dirs throttle: {_in_full(log_dir_throttle)} between the log dirs of every broker that takes part")
    return Asked(
        throttle=throttle,
        log_dir_throttle=log_dir_throttle,
        additional=options.additional,
        same_replication_factor=options.disallow_replication_factor_change,
        whole_topics=options.throttle_whole_topics,
        force=options.force,
        reason=options.reason,
    )


def _throttle(options: ReassignOptions) -> ByteRate | None:
    text, option = options.throttle, "--throttle"
    if options.replication_quota is not None:
        if text is not None:
            raise Invalid("--replication-quota is KIP-73's name for --throttle: give one of them")
        text, option = options.replication_quota, "--replication-quota"
        say("note: --replication-quota is KIP-73's name for the option; Kafka shipped it as --throttle")
    rate = rates.any_throttle(text, option)
    if rate is not None:
        say(f"throttle: {_in_full(rate)} into and out of every broker that takes part")
    return rate


def _in_full(rate: ByteRate) -> str:
    return f"{rate} bytes per second ({human_rate(rate)})"


def _must_keep_up(log_dirs: LogDirs | None, prepared: Prepared, throttle: ByteRate | None) -> None:
    """Raise Refused if a copy can never catch up under the throttle. Print a note if this is unknown."""
    copies = [move for move in prepared.moving if move.destinations]
    if throttle is None or not copies:
        return
    if log_dirs is None:
        say(
            "note: kquota did not check whether the copies can catch up, because ZooKeeper stores no sizes and no "
            "write rates"
        )
        return
    try:
        expected = _expected_pace(log_dirs, prepared, copies, throttle, _GLANCE)
        if expected.feasible is False:
            say(f"the throttle seems too low; measuring write rates for {_LOOK:g} s ...")
            expected = _expected_pace(log_dirs, prepared, copies, throttle, _LOOK)
    except KquotaError as error:
        say(f"warning: kquota could not check whether the copies can catch up: {worded(error)}")
        return
    if expected.feasible is None:
        say("warning: kquota could not check whether the copies can catch up: some write rates could not be read")
    if expected.feasible is False:
        raise Refused(
            f"under this throttle the move never ends: {why_never(expected)}. To start it anyway, give --force; "
            "nothing was written"
        )


def _expected_pace(
    log_dirs: LogDirs, prepared: Prepared, copies: Sequence[Move], throttle: ByteRate, seconds: float
) -> Pace:
    now = prepared.found.partitions
    brokers = sorted({leader for move in copies if (leader := now[move.partition].leader) is not None})
    topics = sorted({move.partition.topic for move in copies})
    seen = sampled(log_dirs, listed(log_dirs, brokers, topics), seconds)
    sizes = {r.partition: r.size for log_dir in seen.log_dirs for r in log_dir.replicas if r.leader}
    return pace(carried(copies, now, sizes, seen.rates), throttle)


def _value(value: str | None) -> str:
    return "unset" if value is None else value or "empty"
