"""Notes on stderr of `reassign-partitions`, `move resume` and `move abort`: observations and next steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say
from kquota.cli.suggestion import suggested
from kquota.list_text import few, named_brokers
from kquota.measure import agreeing, counted
from kquota.reassign import log_dirs
from kquota.reassign.progress import Progress
from kquota.reassign.verification import Verification, named

if TYPE_CHECKING:
    from kquota.reassign.cancellation import Cancellable, Cancellation
    from kquota.reassign.execution import Execution
    from kquota.reassign.log_dir_actions import Started

_SHOWN: Final = 10
_AGAIN: Final = "Run --verify again"


def of_execution(done: Execution, record: str | None) -> Iterator[str]:
    """Yield the lines after --execute."""
    if done.run is None:
        yield "every partition already has the replicas of the plan. Nothing was written"
    else:
        yield f"run {done.run.id} is recorded, with every previous value and the rollback plan, in {record}"
    if done.running:
        moving = agreeing(len(done.running), "partition", "is", "are")
        yield f"{moving} already moving: {few(done.running, _SHOWN)}"
    yield from of_log_dirs(done.log_dirs)


def of_log_dirs(done: Started, what: str = "started", again: str | None = None) -> Iterator[str]:
    """Yield errors about moves between log dirs that a broker refused or did not begin in time, with the next step."""
    again = again or f"Execute the same plan again, or run {suggested('move resume')}"
    if done.refused:
        yield f"error: {log_dirs.failed(done.refused)}"
    if done.waiting:
        yield f"error: {log_dirs.timed_out(done.waiting, what)}. {again}"


def of_missing(what: Cancellable) -> Iterator[str]:
    """Yield a warning about partitions of the plan that do not exist."""
    if what.missing:
        yield f"warning: the plan has partitions that do not exist ({few(what.missing, _SHOWN)}). Check the plan"


def of_cancellation(done: Cancellation) -> Iterator[str]:
    """Yield the lines after --cancel."""
    found = done.verification
    yield from of_log_dirs(done.log_dirs, "cancelled", "Cancel the same plan again")
    yield from _of_restored(found, "Run --verify")
    if ended := [status.partition for status in found.statuses if status.progress is Progress.DONE]:
        were, them = ("was", "it") if len(ended) == 1 else ("were", "them")
        yield (
            f"{counted(len(ended), 'move')} had already ended and {were} not undone: {few(ended, _SHOWN)}. To undo "
            f"{them}, execute the rollback plan that --execute printed"
        )


def in_place(found: Verification, *, undoing: bool) -> str:
    """Return the number of partitions that have the wanted replicas, with a verb. `undoing` is as in
    `of_verification`.
    """
    done, every = sum(status.progress is Progress.DONE for status in found.statuses), len(found.statuses)
    verb, whose = "has" if 1 in (done, every) else "have", "from before the move" if undoing else "of the plan"
    return f"{done} of {counted(every, 'partition')} {verb} the replicas {whose}"


def of_verification(
    found: Verification, *, again: str = _AGAIN, undoing: bool = False, preserved: bool = False
) -> Iterator[str]:
    """Yield the lines after --verify: restored values, pending values and the next step.

    `again` tells the operator how to check again. With `undoing`, the verified plan is a rollback plan. With
    `preserved`, the check did not read the runs, because --preserve-throttles restores nothing.
    """
    yield from _of_restored(found, again)
    count = in_place(found, undoing=undoing)
    if found.waiting:
        run = "" if found.run is None else f" of run {found.run.id}"
        has = "has" if len(found.waiting) == 1 else "have"
        yield (
            f"error: {counted(len(found.waiting), 'move')}{run} {has} not started, because kquota was interrupted or "
            f"is not done yet. If kquota is no longer running, {suggested('move resume')} continues the run, and "
            f"{suggested('move abort')} undoes it"
        )
    elif found.undone is not None:
        yield (
            f"error: run {found.undone.id} of this plan was undone, cancelled or refused, so only "
            f"{count}. This plan needs no further --verify"
        )
    elif found.verdict is Progress.ELSEWHERE:
        if deleted := [s.partition for s in found.statuses if s.progress is Progress.ELSEWHERE and not s.replicas]:
            yield f"deleted partitions: {few(deleted, _SHOWN)}"
        if found.unrecorded:
            yield (
                f"error: the moves have ended, but only {count}. No run of this plan is recorded here, so another "
                "host or client may have undone the plan. In that case, this plan needs no further --verify"
            )
        elif undoing:
            where = suggested("topics --describe")
            yield f"error: the rollback has ended, but only {count}. See the replicas of the others with {where}"
        else:
            yield f"error: the moves have ended, but only {count}. Execute the plan again, or correct it"
    if found.verdict is Progress.IN_PROGRESS:
        back = "it then restores the throttle"
        if found.run is not None and not found.run.taken:
            back = "it then ends the run"
        if found.run is None:
            back = "no run of this plan is recorded here, so --verify removes only list entries that this plan sets"
        if preserved:
            yield f"{count}. Run --verify without --preserve-throttles until it exits with 0"
        elif found.run is not None and found.run.aborting and not undoing:
            yield f"run {found.run.id} of this plan is being undone: {count}. {again} until it exits with 1: {back}"
        else:
            yield f"{count}. {again} until it exits with 0: {back}"
        if found.run is not None and found.run.paused:
            continues = suggested(f"move adjust --continue --run {found.run.id}")
            yield f"run {found.run.id} is paused. Continue it: {continues}"


def _of_restored(found: Verification, again: str) -> Iterator[str]:
    for change in found.restored:
        if change.after is not None and not change.setting.is_list:
            yield f"{change.setting} is restored to {change.after!r}"
    yield from _of_others(found)
    yield from found.notes
    for setting, why in sorted(found.pending.items()):
        yield f"warning: {setting} is not restored yet ({why}). {again}"
    if found.unread:
        yield (
            f"error: {named_brokers(found.unread)}: dead, so the throttle rates are unknown. No run of this plan is "
            f"recorded here. {suggested('throttle doctor --fix')} removes the rates if nothing needs them"
        )
    if found.unknown:
        values = ",".join(dict.fromkeys(found.unknown.values()))
        why = "Over this connection kquota sees no shared record, so another host may have set the throttle"
        if found.unreadable:
            runs = ", ".join(found.unreadable)
            why = f"Recorded run {runs} cannot be read, and may have set the throttle"
            if len(found.unreadable) > 1:
                why = f"These recorded runs cannot be read, and one of them may have set the throttle: {runs}"
        yield (
            f"error: a throttle is still set, and its run is unknown: {named(found.unknown)} ({values}). {why}. See "
            f"{suggested('throttle show')} and {suggested('throttle doctor')}"
        )


def _of_others(found: Verification) -> Iterator[str]:
    """Yield notes about settings of this run that other clients removed, and about the effect of --clear-all."""
    if found.lost and found.run is not None:
        more = f" and {len(found.lost) - 1} more" if len(found.lost) > 1 else ""
        yield (
            f"warning: another client removed {found.lost[0]}{more}, which run {found.run.id} had set. The move "
            "continues without this throttle. To set it again, run --execute with the same plan"
        )
    if found.too_early:
        yield "--clear-all had no effect, because moves are running. Kafka's --verify behaves the same way"
    yield from (f"--clear-all removed the throttle of run {run}" for run in found.cleared_of)


@contextmanager
def resumable() -> Iterator[None]:
    """After Ctrl-C, SIGTERM or SIGHUP, print how to continue or undo the moves."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            f"stopped. Recorded runs stay open: {suggested('move status')} shows them, {suggested('move resume')} "
            f"continues them, and {suggested('move abort')} undoes them"
        )
        raise
