"""The actions of `reassign-partitions` that change a cluster: carried out, told on stderr, printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.options import Output

if TYPE_CHECKING:
    from kquota.reassign.plan import Plan
    from kquota.reassign.preparation import Asked
    from kquota.reassign.verification import Verification


def execute(
    at: world.Where,
    plan: Plan,
    asked: Asked,
    state_dir: Path | None,
    output: Output,
    *,
    timeout: float,
    dry_run: bool,
) -> int:
    """Start the moves of the plan, and say where the way back is on record."""
    from kquota.cli.reassign_partitions import printed
    from kquota.cli.reassign_partitions.keeping_up import must_keep_up
    from kquota.reassign.execution import carry_out
    from kquota.reassign.preparation import prepare

    holding = None if dry_run else "reassign-partitions --execute"
    with resumable(), world.staged(at, state_dir, holding) as stage:
        prepared = prepare(stage.cluster, stage.runs, world.SystemClock(), plan, asked, stage.dirs)
        for note in prepared.notes:
            say(f"warning: {note}")
        if not asked.force:
            must_keep_up(stage.log_dirs, prepared, asked.throttle)
        if dry_run:
            print(printed.prepared(prepared, output))
            return DONE
        done = carry_out(prepared, say, stage.dirs, timeout)
        record = None if done.run is None else stage.runs.place(done.run)
    for line in printed.executed_remarks(done, record):
        say(line)
    print(printed.executed(done, asked.throttle, asked.log_dir_throttle, record, output))
    return printed.log_dirs_code(done.log_dirs)


def verify(
    at: world.Where, plan: Plan, state_dir: Path | None, output: Output, *, preserve: bool, clear_all: bool
) -> int:
    """Say what has become of the plan, and give back what has ended."""
    from kquota.cli.reassign_partitions import printed
    from kquota.reassign import verification

    holding = None if preserve else "reassign-partitions --verify"
    with resumable(), world.staged(at, state_dir, holding) as stage:
        found = verification.verify(
            stage.cluster,
            stage.runs,
            world.SystemClock(),
            plan,
            stage.dirs,
            preserve=preserve,
            clear_all=clear_all,
        )
    for line in printed.remarks(found):
        say(line)
    print(printed.verified(found, output))
    return verdict(found)


def cancel(
    at: world.Where,
    plan: Plan,
    state_dir: Path | None,
    output: Output,
    *,
    preserve: bool,
    force: bool,
    timeout: float,
    dry_run: bool,
) -> int:
    """Stop the plan's moves that are under way, put the replicas back and give the throttle back."""
    from kquota.cli.reassign_partitions import printed
    from kquota.reassign import cancellation

    holding = None if dry_run else "reassign-partitions --cancel"
    with resumable(), world.staged(at, state_dir, holding) as stage:
        what = cancellation.cancellable(stage.cluster, stage.runs, plan, force=force)
        if dry_run:
            print(printed.cancellable(what, output))
            return DONE
        done = cancellation.cancel(
            stage.cluster, stage.runs, world.SystemClock(), what, stage.dirs, preserve=preserve, timeout=timeout
        )
    for line in printed.cancelled_remarks(done):
        say(line)
    print(printed.cancelled(done, output))
    return printed.log_dirs_code(done.log_dirs) or (NOT_YET if done.verification.pending else DONE)


def verdict(found: Verification) -> int:
    """0 done, 8 moving or something still to be given back, 1 ended elsewhere."""
    from kquota.reassign.progress import Progress

    if found.verdict is Progress.ELSEWHERE:
        return FAILED
    return NOT_YET if found.pending or found.verdict is Progress.IN_PROGRESS else DONE


@contextmanager
def resumable() -> Iterator[None]:
    """Whoever stops a move half-way is told how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(
            "stopped: kquota move status says what is open; kquota move resume goes on, kquota move abort goes back; "
            "what is on record stays on record"
        )
        raise
