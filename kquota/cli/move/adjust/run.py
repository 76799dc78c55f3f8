"""`kquota move adjust`: set the throttle of an open run, once or as its move proceeds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Final

from kquota.cli import clock, world
from kquota.cli.contract import say, worded
from kquota.cli.move.adjust import protection
from kquota.cli.move.adjust.command import AdjustOptions
from kquota.cli.options import interval_seconds
from kquota.cli.output import Answer
from kquota.cli.suggestion import suggested
from kquota.cli.throttle.set import run as setting
from kquota.cli.throttle.set.answer import ThrottleSet, throttle_set
from kquota.cli.throttle.set.command import SetOptions
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.loop import readings
from kquota.errors import Busy, Invalid, NextStep, Refused, Unreachable
from kquota.measure import ByteRate, byte_rate, duration, human_rate
from kquota.pace.landing import Copying, DayPlan, Incoming, RateBounds, day_plan, differs, even_rates, landing_rate
from kquota.reassign.plan import read
from kquota.reassign.port import Clock, Runs
from kquota.reassign.run import Purpose, Run, at_rate, covers
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, BrokerId
from kquota.throttle import set_and_clear
from kquota.watch.observation import MoveWatch, Observed, WatchPorts
from kquota.watch.view import WatchedMoveView

_TURN_SECONDS: Final = 15.0
_TURN_STEP: Final = 0.3
_SETTLING_SECONDS: Final = 15.0
"""The time between two changes: the throughput of a quota window of 11 s must show the last one first."""


def run(options: AdjustOptions) -> Answer | Generator[Answer]:
    """Change the throttle. Raises Invalid, and Refused without an open run."""
    ways = {
        "RATE": options.rate is not None,
        "--deadline": options.deadline is not None,
        "--between": options.between is not None,
        "--protect": options.protect,
        "--pause": options.pause,
        "--continue": options.go_on,
    }
    if list(ways.values()).count(True) != 1:
        raise Invalid(f"give exactly one of {', '.join(ways)}")
    bounded = options.deadline is not None or options.protect
    if not bounded and (options.min_rate is not None or options.max_rate is not None):
        raise Invalid("--min-rate and --max-rate limit the throttle of --deadline and --protect. Give one of them")
    if options.run is not None and options.reassignment_json_file is not None:
        raise Invalid("--run and --reassignment-json-file both select a run. Give one of them")
    if options.rate is None and (options.broker or options.leader or options.follower or options.even_finish):
        raise Invalid("--broker, --leader, --follower and --even-finish need RATE")
    if options.even_finish and (options.broker or options.leader or options.follower):
        raise Invalid("--even-finish sets the follower rates of all destinations. Leave out --broker and the roles")
    if options.pause or options.go_on:
        return _in_turn(lambda: _pause(options))
    if options.rate is None:
        return _follow(options)
    if options.even_finish:
        return _finish_evenly(options, byte_rate(options.rate, "RATE"))
    with world.watching(world.where(options.connection), options.state_dir) as (ports, _):
        found = _open_run(ports.runs, options)
    asked = _setting(options, found, options.rate, options.reason)
    return _in_turn(lambda: setting.run(asked))


def _in_turn(work: Callable[[], Answer | Generator[Answer]]) -> Answer | Generator[Answer]:
    """Do the work when `move run` releases the lock, between two of its writes. Raises Busy after `_TURN_SECONDS`."""
    time = clock.SystemClock()
    deadline = time.monotonic() + _TURN_SECONDS
    while True:
        try:
            return work()
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(_TURN_STEP)


def _finish_evenly(options: AdjustOptions, rate: ByteRate) -> Answer | Generator[Answer]:
    interval = interval_seconds(options.interval)
    say(f"throttle: {human_rate(rate)}, and less for destinations with less to copy; measuring for {interval:g} s")
    with world.watching(world.where(options.connection), options.state_dir) as (ports, _):
        found = _open_run(ports.runs, options)
        even = _even_rates(ports, found, rate, interval)
    # The copies were measured, so --force saves a second measurement.
    asked = _setting(replace(options, force=True), found, str(rate), options.reason or "--even-finish")
    return _in_turn(lambda: setting.adjusted(asked, lambda run: _with_even_rates(run, rate, even)))


def _even_rates(ports: WatchPorts, run: Run, rate: ByteRate, interval: float) -> Mapping[BrokerId, ByteRate]:
    """Measure the copies, and return the rates of `even_rates`. Raises Refused if sizes are unknown."""
    watch = MoveWatch(ports, run=run.id)
    watch.look()
    ports.clock.sleep(interval)
    (move,) = watch.look().view.moves
    unknown = [lane.broker for lane in move.destinations if lane.left is None]
    if unknown:
        raise Refused(f"broker {unknown[0]}: its bytes to copy are unknown, so its rate cannot be calculated")
    copies = {lane.broker: Incoming(left=lane.left or 0, written=lane.written) for lane in move.destinations}
    try:
        return even_rates(rate, copies)
    except ValueError as error:
        (broker,) = error.args
        raise Refused(
            f"broker {broker}: under {human_rate(rate)} its copies never end, because producers write "
            f"{human_rate(copies[broker].written)} to them. Give a higher rate; nothing was written"
        ) from error


def _with_even_rates(run: Run, rate: ByteRate, even: Mapping[BrokerId, ByteRate]) -> Run:
    after = at_rate(run, rate)
    for broker, its in even.items():
        setting = Setting.of_broker(broker, FOLLOWER_RATE)
        if its != rate and setting in run.rates_held:
            after = at_rate(after, its, [setting])
    return after


def _pause(options: AdjustOptions) -> ThrottleSet:
    """Pause or continue the run. Pausing twice changes nothing. Raises Refused for a run that is not paused."""
    with world.throttling(world.where(options.connection), options.state_dir, world.Hold(doing="move adjust")) as ports:
        found = _open_run(ports.runs, options)
        if options.go_on and not found.paused:
            raise Refused(f"run {found.id}: it is not paused. See it with ", NextStep.SHOW_MOVES)
        reason = options.reason or ("--pause" if options.pause else "--continue")
        after = replace(found, paused=options.pause)
        held = set_and_clear.adjust(ports.cluster, ports.runs, ports.clock, found, after, reason)
        return throttle_set(held, ports.runs.place(found), dry_run=False)


def _follow(options: AdjustOptions) -> Generator[MovesWatched]:
    interval = interval_seconds(options.interval)
    low, high = (
        None if text is None else byte_rate(text, option)
        for option, text in (("--min-rate", options.min_rate), ("--max-rate", options.max_rate))
    )
    if low is not None and high is not None and low > high:
        raise Invalid(f"--min-rate {options.min_rate}: above --max-rate {options.max_rate}. Give a lower one")
    days = None if options.between is None else day_plan(options.between, "--between")
    with world.watching(world.where(options.connection), options.state_dir) as (ports, runs):
        end = None if options.deadline is None else _moment(options.deadline, ports.clock.now())
        followed = _open_run(ports.runs, options)
        if followed.rate is None:
            raise Refused(f"run {followed.id}: it has no throttle to change. Start it with a throttle")
        if followed.paused:
            raise Refused(f"run {followed.id}: it is paused. First continue it: {suggested('move adjust --continue')}")
        if options.protect:
            bounds = RateBounds(low=low, high=high)
            # Copies that cannot catch up while clients are slow can do so later.
            set_rate = partial(_changed, replace(options, force=True))
            yield from protection.follow(options, ports, followed, bounds, set_rate, world.unseen(runs.alone))
            return
        watch = _PacedWatch(
            watch=MoveWatch(ports, run=followed.id),
            options=options,
            runs=ports.runs,
            clock=ports.clock,
            run=followed,
            end=end,
            bounds=RateBounds(low=low, high=high),
            days=days,
        )
        yield from readings(watch, ports.clock, interval, options.output, unseen=world.unseen(runs.alone))


def _open_run(runs: Runs, options: AdjustOptions) -> Run:
    """Return the selected run, or the only open run of a move."""
    moving = [one for one in runs.unfinished() if one.purpose is Purpose.MOVE]
    if options.reassignment_json_file is not None:
        found = covers(read(options.reassignment_json_file, world.warn), moving)
        if found is None:
            raise Refused(f"{options.reassignment_json_file}: no run of this plan is open. ", NextStep.SHOW_MOVES)
        return found
    selected = [one for one in moving if options.run in (None, one.id)]
    if not selected:
        which = "no run of a move is open" if options.run is None else f"run {options.run}: no such run is open"
        raise Refused(f"{which}. See the open runs with ", NextStep.SHOW_MOVES)
    if len(selected) > 1:
        there = ", ".join(one.id for one in selected)
        raise Invalid(f"several runs are open ({there}). Name one of them with --run")
    return selected[0]


def _setting(options: AdjustOptions, found: Run, rate: str, reason: str | None) -> SetOptions:
    return SetOptions(
        connection=options.connection,
        throttle=rate,
        run=found.id,
        broker=options.broker,
        leader=options.leader,
        follower=options.follower,
        force=options.force,
        reason=reason,
        state_dir=options.state_dir,
        output=options.output,
    )


def _changed(options: AdjustOptions, open_run: Run, wanted: ByteRate, why: str, detail: str = "") -> bool:
    """Set the throttle of an open run that has one, and say so. Return False if it stays."""
    before = human_rate(open_run.rate or wanted)
    try:
        _in_turn(lambda: setting.run(_setting(options, open_run, str(int(wanted)), why)))
    except (Busy, Refused, Unreachable) as error:
        world.warn(f"the throttle stays at {before}: {worded(error)}")
        return False
    say(f"run {open_run.id}: the throttle is now {human_rate(wanted)}, was {before}{detail}")
    return True


def _moment(text: str, now: datetime) -> datetime:
    """Return the time of --deadline. A time without a zone is local. Raises Invalid for a time that has passed."""
    if "-" not in text:
        return now + timedelta(seconds=duration(text, "--deadline"))
    try:
        found = datetime.fromisoformat(text).astimezone()
    except ValueError as error:
        raise Invalid(f"--deadline {text!r}: not a time. Write for example 2h or 2026-11-24T06:00:00+01:00") from error
    if found <= now:
        raise Invalid(f"--deadline {text}: this time has passed. Give a later one")
    return found


@dataclass(slots=True, kw_only=True)
class _PacedWatch:
    """A watch of one run that changes its throttle after a reading, if a change is due."""

    watch: MoveWatch
    options: AdjustOptions
    runs: Runs
    clock: Clock
    run: Run
    end: datetime | None
    bounds: RateBounds
    days: DayPlan | None
    changed: float | None = None

    def look(self) -> Observed:
        """Read the cluster, then change the throttle. Raises Unreachable if the cluster does not answer."""
        found = self.watch.look()
        if not found.ended:
            self._pace(found)
        return found

    def _pace(self, found: Observed) -> None:
        now = self.clock.monotonic()
        if self.changed is not None and now - self.changed < _SETTLING_SECONDS:
            return
        open_run = next((one for one in self.runs.unfinished() if one.id == self.run.id), None)
        if open_run is None or open_run.rate is None or open_run.paused:
            return
        wanted = self._wanted(found, open_run.rate)
        if wanted is None or not differs(wanted, open_run.rate):
            return
        self.changed = now
        why = self.options.reason or ("--deadline" if self.days is None else "--between")
        _changed(self.options, open_run, wanted, why)

    def _wanted(self, found: Observed, rate: ByteRate) -> ByteRate | None:
        """Return the throttle that applies now, or None if the time left is unknown."""
        moment = self.clock.now()
        if self.days is not None:
            return self.days.at(moment.astimezone().time())
        (move,) = found.view.moves
        copying = _copying(move)
        if copying is None or self.end is None:
            return None
        return landing_rate(rate, copying, (self.end - moment).total_seconds(), self.bounds)


def _copying(move: WatchedMoveView) -> Copying | None:
    """Return what the last destination copies. Until that is measured, it is taken to receive its whole throttle."""
    if move.seconds_left and (last := move.last) is not None and last.left and last.seconds_left:
        return Copying(left=last.left, net=last.left / last.seconds_left, written=last.written)
    slowest = max(
        ((lane.left / lane.throttle, lane) for lane in move.destinations if lane.left and lane.throttle),
        key=itemgetter(0),
        default=None,
    )
    if slowest is None:
        return None
    _, lane = slowest
    assert lane.left is not None and lane.throttle is not None
    return Copying(left=lane.left, net=lane.throttle - lane.written, written=lane.written)
