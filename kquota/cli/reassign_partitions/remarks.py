"""What `reassign-partitions`, `move resume` and `move abort` say on stderr: what to know, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say
from kquota.cli.suggestion import suggested
from kquota.list_text import few
from kquota.reassign import log_dirs
from kquota.reassign.progress import Progress
from kquota.reassign.verification import Verification, named

if TYPE_CHECKING:
    from kquota.reassign.cancellation import Cancellation
    from kquota.reassign.execution import Execution
    from kquota.reassign.log_dir_actions import Started

_SHOWN: Final = 10


def of_execution(done: Execution, record: str | None) -> Iterator[str]:
    """For stderr."""
    if done.run is None:
        yield "every partition is where the plan wants it: nothing was written"
    else:
        yield f"run {done.run.id} is on record, with every prior value and the plan back, in {record}"
    if done.running:
        yield f"under way already: {few(done.running, _SHOWN)}"
    yield from of_log_dirs(done.log_dirs)


def of_log_dirs(done: Started, what: str = "started", again: str | None = None) -> Iterator[str]:
    """For stderr: which replicas did not begin to go between log dirs, and what to do."""
    again = again or f"execute the same plan again, or {suggested('move resume')}"
    if done.refused:
        yield f"error: {log_dirs.failed(done.refused)}"
    if done.waiting:
        yield f"error: {log_dirs.timed_out(done.waiting, what)}: {again}"


def of_cancellation(done: Cancellation) -> Iterator[str]:
    """For stderr."""
    found = done.verification
    yield from of_log_dirs(done.log_dirs, "cancelled", "cancel the same plan again")
    yield from _of_restored(found)
    if ended := [status.partition for status in found.statuses if status.progress is Progress.DONE]:
        yield (
            f"ended before, and stay where the plan wanted them: {few(ended, _SHOWN)}; the plan that --execute printed "
            "to save for rollback takes them back"
        )


def of_verification(found: Verification) -> Iterator[str]:
    """For stderr: what does not come back as unset, what is still to come, and what to do next."""
    yield from _of_restored(found)
    done = sum(status.progress is Progress.DONE for status in found.statuses)
    count = f"{done} of {len(found.statuses)} partitions are where the plan wants them"
    if found.waiting:
        run = "" if found.run is None else f" of run {found.run.id}"
        yield (
            f"error: {len(found.waiting)} partitions{run} were never handed over, as its kquota died: "
            f"{suggested('move resume')} goes on, {suggested('move abort')} goes back"
        )
    elif found.verdict is Progress.ELSEWHERE:
        if gone := [s.partition for s in found.statuses if s.progress is Progress.ELSEWHERE and not s.replicas]:
            yield f"not there any more: {few(gone, _SHOWN)}"
        yield f"error: no move runs any more and only {count}: execute the plan again, or correct it"
    if found.verdict is Progress.IN_PROGRESS:
        back = "it gives the throttle back"
        if found.run is None:
            back = "no run of it is on record here, so of a throttle only list entries go that the plan proves"
        yield f"{count}; run --verify again until it exits 0: {back}"


def _of_restored(found: Verification) -> Iterator[str]:
    for change in found.restored:
        if change.after is not None and not change.setting.is_list:
            yield f"{change.setting} is {change.after!r} again"
    yield from _of_others(found)
    yield from found.notes
    for setting, why in sorted(found.pending.items()):
        yield f"warning: still to be given back: {setting} ({why}); run --verify again"
    if found.unknown:
        values = ",".join(dict.fromkeys(found.unknown.values()))
        yield (
            f"error: a throttle stays, and it is unknown who needs it: {named(found.unknown)} ({values}). Over this "
            "connection kquota sees no record that hosts share, so another host may have set it. See "
            f"{suggested('throttle show')} and {suggested('throttle doctor')}"
        )


def _of_others(found: Verification) -> Iterator[str]:
    """What others have taken away of this run's throttle, and what --clear-all has taken away of theirs."""
    if found.lost and found.run is not None:
        more = f" and {len(found.lost) - 1} more" if len(found.lost) > 1 else ""
        yield (
            f"warning: somebody took away {found.lost[0]}{more}, which run {found.run.id} had set: the move goes on "
            "without; --execute the same plan again to set it again"
        )
    if found.too_early:
        yield "moves are running, so --clear-all took nothing else away, as Kafka"
    yield from (f"--clear-all took away what run {run} had set" for run in found.cleared_of)


@contextmanager
def resumable() -> Iterator[None]:
    """Whoever stops a move half-way is told how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            f"stopped: {suggested('move status')} says what is open; {suggested('move resume')} goes on, "
            f"{suggested('move abort')} goes back; what is on record stays on record"
        )
        raise
