"""Adjusts the throttle of an open run to a deadline, to the time of day, or to protect clients (`protection`)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kquota.cli import clock, world
from kquota.cli.connection import Connection
from kquota.cli.pacing import protection
from kquota.cli.pacing.options import PaceOptions
from kquota.cli.pacing.setter import MovePace, RateSetter, throttled
from kquota.errors import Invalid
from kquota.list_text import listed
from kquota.measure import ByteRate, byte_rate, duration
from kquota.pace.landing import Copying, DayPlan, RateBounds, day_plan, differs, landing_rate
from kquota.probe.port import UNANSWERED_SECONDS
from kquota.watch.observation import Observed, WatchPorts
from kquota.watch.view import WatchedMoveView

_SETTLING_SECONDS: Final = 15.0
"""The minimum time between two changes, because the throughput shows the effect of a change only after a whole quota
window (11 s).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceRules:
    """The parsed options. Exactly one of `end`, `days` and `protects` is set."""

    bounds: RateBounds
    """The rates of `--min-rate` and `--max-rate`, or None for each that is not given."""
    end: datetime | None
    """The time of `--deadline`."""
    days: DayPlan | None
    """The throttles of `--between`."""
    protects: bool
    """True with `--protect`."""
    max_latency: float | None
    """The latency of `--max-latency` in seconds, or None if it is not given."""
    exporters: world.UsageReader | None
    """The reader of the brokers' metrics, or None without `--protect` or without an address of the metrics."""

    def up_to(self, throttle: ByteRate | None) -> PaceRules:
        """Return the rules. If `--protect` is given without `--max-rate`, `throttle` becomes the highest throttle."""
        if not self.protects or self.bounds.high is not None:
            return self
        return replace(self, bounds=replace(self.bounds, high=throttle))

    def first(self, throttle: ByteRate | None) -> ByteRate:
        """Return the throttle at the start of a move. Raises Invalid if the options and `throttle` do not determine
        this throttle, or contradict each other.
        """
        if self.protects:
            return protection.bounds_of(throttle, self.bounds)[0]
        if self.days is not None:
            if throttle is not None:
                raise Invalid(
                    "--throttle: --between already sets the throttle for every time of day. Leave out one of them"
                )
            return self.days.at(datetime.now().astimezone().time())
        if throttle is None:
            raise Invalid("--deadline: the throttle at the start of the move is missing. Give --throttle RATE")
        return self.bounds.clamp(throttle)

    def most(self, throttle: ByteRate) -> ByteRate:
        """Return the highest of the given rates. `throttle` is the throttle at the start.

        With `--deadline` and without `--max-rate`, the throttle can later be higher.
        """
        rates = [throttle, *([] if self.bounds.high is None else [self.bounds.high])]
        if self.days is not None:
            rates += [self.days.otherwise, *(span.rate for span in self.days.spans)]
        return max(rates)


def rules(options: PaceOptions, connection: Connection) -> PaceRules | None:
    """Return the parsed options, or None if none of them changes the throttle over time.

    Raises Invalid for options that cannot be combined or that require another option, and for an invalid rate or time.
    With `--protect`, also raises the errors of `world.where` and `world.usage_reader`.
    """
    given = [way for way, asked in options.ways.items() if asked]
    if len(given) > 1:
        raise Invalid(f"{listed(given)} cannot be combined. Give one of them")
    if not (options.deadline or options.protect) and (options.min_rate or options.max_rate):
        raise Invalid("--min-rate and --max-rate need --deadline or --protect. Give --deadline TIME or --protect")
    if options.metrics is not None and not options.protect:
        raise Invalid("--metrics needs --protect. Give both, or leave out --metrics")
    if options.max_latency is not None and not options.protect:
        raise Invalid("--max-latency needs --protect. Give both, or leave out --max-latency")
    if not given:
        return None
    low, high = (
        None if text is None else byte_rate(text, option)
        for option, text in (("--min-rate", options.min_rate), ("--max-rate", options.max_rate))
    )
    if low is not None and high is not None and low > high:
        raise Invalid(f"--min-rate {options.min_rate}: above --max-rate {options.max_rate}. Give a lower --min-rate")
    metrics = (options.metrics or world.where(connection).metrics) if options.protect else None
    return PaceRules(
        bounds=RateBounds(low=low, high=high),
        end=None if options.deadline is None else _moment(options.deadline, clock.SystemClock().now()),
        days=None if options.between is None else day_plan(options.between, "--between"),
        protects=options.protect,
        max_latency=None if options.max_latency is None else _max_latency(options.max_latency),
        exporters=None if metrics is None else world.usage_reader(metrics, None),
    )


def following(
    rules: PaceRules,
    rate: ByteRate,
    setter: RateSetter,
    ports: WatchPorts,
    removal: protection.ScratchRemoval,
    *,
    fresh: bool = False,
) -> AbstractContextManager[MovePace]:
    """Return a context with the pace of an open run whose throttle is now `rate`. `fresh` means that no copy has begun.

    With `rules.protects`, raises Invalid if the lowest throttle is not below the highest one, and the context raises
    the errors of `protection.protecting`.
    """
    if not rules.protects:
        return nullcontext(DuePace(setter=setter, rules=rules, ports=ports))
    return protection.protecting(
        protection.bounds_of(rate, rules.bounds),
        rate,
        setter,
        ports,
        rules.exporters,
        removal,
        max_latency=rules.max_latency,
        fresh=fresh,
    )


def _max_latency(text: str) -> float:
    seconds = duration(text, "--max-latency")
    if seconds >= UNANSWERED_SECONDS:
        raise Invalid(
            f"--max-latency {text}: must be less than {UNANSWERED_SECONDS:g}s, because a write without an answer after "
            "this time counts as slow anyway. Give a shorter time, for example 20ms"
        )
    return seconds


def _moment(text: str, now: datetime) -> datetime:
    """Return the time of `--deadline`, which is a time or a duration from `now`. A time without a zone is local."""
    if "-" not in text:
        return now + timedelta(seconds=duration(text, "--deadline"))
    try:
        end = datetime.fromisoformat(text).astimezone()
    except ValueError as error:
        raise Invalid(
            f"--deadline {text!r}: not a valid time. Give a time, for example 2h or 2026-11-24T06:00:00+01:00"
        ) from error
    if end <= now:
        raise Invalid(f"--deadline {text}: this time has passed. Give a later time")
    return end


@dataclass(slots=True, kw_only=True)
class DuePace:
    """Implements `MovePace`: sets the throttle that meets a deadline, or the throttle for the time of day."""

    setter: RateSetter
    rules: PaceRules
    ports: WatchPorts
    changed: float | None = None
    """The monotonic time of the last change or failed attempt, in seconds. None before the first one."""
    interval: float = 5.0

    def after(self, found: Observed) -> None:
        now = self.ports.clock.monotonic()
        if self.changed is not None and now - self.changed < _SETTLING_SECONDS:
            return
        (move,) = found.view.moves
        open_run = throttled(self.ports.runs, move.run)
        if open_run is None or open_run.rate is None:
            return
        wanted = self._wanted(move, open_run.rate)
        if wanted is None or not differs(wanted, open_run.rate):
            self.setter.repeat(open_run)
            return
        self.changed = now
        why = self.setter.reason or ("--deadline" if self.rules.days is None else "--between")
        self.setter.set(open_run, wanted, why)

    def wait(self, seconds: float) -> None:
        self.ports.clock.sleep(seconds)

    def _wanted(self, move: WatchedMoveView, rate: ByteRate) -> ByteRate | None:
        moment = self.ports.clock.now()
        if self.rules.days is not None:
            return self.rules.days.at(moment.astimezone().time())
        copying = _copying(move)
        if copying is None or self.rules.end is None:
            return None
        return landing_rate(rate, copying, (self.rules.end - moment).total_seconds(), self.rules.bounds)


def _copying(move: WatchedMoveView) -> Copying | None:
    """Return the copies to the destination whose copies end last. If the time left is unknown, assume that each
    destination receives at its full throttle rate. In this case, return None if no destination has both known bytes
    left and a throttle.
    """
    if move.seconds_left and (last := move.last) is not None and last.left and last.seconds_left:
        return Copying(left=last.left, net=last.left / last.seconds_left, written=last.written)
    lanes = [(lane.left, lane.throttle, lane.written) for lane in move.destinations if lane.left and lane.throttle]
    if not lanes:
        return None
    left, throttle, written = max(lanes, key=lambda lane: lane[0] / lane[1])
    return Copying(left=left, net=throttle - written, written=written)
