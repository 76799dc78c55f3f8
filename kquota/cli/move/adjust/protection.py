"""`kquota move adjust --protect`: the throttle of an open run follows the latency of writes, until its move ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import datetime

from kquota.cli import world
from kquota.cli.contract import say
from kquota.cli.move.adjust.command import AdjustOptions
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.loop import readings
from kquota.errors import Invalid
from kquota.measure import ByteRate, counted, duration, human_rate
from kquota.pace.landing import RateBounds
from kquota.pace.protection import ClientWindow, Pressure, Protection, ProtectionStep
from kquota.probe.latency import LatencyProbe, measuring
from kquota.reassign.moves import Replicas
from kquota.reassign.port import Clock, Runs
from kquota.reassign.run import Run
from kquota.terms import TopicPartition
from kquota.watch.observation import MoveWatch, Observed, WatchPorts
from kquota.watch.reading import shrunk

_LOWEST_SHARE = 10
"""Without --min-rate, the lowest throttle is this part of the highest one."""
_LEAST_SECONDS = 1.0
"""The shortest time of writes between two readings, so that each window has enough of them."""
_MILLISECONDS = 1_000

SetRate = Callable[[Run, ByteRate, str, str], bool]
"""Sets the throttle of a run for a reason, and says so with the text of the last argument. False if it stays."""


def follow(
    options: AdjustOptions,
    ports: WatchPorts,
    run: Run,
    bounds: RateBounds,
    set_rate: SetRate,
    unseen: tuple[str, ...],
) -> Generator[MovesWatched]:
    """Yield the readings of a run whose throttle follows the clients. The scratch topic exists only in the meantime.

    Raises Invalid for bounds without room between them, and over ZooKeeper.
    """
    high = run.rate if bounds.high is None else bounds.high
    assert high is not None
    low = ByteRate(max(1, high // _LOWEST_SHARE)) if bounds.low is None else bounds.low
    if low >= high:
        raise Invalid(
            f"--min-rate {human_rate(low)}: not below the highest throttle ({human_rate(high)}). Give another "
            "--min-rate or --max-rate"
        )
    logins = world.logins(world.where(options.connection), None)
    with measuring(logins, ports.clock, lambda: say("removing the scratch topic")) as probe:
        watch = _ProtectedWatch(
            watch=MoveWatch(ports, run=run.id),
            runs=ports.runs,
            run=run.id,
            probe=probe,
            clock=ports.clock,
            state=Protection(low=low, high=high, rate=run.rate or high),
            set_rate=set_rate,
            reason=options.reason,
            since=ports.clock.monotonic(),
        )
        interval = duration(options.interval, "--interval")
        yield from readings(watch, _WritingClock(ports.clock, probe), interval, options.output, unseen=unseen)


@dataclass(frozen=True, slots=True)
class _WritingClock:
    """A clock whose waits are used to measure the latency."""

    clock: Clock
    probe: LatencyProbe

    def now(self) -> datetime:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.probe.wait(max(seconds, _LEAST_SECONDS))


@dataclass(slots=True, kw_only=True)
class _ProtectedWatch:
    """A watch of one run that sets its throttle after each reading, if the clients require or allow another one."""

    watch: MoveWatch
    runs: Runs
    run: str
    probe: LatencyProbe
    clock: Clock
    state: Protection
    set_rate: SetRate
    reason: str | None
    since: float
    reported: set[Pressure] = field(default_factory=set)
    in_sync: dict[TopicPartition, Replicas] = field(default_factory=dict)

    def look(self) -> Observed:
        """Read the cluster, then set the throttle. Raises Unreachable if the cluster does not answer."""
        found = self.watch.look()
        partitions = found.reading.snapshot.partitions
        lost = shrunk(self.in_sync, partitions)
        self.in_sync |= {name: now.isr for name, now in partitions.items()}
        if not found.ended:
            self._protect(lost)
        return found

    def _protect(self, lost: int) -> None:
        now = self.clock.monotonic()
        window = ClientWindow(seconds=now - self.since, latencies=self.probe.latencies(), shrunk=lost)
        self.since = now
        open_run = next((one for one in self.runs.unfinished() if one.id == self.run), None)
        if open_run is None or open_run.rate is None or open_run.paused:
            return
        before = replace(self.state, rate=open_run.rate)
        after, step = before.after(window)
        if after.baseline and not before.baseline:
            self._say_baseline(after)
        # If the throttle cannot be set, the next window decides again.
        if step.rate != open_run.rate:
            self.state = after if self._set(open_run, step) else before
            self.reported.clear()
        else:
            self.state = after
            self._say_pressure(step)

    def _set(self, run: Run, step: ProtectionStep) -> bool:
        why = _why(step)
        return self.set_rate(run, step.rate, f"{self.reason or '--protect'}: {why}", f": {why}")

    def _say_pressure(self, step: ProtectionStep) -> None:
        """Say once for each throttle why it does not rise."""
        if step.pressure not in (*self.reported, Pressure.CALM, Pressure.MEASURING):
            self.reported.add(step.pressure)
            say(f"run {self.run}: the throttle stays at {human_rate(step.rate)}: {_why(step)}")

    def _say_baseline(self, state: Protection) -> None:
        broker, slowest = max(state.baseline.items(), key=lambda one: one[1])
        say(f"run {self.run}: without the load of the move, writes take up to {_shown(slowest)} (broker {broker})")


def _why(step: ProtectionStep) -> str:
    if step.pressure is Pressure.MEASURING:
        return "the lowest throttle, to measure the usual latency"
    if step.pressure is Pressure.SHRUNK:
        return f"{counted(step.shrunk, 'partition')} lost an in-sync replica"
    if step.latency is None or step.limit is None:
        return "the latency of writes is unknown"
    if math.isinf(step.latency):
        return f"broker {step.broker} does not acknowledge writes"
    limit = f"(limit {_shown(step.limit)})"
    return f"writes to broker {step.broker} take {_shown(step.latency)} {limit}"


def _shown(seconds: float) -> str:
    return f"{seconds * _MILLISECONDS:.1f} ms"
