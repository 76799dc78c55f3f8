"""Notes on stderr of `reassign-partitions`, `move run`, `move resume` and `move abort`: observations and next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say, worded
from kquota.cli.options import ELECTION_BATCH
from kquota.cli.suggestion import plan_argument, readable_again, suggested
from kquota.list_text import few, named_brokers
from kquota.measure import agreeing, counted, human_bytes, human_duration
from kquota.reassign import log_dirs
from kquota.reassign.progress import Progress
from kquota.reassign.throttle_writes import Unread
from kquota.reassign.verification import Verification, named
from kquota.reassign.wave import UNLIMITED
from kquota.terms import TopicPartition

if TYPE_CHECKING:
    from kquota.pace.share import Pace
    from kquota.reassign.cancellation import Cancellable, Cancellation
    from kquota.reassign.execution import Execution
    from kquota.reassign.log_dir_actions import Started
    from kquota.reassign.preparation import Prepared
    from kquota.reassign.run import Run

_SHOWN: Final = 10


def of_execution(done: Execution, record: str | None) -> Iterator[str]:
    """Yield the lines after `--execute`: the run, partitions that were already moving, and errors about log dirs.

    `record` is the place where the run is recorded, or None without a run.
    """
    if done.run is None:
        yield "every partition already has the replicas of the plan, so no move was started"
    else:
        yield f"run {done.run.id} is recorded, with every previous value and the rollback plan, in {record}"
    if done.running:
        moving = agreeing(len(done.running), "partition", "is", "are")
        yield f"{moving} already moving: {few(done.running, _SHOWN)}"
    yield from of_log_dirs(done.log_dirs)


def of_expected(prepared: Prepared, expected: Pace | None) -> Iterator[str]:
    """Yield a line with the expected time of a new run. Yield nothing if `expected` is None, or the time is unknown.

    Also yield nothing for a continued run, because its record has the expected time of its start.
    """
    run = prepared.run
    if run is None or prepared.known is not None or run.course.expected is None or expected is None:
        return
    about = "about" if run.limits == UNLIMITED else "at least"
    where = "" if (share := expected.bottleneck) is None else f". The bottleneck is broker {share.broker}"
    size = human_bytes(expected.work.bytes)
    yield f"expected time: {about} {human_duration(run.course.expected)} to copy {size}{where}"


def of_log_dirs(done: Started, what: str = "started", again: str | None = None) -> Iterator[str]:
    """Yield errors about moves between log dirs that a broker refused, or did not begin or stop in time.

    `what` is "started" or "cancelled". `again` is the next step for moves that did not begin or stop in time. None
    means to execute the plan again or to resume the run.
    """
    again = again or f"Execute the same plan again, or run {suggested('move resume')}"
    if done.refused:
        yield f"error: {log_dirs.failed(done.refused)}"
    if done.waiting:
        yield f"error: {log_dirs.timed_out(done.waiting, what)}. {again}"


def of_missing(what: Cancellable) -> Iterator[str]:
    """Yield a warning about partitions of the plan that do not exist."""
    if what.missing:
        those = agreeing(len(what.missing), "partition", "does", "do")
        yield f"warning: {those} not exist ({few(what.missing, _SHOWN)}). Check the plan"


def _verify(plan: Path | None) -> str:
    return f"Run {suggested(f'reassign-partitions --verify --reassignment-json-file {plan_argument(plan)}')}"


def of_cancellation(done: Cancellation, plan: Path | None = None, *, preserved: bool = False) -> Iterator[str]:
    """Yield the lines after `--cancel`: errors about log dirs, restored values, and partitions that were not
    changed. `preserved` means that `--preserve-throttles` was given.
    """
    found = done.verification
    kept = " --preserve-throttles" if preserved else ""
    again = suggested(f"reassign-partitions --cancel --reassignment-json-file {plan_argument(plan)}{kept}")
    yield from of_log_dirs(done.log_dirs, "cancelled", f"Run {again}")
    yield from _of_restored(found, _verify(plan))
    if ended := [status.partition for status in found.statuses if status.progress is Progress.DONE]:
        those = agreeing(len(ended), "partition", "already has", "already have")
        them = "it" if len(ended) == 1 else "them"
        run = "RUN" if found.run is None else found.run.id
        yield (
            f"{those} the replicas of the plan, so --cancel did not change {them}: {few(ended, _SHOWN)}. To move "
            f"{them} back, execute the rollback plan. If kquota started the move, this plan is the field `rollback` in "
            f"the output of "
            f"{suggested(f'move report {run} --output json')}"
        )


def in_place(found: Verification, *, undoing: bool) -> str:
    """Return as text, with a verb, how many partitions have the wanted replicas.

    If all partitions have them, but some replicas are not in their wanted log dir, return how many replicas are in
    their wanted log dir. `undoing` is as in `of_verification`.
    """
    whose = "from before the move" if undoing else "of the plan"
    if _only_log_dirs(found):
        done, every = sum(status.progress is Progress.DONE for status in found.log_dirs), len(found.log_dirs)
        where = "is in the log dir" if 1 in (done, every) else "are in the log dirs"
        return f"{done:,} of {counted(every, 'replica')} {where} {whose}"
    done, every = sum(status.progress is Progress.DONE for status in found.statuses), len(found.statuses)
    verb = "has" if 1 in (done, every) else "have"
    return f"{done:,} of {counted(every, 'partition')} {verb} the replicas {whose}"


def _only_log_dirs(found: Verification) -> bool:
    in_place = all(status.progress is Progress.DONE for status in found.statuses)
    return in_place and any(status.progress is not Progress.DONE for status in found.log_dirs)


def of_verification(
    found: Verification,
    *,
    again: str | None = None,
    undoing: bool = False,
    preserved: bool = False,
    plan: Path | None = None,
) -> Iterator[str]:
    """Yield the lines after `--verify`: restored values, pending values, errors and the next step.

    `again` is the sentence about how to check again, by default with the `--verify` command of `plan`. With `undoing`,
    the verified plan is a rollback plan. With `preserved`, the check did not read the runs, because
    `--preserve-throttles` restores nothing. `plan` is a file that names the partitions, or None if the operator gave
    none.
    """
    again = again or f"{_verify(plan)} again"
    yield from _of_restored(found, again)
    count = in_place(found, undoing=undoing)
    if found.waiting:
        run = "" if found.run is None else f" of run {found.run.id}"
        has = "has" if len(found.waiting) == 1 else "have"
        resume, abort = suggested("move resume"), suggested("move abort")
        if found.run is not None:
            resume = suggested(f"move resume --run {found.run.id}")
            abort = suggested(f"move abort --run {found.run.id}")
        yield (
            f"error: {counted(len(found.waiting), 'move')}{run} {has} not started, because kquota was interrupted or "
            f"is not done yet. If kquota is no longer running, {resume} continues the run, and {abort} undoes it"
        )
    elif found.undone is not None:
        yield (
            f"error: run {found.undone.id} of this plan {_ended(found.undone)}, so {count}. This plan needs no "
            "further --verify"
        )
    elif found.verdict is Progress.ELSEWHERE:
        yield _of_elsewhere(found, count, undoing=undoing)
    if found.led_by_others and (found.undone is not None or (undoing and found.verdict is Progress.DONE)):
        yield _of_leaders(found.led_by_others, plan)
    if found.verdict is Progress.IN_PROGRESS:
        yield from _of_moving(found, count, plan, again=again, undoing=undoing, preserved=preserved)


def _of_elsewhere(found: Verification, count: str, *, undoing: bool) -> str:
    """Return the error for moves that have ended without the wanted replicas. `count` is the result of `in_place`, and
    `undoing` is as in `of_verification`.
    """
    elsewhere = {status.partition for status in found.statuses if status.progress is Progress.ELSEWHERE}
    elsewhere |= {status.partition for status in found.log_dirs if status.progress is Progress.ELSEWHERE}
    absent = [s.partition for s in found.statuses if s.partition in elsewhere and not s.replicas]
    ended = f"error: the {'rollback has' if undoing else 'moves have'} ended, but {count}"
    if absent:
        ended += f" ({agreeing(len(absent), 'partition', 'does', 'do')} not exist: {few(absent, _SHOWN)})"
    if found.unrecorded:
        return (
            f"{ended}. No run of this plan is recorded here, so another client, or kquota on another host, may have "
            "undone the plan. In that case, this plan needs no further --verify"
        )
    if absent and len(absent) == len(elsewhere):
        return f"{ended}. If you have deleted {'it' if len(absent) == 1 else 'them'}, nothing is left to move"
    if undoing:
        what, where = "replicas", suggested("topics --describe")
        if _only_log_dirs(found):
            what, where = "log dirs", suggested("log-dirs --describe")
        return f"{ended}. See the current {what} with {where}"
    if absent:
        return f"{ended}. Remove the missing partitions from the plan, and execute it again"
    return f"{ended}. Execute the plan again, or correct it"


def _ended(run: Run) -> str:
    if run.course.verdict == Progress.DONE.value and not run.aborting:
        return "was done, but a later move has moved partitions back"
    return "was undone, cancelled or refused"


def _of_moving(
    found: Verification, count: str, plan: Path | None, *, again: str, undoing: bool, preserved: bool
) -> Iterator[str]:
    """Yield the line about moves that are still running, and a line about a paused run. `count` is the result of
    `in_place`. The other parameters are those of `of_verification`.
    """
    back = "it then restores the throttle"
    if found.run is not None and not found.run.taken:
        back = "it then ends the run"
    if found.run is None:
        back = (
            "it then removes only this plan's entries from the throttled replica lists, because no open run of this "
            "plan is recorded here"
        )
    if preserved:
        yield f"{count}. {_verify(plan)} without --preserve-throttles until it exits with 0"
    elif found.run is not None and found.run.aborting and not undoing:
        yield f"run {found.run.id} of this plan is being undone: {count}. {again} until it exits with 1: {back}"
    else:
        yield f"{count}. {again} until it exits with 0: {back}"
    if found.run is not None and found.run.paused:
        continues = suggested(f"move adjust --continue --run {found.run.id}")
        yield f"run {found.run.id} is paused. Continue it: {continues}"


def _of_leaders(names: Sequence[TopicPartition], plan: Path | None) -> str:
    one = len(names) == 1
    those, leaders = agreeing(len(names), "partition", "is", "are"), "preferred leader" if one else "preferred leaders"
    return (
        f"note: {those} not led by {'its' if one else 'their'} {leaders} ({few(names, _SHOWN)}). Elect the {leaders}: "
        f"{election(names, plan)}"
    )


def election(names: Sequence[TopicPartition], plan: Path | None, batch: int = ELECTION_BATCH) -> str:
    """Return the command that elects the preferred leaders of these partitions.

    The command for one partition names the partition. The command for more partitions works in batches of at most
    `batch`, and reads `plan`, the file that names them. Without a file that can be read again (not a pipe), it elects
    the preferred leaders of the whole cluster.
    """
    rest = f"--all-topic-partitions --batch {batch}"
    if len(names) == 1:
        rest = f"--topic {shlex.quote(names[0].topic)} --partition {names[0].partition}"
    elif (file := readable_again(plan)) is not None:
        rest = f"--path-to-json-file {shlex.quote(file)} --batch {batch}"
    return suggested(f"leader-election --election-type preferred {rest}")


def _of_restored(found: Verification, again: str) -> Iterator[str]:
    for change in found.restored:
        if change.after is not None and not change.setting.is_list:
            yield f"{change.setting} is restored to {change.after!r}"
    yield from _of_others(found)
    yield from found.notes
    for setting, error in sorted(found.pending.items()):
        # A setting that kquota did not set and could not read may be unset.
        ours = not isinstance(error, Unread) or (found.run is not None and setting in found.run.taken)
        yield f"warning: {setting} is {'not restored yet' if ours else 'unknown'} ({worded(error)}). {again}"
    if found.unread:
        are, its = ("is", "its") if len(found.unread) == 1 else ("are", "their")
        yield (
            f"error: {named_brokers(found.unread)} {are} dead, so {its} throttle rates are unknown. No run of this "
            f"plan is recorded here. {suggested('throttle doctor --fix')} removes the rates if nothing needs them"
        )
    if found.unknown:
        values = ",".join(dict.fromkeys(found.unknown.values()))
        why = "Over this connection kquota sees no shared record, so kquota on another host may have set the throttle"
        if found.gap is not None:
            why = f"kquota on another host may have set the throttle: {worded(found.gap)}"
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
    if found.lost and found.run is not None:
        yield (
            f"warning: another client removed {few(found.lost, 1)}, which run {found.run.id} had set. The "
            f"copies continue without this throttle. Set it again: {suggested(f'move resume --run {found.run.id}')}"
        )
    if found.too_early:
        yield (
            "--clear-all had no effect, because moves are running. Kafka's --verify behaves the same way. Run the same "
            "command again when the moves have ended"
        )
    yield from (f"--clear-all removed the throttle of run {run}" for run in found.cleared_of)


@contextmanager
def resumable(moving: Path | None = None) -> Iterator[None]:
    """After Ctrl-C, SIGTERM or SIGHUP, print how to continue or undo the moves. Then raise KeyboardInterrupt again.

    `moving` is the file of a plan whose moves are submitted. The message then also names the command that ends their
    run.
    """
    try:
        yield
    except KeyboardInterrupt:
        then = ""
        if moving is not None:
            then = f". Running moves continue. {_verify(moving)} until it exits with 0: it then ends the run"
        say(
            f"stopped. Recorded runs stay open: {suggested('move status')} shows them, {suggested('move resume')} "
            f"continues them, and {suggested('move abort --run RUN')} undoes one of them{then}"
        )
        raise
