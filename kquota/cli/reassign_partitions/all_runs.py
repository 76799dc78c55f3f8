"""`reassign-partitions --verify --all-runs`: verify all open runs of moves, and restore throttles of ended moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from kquota.cli import move_stores, past_moves, world
from kquota.cli.contract import DONE, FAILED, NOT_YET, worded, worst
from kquota.cli.output import Answer, Part, hidden, spread
from kquota.cli.reassign_partitions import remarks
from kquota.cli.reassign_partitions.command import ReassignOptions
from kquota.cli.reassign_partitions.verification import Verified, verified
from kquota.errors import Busy, Invalid, KquotaError
from kquota.measure import counted
from kquota.reassign import log_dirs
from kquota.reassign.progress import Progress
from kquota.reassign.run import Purpose, Run, with_id
from kquota.reassign.verification import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerified(Part):
    """An open run of a move, and its verification."""

    run: str
    """The id of the run."""
    owner: str | None
    """The process that began the run, as text. None if it was not recorded."""
    verified: Verified | None = spread()
    """None if the state of the run is unknown."""
    why: str | None = None
    """The reason why the state is unknown, or None if it is known."""
    written: bool = hidden(default=True)
    """False if the check was read-only."""

    @property
    def code(self) -> int:
        """The exit code: 1 if the state is unknown, otherwise that of `verified`. A read-only check has 8
        instead of 0.
        """
        if self.verified is None:
            return FAILED
        return self.verified.code if self.written else self.verified.code or NOT_YET

    @property
    def line(self) -> str:
        """The state of the run, as one line of text."""
        if self.verified is None:
            return f"{self.run}: unknown: {self.why}"
        found = self.verified.found
        done = sum(one.progress is Progress.DONE for one in found.statuses)
        progress = f"{done:,} of {counted(len(found.statuses), 'partition')} done"
        if self.owner is not None:
            progress += f", started by {self.owner}"
        if found.verdict is not Progress.DONE:
            return f"{self.run}: {found.verdict.value}: {progress}"
        restored = "done, but a throttle is not restored yet"
        if found.unknown and not found.pending:
            restored = "done, but kquota left a throttle unchanged, because its run is unknown"
        elif self.verified.code == DONE:
            restored = "done" if self.written else "done, but this check restored nothing"
        return f"{self.run}: {restored}: {progress}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRunsVerified(Answer):
    """The open runs of moves in the cluster, oldest first."""

    runs: tuple[RunVerified, ...]

    def text(self) -> Iterator[str]:
        yield from (one.line for one in self.runs)


def run(at: world.Where, options: ReassignOptions) -> AllRunsVerified:
    """Verify every open run of a move. Restore the throttles of moves that have ended, unless `--preserve-throttles` is
    given or another kquota holds the lock.

    The exit code is that of the worst run, and 1 is worse than 8. It is also 1 if the state of other recorded runs is
    unknown.

    Raises Invalid if `--reassignment-json-file` or `--clear-all` is given. Raises Refused if a journal cannot be
    read. Raises Busy if another process takes over the lock, and Unreachable if the cluster does not answer.
    """
    for name, given in (
        ("--reassignment-json-file", options.reassignment_json_file is not None),
        ("--clear-all", options.clear_all),
    ):
        if given:
            raise Invalid(f"--all-runs verifies every open run. Leave out {name}")
    hold = (
        None
        if options.preserve_throttles
        else move_stores.LockRequest(doing="reassign-partitions --verify", later=True)
    )
    with remarks.resumable(), move_stores.staged(at, options.state_dir, hold) as stage, ExitStack() as locks:
        notes: list[str] = []
        writes = not options.preserve_throttles
        found: list[RunVerified] = []
        if _moving(stage):
            try:
                locks.enter_context(stage.hold())
            except Busy as error:
                writes = False
                notes.append(f"note: {worded(error)}. This check restored nothing")
            # Read the runs again, because another kquota may have ended a run before this command took the lock.
            looked_at = [_one(stage, each.id, at, writes=writes) for each in _moving(stage)]
            found = [one for one in looked_at if one is not None]
        if not found:
            notes += ["no run of a move is open", *world.unseen(stage.runs.unseen)]
        unknown = list(_unknown(stage))
    notes += [line for one in found for line in _remarks(one)]
    codes = [one.code for one in found] + ([FAILED] if unknown else [])
    return AllRunsVerified(
        runs=tuple(found),
        notes=(*notes, *unknown),
        code=worst(codes),
    )


def _moving(stage: move_stores.Stage) -> list[Run]:
    return [each for each in stage.runs.unfinished() if each.purpose is Purpose.MOVE]


def _one(stage: move_stores.Stage, name: str, at: world.Where, *, writes: bool) -> RunVerified | None:
    """Verify one run. Return None if another kquota has ended the run, which is possible while this command does not
    hold the lock.
    """
    # Read the run again, because the previous run may have ended and passed its rates on to this run.
    latest = with_id(_moving(stage), name)
    if latest is None:
        return None
    goal, owner = latest.goal, None if latest.owner is None else str(latest.owner)
    began = stage.clock.now()
    try:
        if at.zookeeper is not None:
            log_dirs.must_have_brokers(goal)
        found = verify(stage, goal, preserve=not writes)
    except Busy:
        raise
    except KquotaError as error:
        return RunVerified(run=name, owner=owner, verified=None, why=worded(error))
    if writes:
        past_moves.keep_look(stage, found, began)
    again = "Run the same command again"
    shown = verified(found, tuple(remarks.of_verification(found, again=again, undoing=latest.aborting)))
    return RunVerified(run=name, owner=owner, verified=shown, written=writes)


def _remarks(one: RunVerified) -> Iterator[str]:
    if one.verified is None:
        yield f"error: run {one.run}: {one.why}"
        return
    for line in one.verified.notes:
        kind, _, rest = line.partition(": ")
        if kind in ("error", "warning", "note"):
            yield line if one.run in rest else f"{kind}: run {one.run}: {rest}"


def _unknown(stage: move_stores.Stage) -> Iterator[str]:
    if stage.runs.unreadable:
        names = ", ".join(stage.runs.unreadable)
        what = f"recorded run {names} cannot be read, so its state is unknown"
        if len(stage.runs.unreadable) > 1:
            what = f"these recorded runs cannot be read, so their state is unknown: {names}"
        yield f"error: {what}. Use the version of kquota that wrote the record"
    if stage.runs.hidden and stage.runs.unseen is not None:
        yield f"error: runs of other hosts are unknown: {worded(stage.runs.unseen)}"
