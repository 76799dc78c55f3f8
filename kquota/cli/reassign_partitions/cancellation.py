"""`reassign-partitions --cancel`: stop the moves of a plan, and restore its throttle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, JsonObject, key, spread
from kquota.cli.reassign_partitions import plan_option, remarks
from kquota.cli.reassign_partitions.answer import log_dirs_code, placed, replica_texts
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.reassign_partitions.verification import clearing, verification_document
from kquota.list_text import joined
from kquota.reassign import log_dir_actions, log_dirs, words
from kquota.reassign.cancellation import Cancellable, Cancellation, cancel, cancellable
from kquota.reassign.log_dir_actions import Started
from kquota.reassign.moves import Replicas
from kquota.terms import ReplicaId, TopicPartition


def run(at: world.Where, options: ReassignOptions) -> Cancelled | WouldCancel:
    """Stop the running moves of the plan, and restore the throttle unless `--preserve-throttles` is given.

    A dry run only returns the moves to stop. The exit code is as for `cancelled`, or for a dry run as for
    `would_cancel`. Raises Invalid for an invalid plan or timeout. Without `--force`, raises Refused if too few replicas
    would stay in sync. Raises Busy if another kquota holds the lock. Also raises the errors of `cancel`.
    """
    timeout, plan = plan_option.timeout(options), plan_option.plan(at, options)
    hold = None if options.dry_run else move_stores.LockRequest(doing="reassign-partitions --cancel")
    with remarks.resumable(), move_stores.staged(at, options.state_dir, hold) as stage:
        what = cancellable(stage, plan, force=options.force, preserve=options.preserve_throttles)
        if options.dry_run:
            wanted = log_dirs.of(plan)
            stopped = log_dir_actions.would_cancel(stage.dirs, wanted) if stage.dirs is not None else Started()
            return would_cancel(what, stopped)
        done = cancel(stage, what, preserve=options.preserve_throttles, timeout=timeout)
    remarked = remarks.of_cancellation(done, options.reassignment_json_file, preserved=options.preserve_throttles)
    return cancelled(done, (*remarks.of_missing(what), *remarked))


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldCancel(Answer):
    """The answer to a dry run of `--cancel`: the moves to stop. `log_dirs` has the log dirs in which replicas stay."""

    dry_run: bool = True
    cancel: Mapping[TopicPartition, Replicas | None] = key(form=placed)
    log_dirs: Mapping[ReplicaId, str] = key(form=replica_texts)

    def text(self) -> Iterator[str]:
        some = self.cancel or self.log_dirs
        yield "kquota would cancel these moves (nothing was cancelled):" if some else words.NONE_CANCELLED
        for name, replicas in self.cancel.items():
            yield f"  {name}{'' if replicas is None else f', back to {joined(replicas)}'}"
        for (name, broker), log_dir in self.log_dirs.items():
            yield f"  {name} on broker {broker}: stays in {log_dir}"


def would_cancel(found: Cancellable, stopped: Started) -> WouldCancel:
    """Return the answer to a dry run. `stopped` has the moves between log dirs that would be stopped.

    The exit code is 8 if log dirs are unknown, otherwise 0.
    """
    unknown = {broker: why for (_, broker), why in stopped.waiting.items()}
    return WouldCancel(
        cancel=found.targets,
        log_dirs=stopped.begun,
        notes=(
            *remarks.of_missing(found),
            *(f"warning: the log dirs of broker {b} are unknown ({why})" for b, why in sorted(unknown.items())),
        ),
        code=log_dirs_code(stopped),
    )


def _document(done: Cancellation) -> JsonObject:
    return {
        "cancelled": done.cancelled,
        "log_dirs_cancelled": replica_texts(done.log_dirs.begun),
        "log_dirs_failed": replica_texts(done.log_dirs.refused),
        "log_dirs_waiting": replica_texts(done.log_dirs.waiting),
        **verification_document(done.verification),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Answer):
    """The answer of `--cancel`, printed like kafka-reassign-partitions."""

    done: Cancellation = spread(_document)

    def text(self) -> Iterator[str]:
        cancelled, moved = self.done.cancelled, self.done.log_dirs
        yield words.cancelled(cancelled) if cancelled else words.NONE_CANCELLED
        if moved.begun:
            yield from log_dirs.started_lines(moved.begun).split("\n")
        elif not (moved.refused or moved.waiting):
            yield log_dirs.NONE_ACTIVE
        yield from clearing(self.done.verification)


def cancelled(done: Cancellation, notes: tuple[str, ...]) -> Cancelled:
    """Return the answer. The exit code is 1 if a broker refused to stop a move between log dirs. Otherwise, it is 8 if
    such a move has not stopped yet, or if a throttle is unknown or not restored yet. If nothing is left to do, it is 0.

    Other replicas than those of the plan are not a failure, because `--cancel` undoes moves.
    """
    found = done.verification
    left = found.pending or found.unknown or found.unread
    return Cancelled(done=done, notes=notes, code=log_dirs_code(done.log_dirs) or (NOT_YET if left else DONE))
