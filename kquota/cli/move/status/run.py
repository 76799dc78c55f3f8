"""`kquota move status`: read the open runs, and the state of each on the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kquota.cli import world
from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.move.status.command import MoveStatusOptions
from kquota.cli.output import Answer, Part, hidden, key
from kquota.measure import ByteRate, human_rate
from kquota.reassign.port import Snapshot
from kquota.reassign.progress import Progress, statuses
from kquota.reassign.recovery import RunState, state
from kquota.reassign.run import Owner, Purpose, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterShown(Part):
    """A process that writes runs."""

    owner: Owner = hidden()
    user: str
    host: str
    pid: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun(Part):
    """An open run. `done` of its `partitions` are in place. `throttle` is in bytes per second."""

    run: str
    begun: datetime
    state: RunState = key(form=lambda state: state.name.lower())
    throttle: ByteRate | None
    partitions: int
    done: int
    record: str
    owner: WriterShown | None
    reason: str | None
    revision: int | None
    written_by: WriterShown | None
    written_at: datetime | None

    def lines(self) -> Iterator[str]:
        """Yield its progress, its owner and reason, and its last writer."""
        yield f"{self.run}  {self.state.value}"
        rate = "no throttle" if self.throttle is None else f"throttle {human_rate(self.throttle)}"
        yield f"  {self.done} of {self.partitions} partitions done, {rate}"
        if self.owner is not None:
            why = "" if self.reason is None else f": {self.reason}"
            yield f"  begun by {self.owner.owner} at {_moment(self.begun)}{why}"
        if self.written_by is not None and self.written_at is not None:
            yield f"  last written by {self.written_by.owner} at {_moment(self.written_at)}"
        yield f"  recorded in {self.record}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRuns(Answer):
    """The open runs with moves, oldest first."""

    runs: tuple[OpenRun, ...]

    def text(self) -> Iterator[str]:
        for run in self.runs:
            yield from run.lines()


def run(options: MoveStatusOptions) -> OpenRuns:
    """Show the open runs. The exit code is also 8 if it is unknown whether a run is open."""
    with world.moves(world.where(options.connection), options.state_dir) as (cluster, runs):
        every = runs.unfinished()
        moving = [one for one in every if one.purpose is Purpose.MOVE]
        found = cluster.snapshot(sorted({topic for one in moving for topic in one.plan.topics}))
        shown = tuple(_shown(one, found, runs.place(one)) for one in moving)
        writer, unknown = runs.writer(), runs.hidden or bool(runs.unreadable)
        notes = [] if shown else ["no run is open", *world.unseen(runs.alone)]
    if writer is not None:
        notes.append(f"{writer} is writing")
    if held := [one.id for one in every if one.purpose is Purpose.THROTTLE]:
        notes.append(f"runs without a move also hold throttles ({', '.join(held)}). See them with kquota throttle show")
    return OpenRuns(runs=shown, notes=tuple(notes), code=NOT_YET if shown or unknown else DONE)


def _shown(run: Run, found: Snapshot, place: str) -> OpenRun:
    stamp = run.stamp
    there = statuses(run.goal, found.partitions, found.running)
    return OpenRun(
        run=run.id,
        begun=run.begun,
        state=state(run, found),
        throttle=run.rate,
        partitions=len(run.goal.targets),
        done=sum(status.progress is Progress.DONE for status in there),
        record=place,
        owner=_writer(run.owner),
        reason=run.reason,
        revision=None if stamp is None else stamp.version,
        written_by=None if stamp is None else _writer(stamp.by),
        written_at=None if stamp is None else stamp.at,
    )


def _writer(owner: Owner | None) -> WriterShown | None:
    if owner is None:
        return None
    return WriterShown(owner=owner, user=owner.user, host=owner.host, pid=owner.pid, since=owner.since)


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
