"""`kquota move status`: read the open runs, and the state of each on the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, NOT_YET, worded
from kquota.cli.move.command import MoveStatusOptions
from kquota.cli.output import Answer, JsonObject, Part, hidden, key, moment, plain, rounded
from kquota.cli.suggestion import suggested
from kquota.measure import ByteRate, agreeing, counted, human_bytes, human_duration, human_rate
from kquota.reassign.port import Snapshot
from kquota.reassign.progress import Progress, statuses
from kquota.reassign.recovery import RunState, state
from kquota.reassign.run import Owner, Purpose, Run
from kquota.settings.resource import Setting
from kquota.watch.observation import MoveWatch
from kquota.watch.view import WatchedMoveView


def _writer(owner: Owner | None) -> JsonObject | None:
    """Return the process that began a run, or that last wrote its record."""
    if owner is None:
        return None
    return {"user": owner.user, "host": owner.host, "pid": owner.pid, "since": owner.since}


def _rates(rates: Mapping[Setting, ByteRate]) -> list[JsonObject]:
    """Return the rates in bytes per second of the brokers whose rate differs from the throttle of the run."""
    return [{**plain(setting), "rate": rate} for setting, rate in rates.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun(Part):
    """An open run. `done` is the number of its `partitions` that are in place.

    `throttle` is in bytes per second, or None without a throttle. `copied` and `left` are in bytes. `least_seconds` is
    a lower bound on the time left. It is None if no copy is running, if a running copy is not throttled, if its missing
    bytes are unknown, or if the run is `paused`. In the other fields, None means unknown or not recorded.
    """

    run: str
    begun: datetime
    state: RunState = key(form=lambda state: state.name.lower())
    throttle: ByteRate | None
    partitions: int
    done: int
    copied: int | None = key("bytes_copied")
    left: int | None = key("bytes_left")
    least_seconds: float | None = key("least_seconds_left", rounded(1))
    record: str
    owner: Owner | None = key(form=_writer)
    reason: str | None
    revision: int | None
    written_by: Owner | None = key(form=_writer)
    written_at: datetime | None
    broker_rates: Mapping[Setting, ByteRate] = key(form=_rates)
    paused: bool
    holds_throttle: bool = hidden()
    running_here: bool = hidden()
    """Whether the process that began the run is known to run on this host."""

    @property
    def described(self) -> str:
        """The state as text. For an ended run, it says why the run is still open."""
        ended = self.state is RunState.ENDED and not self.holds_throttle
        return "ended, but its record is still open" if ended else self.state.value

    def lines(self) -> Iterator[str]:
        """Yield the state of the run, its progress, a pause, its owner and reason, its last writer, and its record."""
        yield f"{self.run}  {self.described}"
        rate = "no throttle" if self.throttle is None else f"throttle {human_rate(self.throttle)}"
        yield f"  {self.done:,} of {counted(self.partitions, 'partition')} done, {rate}"
        yield from (f"  {setting}: {human_rate(rate)}" for setting, rate in self.broker_rates.items())
        if self.paused and self.state is not RunState.ENDED:
            yield f"  paused. Continue the run: {suggested(f'move adjust --continue --run {self.run}')}"
        if self.copied is not None and self.left is not None:
            least = "" if self.least_seconds is None else f", at least {human_duration(self.least_seconds)} left"
            yield f"  {human_bytes(self.copied)} copied, {human_bytes(self.left)} left{least}"
        if self.owner is not None:
            why = "" if self.reason is None else f": {self.reason}"
            yield f"  begun by {self.owner} at {moment(self.begun)}{why}"
        if self.written_by is not None and self.written_at is not None:
            yield f"  last written by {self.written_by} at {moment(self.written_at)}"
        yield f"  recorded in {self.record}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRuns(Answer):
    """The open runs with moves, oldest first, and the command that is writing, or None."""

    runs: tuple[OpenRun, ...]
    writer: str | None

    def text(self) -> Iterator[str]:
        for run in self.runs:
            yield from run.lines()

    def needs(self) -> Iterator[str]:
        """Yield a warning with the next command for each ended run, and for each run with moves that are not submitted,
        unless a command is writing. A run of a command that is alive on this host is only between two waves.
        """
        for run in self.runs:
            if run.state is RunState.ENDED and self.writer is None:
                verify = suggested("reassign-partitions --verify --all-runs")
                does = "restores" if run.holds_throttle else "closes"
                yield f"warning: run {run.run}: {run.described}. {verify} {does} it"
            elif (
                run.state in (RunState.NOT_SUBMITTED, RunState.WAITING) and self.writer is None and not run.running_here
            ):
                resume, abort = suggested(f"move resume --run {run.run}"), suggested(f"move abort --run {run.run}")
                writers = dict.fromkeys(str(one) for one in (run.owner, run.written_by) if one is not None)
                who = f" ({' or '.join(writers)})" if writers else ""
                yield (
                    f"warning: run {run.run}: {run.state.value}. If its command{who} is not running any more, {resume} "
                    f"continues it, and {abort} undoes it"
                )


def run(options: MoveStatusOptions) -> OpenRuns:
    """Show the open runs. The exit code is 8 if a run of a move is open, or if some runs cannot be read."""
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, runs):
        every = runs.unfinished()
        # Read the lock before the cluster. A command holds the lock from the record of a run until its first wave is
        # submitted. If the lock were read later, a wave that was submitted in between would look interrupted.
        writer = runs.writer()
        moving = {one.id: one for one in every if one.purpose is Purpose.MOVE}
        shown: tuple[OpenRun, ...] = ()
        if moving:
            found = MoveWatch(ports).glance()
            views = {view.run: view for view in found.view.moves}
            places = {one.id: runs.place(one) for one in moving.values()}
            snapshot = found.reading.snapshot
            shown = tuple(
                _shown(one, snapshot, places[one.id], views.get(one.id), running_here=runs.is_running(one))
                for one in moving.values()
            )
        unknown = runs.hidden or bool(runs.unreadable)
        held = [one.id for one in every if one.purpose is Purpose.THROTTLE]
        none = "no run of a move is open" if held else "no run is open"
        notes = [] if shown else [none, *world.unseen(runs.alone)]
    if writer is not None:
        notes.append(f"{writer} is writing")
    if held:
        runs_hold = agreeing(len(held), "run", "without a move holds a throttle", "without a move hold throttles")
        notes.append(f"{runs_hold} ({', '.join(held)}). See the throttles with {suggested('throttle show')}")
    if runs.hidden and runs.alone is not None:
        notes.append(f"warning: runs of other hosts are unknown: {worded(runs.alone)}")
    return OpenRuns(runs=shown, writer=writer, notes=tuple(notes), code=NOT_YET if shown or unknown else DONE)


def _shown(run: Run, found: Snapshot, place: str, view: WatchedMoveView | None, *, running_here: bool) -> OpenRun:
    stamp = run.stamp
    there = statuses(run.goal, found.partitions, found.running)
    return OpenRun(
        run=run.id,
        begun=run.begun,
        state=state(run, found),
        throttle=run.rate,
        partitions=len(run.goal.targets),
        done=sum(status.progress is Progress.DONE for status in there),
        copied=None if view is None else view.copied,
        left=None if view is None else view.left,
        least_seconds=None if view is None or run.paused else view.least_seconds,
        record=place,
        owner=run.owner,
        reason=run.reason,
        revision=None if stamp is None else stamp.version,
        written_by=None if stamp is None else stamp.by,
        written_at=None if stamp is None else stamp.at,
        broker_rates=run.broker_rates,
        paused=run.paused,
        holds_throttle=bool(run.held),
        running_here=running_here,
    )
