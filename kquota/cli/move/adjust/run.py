"""`kquota move adjust`: set the throttle of an open run once, or change it until the move ends."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, say
from kquota.cli.move.adjust.command import AdjustOptions
from kquota.cli.move.open_runs import chosen_runs
from kquota.cli.options import interval_seconds
from kquota.cli.output import Answer, Lines
from kquota.cli.pacing.pace import PaceRules, following, rules
from kquota.cli.pacing.protection import ScratchRemoval
from kquota.cli.pacing.setter import RateSetter, in_turn
from kquota.cli.suggestion import plan_argument, suggested
from kquota.cli.throttle.set import run as setting
from kquota.cli.throttle.set.answer import ThrottleSet, throttle_set
from kquota.cli.throttle.set.command import SetOptions
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.loop import readings
from kquota.errors import Invalid, NextStep, Refused
from kquota.measure import ByteRate, byte_rate, human_rate, human_rates
from kquota.pace.landing import Incoming, even_rates
from kquota.reassign.plan import read
from kquota.reassign.port import Runs
from kquota.reassign.run import Run, at_rate
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, BrokerId
from kquota.throttle import set_and_clear
from kquota.watch.observation import MoveWatch, Observed, WatchPorts


def run(options: AdjustOptions) -> Answer | Generator[Answer]:
    """Change the throttle of the selected run once or until the move ends, or pause or continue the run.

    With `--deadline`, `--between` or `--protect`, yields the readings of the move. Otherwise, returns the changes. With
    `--even-finish`, first measures the copies for the time of `--interval`.

    Raises Invalid for an invalid value, for options that do not fit together, and if several runs are open but none is
    selected. Raises Refused if the run is not open, and if a check fails. Raises Busy if another kquota keeps the lock,
    and Unreachable if the cluster does not answer.
    """
    ways = {
        "RATE": options.rate is not None,
        **options.pacing.ways,
        "--pause": options.pause,
        "--continue": options.go_on,
    }
    if list(ways.values()).count(True) != 1:
        named = " and ".join(name for name, given in ways.items() if given) or "none"
        raise Invalid(f"give exactly one of {', '.join(ways)} (given: {named})")
    followed = rules(options.pacing, options.connection)
    if options.run is not None and options.reassignment_json_file is not None:
        raise Invalid("--run and --reassignment-json-file both select a run. Give one of them")
    if options.rate is None and (options.broker or options.leader or options.follower or options.even_finish):
        way = next(name for name, given in ways.items() if given)
        raise Invalid(
            f"{way}: --broker, --leader, --follower and --even-finish need RATE. Leave them out, or give RATE "
            f"instead of {way}"
        )
    if options.even_finish and (options.broker or options.leader or options.follower):
        raise Invalid(
            "--even-finish sets the follower rates of all destinations. Leave out --broker, --leader and --follower"
        )
    if options.pause or options.go_on:
        return in_turn(lambda: _pause(options))
    if followed is not None:
        return _follow(options, followed)
    assert options.rate is not None
    if options.even_finish:
        return _finish_evenly(options, byte_rate(options.rate, "RATE"))
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, _):
        found = _open_run(ports.runs, options)
    asked = _setting(options, found, options.rate, options.reason)
    return in_turn(lambda: setting.run(asked))


def _finish_evenly(options: AdjustOptions, rate: ByteRate) -> Answer | Generator[Answer]:
    interval = interval_seconds(options.interval)
    say(f"throttle: {human_rate(rate)}, and lower for destinations with less to copy. Measuring for {interval:g} s")
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, _):
        found = _open_run(ports.runs, options)
        even = _even_rates(ports, found, rate, interval)
    # Skip the check of `setting.adjusted`, because `_even_rates` has just measured the copies and checked `rate`.
    asked = _setting(replace(options, force=True), found, str(rate), options.reason or "--even-finish")
    return in_turn(lambda: setting.adjusted(asked, lambda run: _with_even_rates(run, rate, even)))


def _even_rates(ports: WatchPorts, run: Run, rate: ByteRate, interval: float) -> Mapping[BrokerId, ByteRate]:
    watch = MoveWatch(ports, run=run.id)
    watch.look()
    ports.clock.sleep(interval)
    (move,) = watch.look().view.moves
    unknown = [lane.broker for lane in move.destinations if lane.left is None]
    if unknown:
        raise Refused(
            f"broker {unknown[0]}: the bytes left to copy are unknown, so no rate can be "
            "calculated. Leave out --even-finish"
        )
    copies = {lane.broker: Incoming(left=lane.left or 0, written=lane.written) for lane in move.destinations}
    try:
        return even_rates(rate, copies)
    except ValueError as error:
        (broker,) = error.args
        throttle, written = human_rates(rate, copies[broker].written)
        raise Refused(
            f"broker {broker}: under {throttle} its copies never end, because producers write {written} to them. Give "
            "a higher rate. Nothing was written"
        ) from error


def _with_even_rates(run: Run, rate: ByteRate, even: Mapping[BrokerId, ByteRate]) -> Run:
    after = at_rate(run, rate)
    for broker, lower in even.items():
        setting = Setting.of_broker(broker, FOLLOWER_RATE)
        if lower != rate and setting in run.rates_held:
            after = at_rate(after, lower, [setting])
    return after


def _pause(options: AdjustOptions) -> ThrottleSet:
    hold = move_stores.LockRequest(doing="move adjust")
    with move_stores.throttling(world.where(options.connection), options.state_dir, hold) as ports:
        found = _open_run(ports.runs, options)
        if options.go_on and not found.paused:
            raise Refused(f"run {found.id} is not paused. See it with ", NextStep.SHOW_MOVES)
        reason = options.reason or ("--pause" if options.pause else "--continue")
        after = replace(found, paused=options.pause)
        held = set_and_clear.adjust(ports, found, after, reason)
        return throttle_set(held, ports.runs.place(found), dry_run=False)


def _follow(options: AdjustOptions, followed: PaceRules) -> Generator[MovesWatched | Lines]:
    interval = interval_seconds(options.interval)
    with move_stores.watching(world.where(options.connection), options.state_dir) as (ports, runs):
        found = _open_run(ports.runs, options)
        if found.rate is None:
            plan = plan_argument(options.reassignment_json_file)
            execute = suggested(f"reassign-partitions --execute --reassignment-json-file {plan} --throttle RATE")
            can = not found.aborting and not found.plan.log_dirs
            raise Refused(
                f"run {found.id} has no throttle, so there is nothing to change",
                f". Set a throttle with {execute}" if can else "",
            )
        if found.paused:
            raise Refused(
                f"run {found.id} is paused. First continue it: {suggested(f'move adjust --continue --run {found.id}')}"
            )
        setter = RateSetter(
            connection=options.connection,
            state_dir=options.state_dir,
            reason=options.reason,
            # `--protect` skips the check, because copies that cannot catch up now may catch up at a later rate.
            force=options.force or followed.protects,
        )
        removal = ScratchRemoval()
        with following(followed, found.rate, setter, ports, removal) as pace:
            watch = MoveWatch(ports, run=found.id)

            def look() -> Observed:
                seen = watch.look()
                if not seen.ended:
                    pace.after(seen)
                return seen

            unseen = world.unseen(runs.unseen)
            yield from readings(look, ports.clock, interval, options.output, wait=pace.wait, unseen=unseen)
        if removal.code != DONE:
            yield Lines(lines=(), code=removal.code)


def _open_run(runs: Runs, options: AdjustOptions) -> Run:
    file = options.reassignment_json_file
    plan = None if file is None else read(file, world.warn)
    found = chosen_runs(runs, options.run, file, plan, one=True)
    if not found:
        raise Refused(f"no run of a move is open. See all running moves with {suggested('move watch --once')}")
    return found[0]


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
    )
