"""`reassign-partitions --execute`: start the moves of a plan under a throttle, or show the planned changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kquota.cli import move_stores, past_moves, rates, world
from kquota.cli.contract import say, worded
from kquota.cli.keeping_up import PacedCopies, must_keep_up
from kquota.cli.output import Answer, JsonObject, hidden, key, spread
from kquota.cli.reassign_partitions import plan_option, remarks
from kquota.cli.reassign_partitions.answer import log_dirs_code, placed, replica_texts
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.errors import Invalid, Refused
from kquota.list_text import joined
from kquota.measure import ByteRate, counted, human_rate, rate_in_full
from kquota.pace.share import Pace
from kquota.reassign import log_dirs, words
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, Prepared, prepare
from kquota.reassign.wave import ListFull
from kquota.settings.change import Change
from kquota.sizes.port import LogDirs
from kquota.terms import ReplicaId, TopicPartition


def run(at: world.Where, options: ReassignOptions, plan: Plan | None = None) -> Executed | WouldExecute:
    """Start the moves of `plan`, by default the plan of the options. A dry run only returns the changes.

    The exit code is that of `log_dirs_code`, and 0 for a dry run. Raises Invalid for invalid options or an invalid
    plan, and Refused if a check of the plan fails. Raises Busy if another kquota holds the lock. Also raises the errors
    of `carry_out`.
    """
    asked = _asked(options)
    timeout, plan = plan_option.timeout(options), plan or plan_option.plan(at, options)
    hold = None if options.dry_run else move_stores.LockRequest(doing="reassign-partitions --execute")
    with remarks.resumable(), move_stores.staged(at, options.state_dir, hold) as stage:
        try:
            prepared = prepare(stage, plan, asked)
        except ListFull as full:
            raise Refused(full, ", or give --throttle-whole-topics to throttle the whole topic") from full
        for line in _announced(prepared, asked, options):
            say(line)
        expected = None if asked.force else _must_keep_up(stage.log_dirs, prepared)
        if options.dry_run:
            return would_execute(prepared)
        started = stage.clock.now()
        prepared = past_moves.with_course(stage, prepared, expected, options.reason)
        for line in remarks.of_expected(prepared, expected):
            say(line)
        done = carry_out(prepared, say, timeout)
        past_moves.keep_start(stage, prepared, done, expected, started)
        record = None if done.run is None else stage.runs.place(done.run)
        alone = stage.runs.alone
    notes = [*remarks.of_execution(done, record)]
    if done.run is not None and alone is not None:
        notes.append(f"note: other hosts do not see this run: {worded(alone)}")
    applied = prepared.applied
    return Executed(
        run=None if done.run is None else done.run.id,
        record=record,
        throttle=applied.throttle,
        done=done,
        log_dir_throttle=applied.log_dir_throttle,
        notes=tuple(notes),
        code=log_dirs_code(done.log_dirs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldExecute(Answer):
    """The changes that `--execute` would make. Nothing was written."""

    dry_run: bool = True
    changes: tuple[Change, ...]
    """The throttle settings that would change."""
    moves: Mapping[TopicPartition, Replicas] = key(form=placed)
    """The moves of the first wave that are not running yet."""
    log_dirs: Mapping[ReplicaId, str] = key(form=replica_texts)
    """The moves between log dirs."""
    later: int
    """The number of moves after the first wave."""
    rollback: Plan = key(form=Plan.document)
    """The plan that undoes the moves."""

    def text(self) -> Iterator[str]:
        yield from words.current_assignment(self.rollback).split("\n")
        yield ""
        yield "kquota would make these changes (nothing was written):"
        for change in self.changes:
            yield f"  {change.setting}: {_value(change.before)} -> {_value(change.after)}"
        for name, target in self.moves.items():
            yield f"  move {name} to {joined(target)}"
        for (name, broker), log_dir in self.log_dirs.items():
            yield f"  move {name} on broker {broker} into {log_dir}"
        if self.later:
            yield f"  and {counted(self.later, 'more move')} after the first wave"
        if not self.changes and not self.moves and not self.log_dirs and not self.later:
            yield "  nothing"


def would_execute(found: Prepared) -> WouldExecute:
    """Return the answer to a dry run."""
    return WouldExecute(
        changes=found.changes,
        moves={move.partition: move.target for move in found.wave if not move.submitted},
        log_dirs=found.log_dirs,
        later=max(0, len(found.moving) - len(found.wave)),
        rollback=found.rollback,
    )


def _document(done: Execution) -> JsonObject:
    return {
        "started": done.started,
        "running": done.running,
        "log_dirs_started": replica_texts(done.log_dirs.begun),
        "log_dirs_failed": replica_texts(done.log_dirs.refused),
        "log_dirs_waiting": replica_texts(done.log_dirs.waiting),
        "rollback": done.rollback.document(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed(Answer):
    """The answer of `--execute`, printed like kafka-reassign-partitions, but without an empty list of started moves."""

    run: str | None
    """The id of the run, or None if every replica was in place."""
    record: str | None
    """The place where the run is recorded, or None without a run."""
    throttle: ByteRate | None
    """The throttle rate that this command set, or None if it set none."""
    done: Execution = spread(_document)
    log_dir_throttle: ByteRate | None = hidden()
    """The rate that this command set for copies between log dirs, or None if it set none."""

    def text(self) -> Iterator[str]:
        yield from words.current_assignment(self.done.rollback).split("\n")
        run = self.done.run
        if run is not None and (self.throttle or self.log_dir_throttle) is not None and run.taken:
            yield words.RUN_VERIFY
            if self.throttle is not None:
                yield words.throttle_set(self.throttle)
            if self.log_dir_throttle is not None:
                yield log_dirs.throttle_set(self.log_dir_throttle)
        if self.done.started:
            yield words.started(self.done.started)
        if begun := self.done.log_dirs.begun:
            yield from log_dirs.started_lines(begun).split("\n")


def _asked(options: ReassignOptions) -> MoveRequest:
    throttle = _throttle(options)
    if options.unthrottled and throttle is not None:
        raise Invalid("--unthrottled and --throttle cannot be combined. Give one of them")
    log_dir_throttle = rates.any_throttle(options.replica_alter_log_dirs_throttle, "--replica-alter-log-dirs-throttle")
    return MoveRequest(
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
            raise Invalid("--replication-quota is KIP-73's name for --throttle. Give one of them")
        text, option = options.replication_quota, "--replication-quota"
        say("note: --replication-quota is KIP-73's name for --throttle. Kafka's tool accepts only --throttle")
    return rates.any_throttle(text, option)


def _announced(prepared: Prepared, asked: MoveRequest, options: ReassignOptions) -> Iterator[str]:
    applied, run = prepared.applied, prepared.run
    if applied.throttle is not None:
        yield f"throttle: {rate_in_full(applied.throttle)} into and out of every broker that takes part"
    if applied.log_dir_throttle is not None:
        rate = rate_in_full(applied.log_dir_throttle)
        yield f"log dir throttle: {rate} between the log dirs of every broker that takes part"
    yield from (f"warning: {note}" for note in prepared.notes)
    if run is None:
        return
    if applied.throttle != asked.throttle:
        within = "To limit moves between log dirs, give --replica-alter-log-dirs-throttle RATE"
        more = f". {within}" if prepared.log_dirs and asked.log_dir_throttle is None else ""
        yield f"note: --throttle has no effect, because the plan copies nothing between brokers{more}"
    if applied.log_dir_throttle != asked.log_dir_throttle:
        yield "note: --replica-alter-log-dirs-throttle has no effect, because the plan moves nothing between log dirs"
    if options.unthrottled and run.rate is not None:
        raise Refused(
            f"run {run.id} of this plan is throttled ({human_rate(run.rate)}), and --unthrottled does not remove a "
            "throttle. Leave out --unthrottled, or give a high --throttle RATE instead. Nothing was written"
        )
    explicit = options.unthrottled or options.throttle is not None or options.replication_quota is not None
    if run.rate is None and any(move.destinations for move in prepared.moving) and not explicit:
        yield (
            "note: no throttle is given, so the copies use all the network and disk bandwidth that brokers have. Give "
            "--throttle RATE to limit them, or --unthrottled if this is intended"
        )


def _must_keep_up(log_dirs: LogDirs | None, prepared: Prepared) -> Pace | None:
    rate = None if prepared.run is None else prepared.run.rate
    if rate is None or (prepared.applied.throttle is None and not prepared.changes):
        return None
    copies = PacedCopies(moves=prepared.moving, partitions=prepared.found.partitions)
    return must_keep_up(log_dirs, copies, rate)


def _value(value: str | None) -> str:
    return "unset" if value is None else value or "empty"
