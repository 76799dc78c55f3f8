"""`reassign-partitions --verify`: report the state of a plan, and restore the throttles of moves that have ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kquota.cli import move_stores, past_moves, world
from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Answer, JsonObject, plain, spread
from kquota.cli.reassign_partitions import plan_option, remarks
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.throttle import throughput
from kquota.cli.throttle.changes import pending
from kquota.errors import Invalid, KquotaError
from kquota.reassign import log_dirs, words
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.reassign.verification import Verification, unless_it_writes, verify
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.watch.observation import MoveWatch


def run(
    at: world.Where, options: ReassignOptions, plan: Plan | None = None, watch: MoveWatch | None = None
) -> Verified:
    """Report the state of the plan. Restore the throttles of moves that have ended, unless `--preserve-throttles` is
    given.

    Without `plan`, read the plan of the options. If the check finds an open run of the plan, it also records the
    readings of `watch`. The exit code is as for `verified`.

    Raises Invalid for an invalid plan, and for `--preserve-throttles` together with `--clear-all`. Raises Busy if the
    check needs the lock and another kquota holds the lock. Also raises the other errors of `move_stores.staged`, and
    those of `verify`.
    """
    if options.preserve_throttles and options.clear_all:
        raise Invalid("--preserve-throttles restores nothing and --clear-all removes everything. Give only one of them")
    plan = plan or plan_option.plan(at, options)
    hold = (
        None
        if options.preserve_throttles
        else move_stores.LockRequest(doing="reassign-partitions --verify", later=True)
    )
    with remarks.resumable(), move_stores.staged(at, options.state_dir, hold) as stage:
        looks = not options.preserve_throttles and not options.clear_all
        found = unless_it_writes(stage, plan) if looks else None
        fenced: frozenset[BrokerId] | KquotaError = frozenset()
        if found is None:
            with stage.hold():
                began = stage.clock.now()
                fenced = stage.fenced() if options.clear_all else fenced
                found = verify(
                    stage,
                    plan,
                    preserve=options.preserve_throttles,
                    clear_all=options.clear_all,
                    fenced=() if isinstance(fenced, KquotaError) else fenced,
                )
                past_moves.keep_look(stage, found, began, watch)
    undoing = found.run is not None and found.run.aborting and found.run.goal.targets == plan.targets
    lines = tuple(
        remarks.of_verification(
            found, preserved=options.preserve_throttles, undoing=undoing, plan=options.reassignment_json_file
        )
    )
    if isinstance(fenced, KquotaError):
        found, lines = replace(found, unread=None), (*lines, f"warning: {throughput.unlisted(fenced)}")
    return verified(found, lines)


def verification_document(found: Verification) -> JsonObject:
    """Return the JSON of a verification. In a change, null means unset.

    `log_dir` is the current log dir of a replica that the plan moves into the log dir `target`, or null if the broker
    reported none. A throttle in `unknown` stays set, because it is unknown which run needs it.
    """
    partitions = [
        {**plain(one.partition), "status": one.progress, "replicas": one.replicas, "target": one.target}
        for one in found.statuses
    ]
    in_dirs = [
        {
            **plain(one.partition),
            "broker": one.broker,
            "status": one.progress,
            "log_dir": one.place.current,
            "target": one.target,
        }
        for one in found.log_dirs
    ]
    return {
        "verdict": found.verdict,
        "partitions": partitions,
        "log_dirs": in_dirs,
        "given_back": found.restored,
        "pending": pending(found.pending),
        "waiting": found.waiting,
        "unknown": [{**plain(setting), "value": value} for setting, value in sorted(found.unknown.items())],
        "unread_brokers": found.unread,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Answer):
    """The answer of `--verify`, printed like kafka-reassign-partitions.

    Unlike Kafka's tool, kquota reports as cleared only the settings that it restored.
    """

    found: Verification = spread(verification_document)

    def text(self) -> Iterator[str]:
        yield from words.status_lines(self.found.statuses).split("\n")
        yield from log_dirs.status_lines(self.found.log_dirs).split("\n")
        yield from clearing(self.found)


def verified(found: Verification, notes: tuple[str, ...] = ()) -> Verified:
    """Return the answer.

    The exit code is 1 if replicas are not those of the plan, or if no move is running and a move of the run never
    started. Otherwise, it is 8 if moves are running (for `--clear-all`, anywhere in the cluster), or if a throttle is
    not restored yet. It is also 8 if a throttle or the dead brokers are unknown. If nothing is left to do, it is 0.
    """
    left = found.pending or found.unknown or found.unread != () or found.too_early
    code = NOT_YET if left or found.verdict is Progress.IN_PROGRESS else DONE
    never_started = found.waiting and found.verdict is not Progress.IN_PROGRESS
    return Verified(
        found=found, notes=notes, code=FAILED if found.verdict is Progress.ELSEWHERE or never_started else code
    )


def clearing(found: Verification) -> Iterator[str]:
    """Yield Kafka's lines about the restored settings."""
    settings = [change.setting for change in found.restored]
    if brokers := {setting.broker for setting in settings if setting.kind == "broker"}:
        yield words.clearing_brokers(brokers)
    if topics := {setting.name for setting in settings if setting.kind == "topic"}:
        yield words.clearing_topics(topics)
