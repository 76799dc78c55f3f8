"""Adjusts the throttle of an open run to the latency of writes, and to broker metrics if exporters are given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.cli import world
from kquota.cli.contract import say, worded
from kquota.cli.pacing.setter import RateSetter, throttled
from kquota.errors import Invalid, KquotaError, Unreachable
from kquota.measure import ByteRate, counted, human_rate
from kquota.pace.enforcement import longest_window
from kquota.pace.landing import RateBounds
from kquota.pace.protection import SETTING_SECONDS, ClientWindow, Pressure, Protection, ProtectionStep
from kquota.pace.reported import BrokerTimes, ReportedTime
from kquota.probe.latency import LatencyProbe, measuring
from kquota.reassign.moves import Replicas
from kquota.reassign.port import Clock, Runs
from kquota.reassign.run import Run
from kquota.terms import REQUEST_PERCENTAGE, TopicPartition
from kquota.watch.observation import Observed, WatchPorts
from kquota.watch.reading import shrunk

_LOWEST_SHARE: Final = 10
"""Without --min-rate, the lowest throttle is the highest throttle divided by this number."""
_LEAST_SECONDS: Final = 1.0
"""The minimum number of seconds between two readings, because each window needs enough writes."""
_READ_SECONDS: Final = 2.0
"""The number of seconds between two readings. It is small, because slow clients wait for a lower throttle."""
_REPORT_SECONDS: Final = 10.0
"""The minimum number of seconds between two readings of the exporters, because a reading costs a broker some CPU."""
_MILLISECONDS: Final = 1_000


def bounds_of(rate: ByteRate | None, bounds: RateBounds) -> tuple[ByteRate, ByteRate]:
    """Return the lowest and the highest throttle of a run. `rate` is its throttle now or at its start, None if unknown.

    Raises Invalid if the highest throttle is unknown or not above the lowest one.
    """
    high = rate if bounds.high is None else bounds.high
    if high is None:
        raise Invalid("--protect needs the highest throttle. Give --max-rate or --throttle")
    low = ByteRate(max(1, high // _LOWEST_SHARE)) if bounds.low is None else bounds.low
    if low >= high:
        raise Invalid(
            f"--min-rate {human_rate(low)}: not below the highest throttle ({human_rate(high)}). Give a lower "
            "--min-rate or a higher --max-rate"
        )
    return low, high


@contextmanager
def protecting(
    bounds: tuple[ByteRate, ByteRate],
    rate: ByteRate,
    setter: RateSetter,
    ports: WatchPorts,
    exporters: world.UsageReader | None,
    *,
    max_latency: float | None,
    fresh: bool,
) -> Iterator[ProtectedPace]:
    """Yield the pace of --protect. Its scratch topic exists until the context ends.

    `max_latency` is the limit in seconds, or None if a measured baseline gives the limit. With `fresh`, no copy has
    begun, so the lowest throttle needs no time to take effect.

    Raises Invalid over ZooKeeper.
    """
    low, high = bounds
    at = world.where(setter.connection)
    logins = world.logins(at, None)
    settling = longest_window(world.broker_settings(at).values()) + SETTING_SECONDS
    with (
        ThreadPoolExecutor(1) as pool,
        measuring(logins, ports.clock, lambda: say("removing the scratch topic")) as probe,
    ):
        yield ProtectedPace(
            setter=setter,
            runs=ports.runs,
            probe=probe,
            clock=ports.clock,
            state=Protection(
                low=low,
                high=high,
                rate=rate,
                max_latency=max_latency,
                measures=max_latency is None or exporters is not None,
                settling=settling,
                at_lowest=settling if fresh else 0.0,
            ),
            since=ports.clock.monotonic(),
            reports=None if exporters is None else _Reports(read=exporters, clock=ports.clock, pool=pool),
        )


@dataclass(slots=True, kw_only=True)
class _Reports:
    """Reads the metrics of brokers in a thread, because an exporter may not answer for some seconds."""

    read: world.UsageReader
    clock: Clock
    pool: ThreadPoolExecutor
    running: Future[tuple[list[BrokerTimes], str | None]] | None = None
    began: float = -math.inf
    unreported: str | None = None

    def new(self) -> list[BrokerTimes]:
        """Return the reading that has ended since the last call, if any, and begin the next reading if it is due."""
        found: list[BrokerTimes] = []
        if self.running is not None and self.running.done():
            found, self.unreported = self.running.result()
            self.running = None
        if self.running is None and self.clock.monotonic() - self.began >= _REPORT_SECONDS:
            self.began = self.clock.monotonic()
            self.running = self.pool.submit(self._read)
        return found

    def _read(self) -> tuple[list[BrokerTimes], str | None]:
        found: list[BrokerTimes] = []
        unreported = None
        try:
            answers = list(self.read())
        except KquotaError as error:
            return [], worded(error)
        for one in answers:
            if isinstance(one, Unreachable):
                unreported = worded(one)
                continue
            if not one.has_readings and one.produce_ms is None:
                unreported = f"broker {one.broker}: its metrics contain neither quotas nor times of produce requests"
                continue
            delays = [use.throttle_ms or 0.0 for bucket, use in one.readings() if bucket.key == REQUEST_PERCENTAGE]
            times = {ReportedTime.THROTTLED: max(delays, default=0.0) / _MILLISECONDS}
            if one.produce_ms is not None:
                times[ReportedTime.PRODUCE] = one.produce_ms / _MILLISECONDS
            found.append(BrokerTimes(broker=one.broker, times=times))
        return found, unreported


@dataclass(slots=True, kw_only=True)
class ProtectedPace:
    """Implements `MovePace`: lowers the throttle when clients become slow, and raises it while they are fast."""

    setter: RateSetter
    runs: Runs
    probe: LatencyProbe
    clock: Clock
    state: Protection
    since: float
    reports: _Reports | None
    reported: set[Pressure] = field(default_factory=set)
    in_sync: dict[TopicPartition, Replicas] = field(default_factory=dict)
    interval: float = _READ_SECONDS

    def wait(self, seconds: float) -> None:
        self.probe.wait(max(seconds, _LEAST_SECONDS))

    def after(self, found: Observed) -> None:
        partitions = found.reading.snapshot.partitions
        lost = shrunk(self.in_sync, partitions)
        now = self.clock.monotonic()
        window = ClientWindow(
            seconds=now - self.since,
            latencies=self.probe.latencies(),
            shrunk=lost,
            reported=() if self.reports is None else self.reports.new(),
            unreported=None if self.reports is None else self.reports.unreported,
        )
        self.since = now
        (move,) = found.view.moves
        open_run = throttled(self.runs, move.run)
        if open_run is None or open_run.rate is None:
            return
        before = replace(self.state, rate=open_run.rate)
        after, step = before.after(window)
        if after.baseline and not before.baseline:
            self._say_baseline(open_run, after)
        # If the throttle cannot be set, keep the old state, so that the next window gives a new decision.
        if step.rate != open_run.rate:
            if not self._set(open_run, step):
                self.state = before
                return
            self.reported.clear()
        else:
            self._say_pressure(open_run, step)
        self.state = after
        self.in_sync |= {name: now.isr for name, now in partitions.items()}

    def _set(self, run: Run, step: ProtectionStep) -> bool:
        why = _why(step)
        return self.setter.set(run, step.rate, f"{self.setter.reason or '--protect'}: {why}", f": {why}")

    def _say_pressure(self, run: Run, step: ProtectionStep) -> None:
        """Print why the throttle does not rise. Print each reason once until the throttle changes."""
        if step.pressure not in (*self.reported, Pressure.CALM, Pressure.MEASURING):
            self.reported.add(step.pressure)
            say(f"run {run.id}: the throttle stays at {human_rate(step.rate)}: {_why(step)}")

    def _say_baseline(self, run: Run, state: Protection) -> None:
        broker, slowest = max(state.baseline.items(), key=lambda one: one[1])
        say(f"run {run.id}: under the lowest throttle, writes take up to {_shown(slowest)} (broker {broker})")


def _why(step: ProtectionStep) -> str:
    if step.pressure is Pressure.MEASURING:
        return "kquota measures the usual latency at the lowest throttle"
    if step.pressure is Pressure.SHRUNK:
        return f"{counted(step.shrunk, 'partition')} lost an in-sync replica"
    if step.high is not None:
        what = "take" if step.high.time is ReportedTime.PRODUCE else "delay clients by"
        return (
            f"{step.high.time.value} on broker {step.high.broker} {what} {_shown(step.high.seconds)}, as its metrics "
            f"report (limit {_shown(step.high.limit)})"
        )
    if step.unreported is not None:
        return step.unreported
    if step.latency is None or step.limit is None:
        return "the latency of writes is unknown"
    if math.isinf(step.latency):
        return f"broker {step.broker} does not acknowledge writes"
    limit = f"(limit {_shown(step.limit)})"
    return f"writes to broker {step.broker} take {_shown(step.latency)} {limit}"


def _shown(seconds: float) -> str:
    return f"{seconds * _MILLISECONDS:.1f} ms"
