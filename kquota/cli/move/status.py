"""`kquota move status`: read the open runs, and the state of each on the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, NOT_YET, worded
from kquota.cli.move.command import MoveStatusOptions
from kquota.cli.output import Answer, JsonObject, each, key, moment, plain, rounded
from kquota.cli.suggestion import suggested
from kquota.measure import agreeing, counted, human_bytes, human_duration, human_rate
from kquota.reassign.progress import Progress, statuses
from kquota.reassign.recovery import RunState, state
from kquota.reassign.run import Owner, Purpose, Run
from kquota.watch.observation import MoveWatch
from kquota.watch.view import WatchedMoveView


def _writer(owner: Owner | None) -> JsonObject | None:
    if owner is None:
        return None
    return {"user": owner.user, "host": owner.host, "pid": owner.pid, "since": owner.since}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """An open run, and its state on the cluster."""

    of: Run
    state: RunState
    """The state of the run, or of its undo."""
    done: int
    """The number of partitions of the run that are in place."""
    record: str
    """The place where the run is recorded."""
    view: WatchedMoveView | None
    """The progress of the run, or None if the reading of the moves does not contain the run."""
    running_here: bool
    """True if the process that began the run is known to run on this host."""

    @property
    def least_seconds(self) -> float | None:
        """A lower bound on the time left, in seconds. None without a `view`, if no copy is running, or if the run is
        paused.

        It is also None if a running copy has no known throttle rate, or if its missing bytes are unknown.
        """
        return None if self.view is None or self.of.paused else self.view.least_seconds

    def document(self) -> JsonObject:
        """Return the JSON. Sizes are in bytes, rates in bytes per second, and times in seconds.

        null means unknown or not recorded, but for `throttle` it means no throttle. `least_seconds_left` is also null
        if there is no lower bound. `broker_rates` are the rates that differ from the throttle of the run.
        """
        run, view, stamp = self.of, self.view, self.of.stamp
        return {
            "run": run.id,
            "begun": run.begun,
            "state": self._shown.name.lower(),
            "throttle": run.rate,
            "partitions": len(run.goal.targets),
            "done": self.done,
            "bytes_copied": None if view is None else view.copied,
            "bytes_left": None if view is None else view.left,
            "least_seconds_left": rounded(1)(self.least_seconds),
            "record": self.record,
            "owner": _writer(run.owner),
            "reason": run.reason,
            "revision": None if stamp is None else stamp.version,
            "written_by": None if stamp is None else _writer(stamp.by),
            "written_at": None if stamp is None else stamp.at,
            "broker_rates": [{**plain(setting), "rate": rate} for setting, rate in run.broker_rates.items()],
            "paused": run.paused,
        }

    @property
    def described(self) -> str:
        """The state as text. If the move has ended, the text says whether the throttle is still set or only the run is
        still open.
        """
        ended = self._shown is RunState.ENDED and not self.of.held
        return "the move has ended, but the run is still open" if ended else self._shown.value

    @property
    def _shown(self) -> RunState:
        return RunState.ABORTING if self.of.aborting else self.state

    def lines(self) -> Iterator[str]:
        """Yield the lines that describe the run in the text."""
        run, view, stamp = self.of, self.view, self.of.stamp
        yield f"{run.id}  {self.described}"
        rate = "no throttle" if run.rate is None else f"throttle {human_rate(run.rate)}"
        yield f"  {self.done:,} of {counted(len(run.goal.targets), 'partition')} done, {rate}"
        yield from (f"  {setting}: {human_rate(rate)}" for setting, rate in run.broker_rates.items())
        if run.paused and self._shown is not RunState.ENDED:
            yield f"  paused. Continue the run: {suggested(f'move adjust --continue --run {run.id}')}"
        if view is not None and view.copied is not None and view.left is not None:
            least = "" if self.least_seconds is None else f", at least {human_duration(self.least_seconds)} left"
            yield f"  {human_bytes(view.copied)} copied, {human_bytes(view.left)} left{least}"
        if run.owner is not None:
            why = "" if run.reason is None else f": {run.reason}"
            yield f"  started by {run.owner} at {moment(run.begun)}{why}"
        if stamp is not None and stamp.by is not None and stamp.at is not None:
            yield f"  last written by {stamp.by} at {moment(stamp.at)}"
        yield f"  recorded in {self.record}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRuns(Answer):
    """The open runs with moves."""

    runs: tuple[OpenRun, ...] = key(form=each(OpenRun.document))
    """The runs, oldest first."""
    writer: str | None
    """The command that holds the lock, as text. None if no such command is known."""

    def text(self) -> Iterator[str]:
        for run in self.runs:
            yield from run.lines()

    def needs(self) -> Iterator[str]:
        """Yield a warning with the next command for each run whose move or undo has ended, and for each run with moves
        that are not submitted.

        Yield nothing while another command holds the lock. A run with moves that are not submitted gets no warning
        while its command runs on this host, because the run is only between two waves.
        """
        for one in () if self.writer is not None else self.runs:
            run = one.of
            if one.state is RunState.ENDED:
                verify = suggested("reassign-partitions --verify --all-runs")
                what, does = (
                    ("its throttle is still set", "restores") if run.held else ("the run is still open", "ends")
                )
                ended = f"the move is undone, but {what}" if run.aborting else one.described
                yield f"warning: run {run.id}: {ended}. {verify} {does} it"
            elif one.state in (RunState.NOT_SUBMITTED, RunState.WAITING) and not one.running_here:
                resume, abort = suggested(f"move resume --run {run.id}"), suggested(f"move abort --run {run.id}")
                then = f"{resume} continues the run, and {abort} undoes it"
                if run.aborting:
                    then = f"{abort} continues to undo it"
                wrote = (run.owner, None if run.stamp is None else run.stamp.by)
                writers = dict.fromkeys(str(owner) for owner in wrote if owner is not None)
                who = f" ({' or '.join(writers)})" if writers else ""
                yield f"warning: run {run.id}: {one.described}. If its command{who} is no longer running, {then}"


def run(options: MoveStatusOptions) -> OpenRuns:
    """Return the open runs with moves. The exit code is 8 if there are any, if a recorded run cannot be read, or if
    runs of other hosts may be hidden. Otherwise, it is 0.

    Raises Unreachable if the cluster does not answer, and Refused if a journal of this host cannot be read.
    """
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, runs):
        every = runs.unfinished()
        # Read the lock before the cluster. A command holds the lock from the record of a run until its first wave is
        # submitted. If the lock were read later, a wave that was submitted in between would look interrupted.
        writer = runs.writer()
        moving = [one for one in every if one.purpose is Purpose.MOVE]
        shown: tuple[OpenRun, ...] = ()
        if moving:
            found = MoveWatch(ports).glance()
            now = found.reading.snapshot
            views = {view.run: view for view in found.view.moves}
            shown = tuple(
                OpenRun(
                    of=one,
                    state=state(one, now),
                    done=sum(of.progress is Progress.DONE for of in statuses(one.goal, now.partitions, now.running)),
                    record=runs.place(one),
                    view=views.get(one.id),
                    running_here=runs.is_running(one),
                )
                for one in moving
            )
        unknown = runs.hidden or bool(runs.unreadable)
        held = [one.id for one in every if one.purpose is Purpose.THROTTLE]
        none = "no run of a move is open" if held else "no run is open"
        notes = [] if shown else [none, *world.unseen(runs.unseen)]
    if writer is not None:
        notes.append(f"{writer} is writing to this cluster")
    if held:
        runs_hold = agreeing(len(held), "run", "without a move holds a throttle", "without a move hold throttles")
        notes.append(f"{runs_hold} ({', '.join(held)}). See the throttles with {suggested('throttle show')}")
    if runs.hidden and runs.unseen is not None:
        notes.append(f"warning: runs of other hosts are unknown: {worded(runs.unseen)}")
    code = NOT_YET if shown or unknown else DONE
    answer = OpenRuns(runs=shown, writer=writer, notes=tuple(notes), code=code)
    return replace(answer, closing_notes=tuple(answer.needs()))
