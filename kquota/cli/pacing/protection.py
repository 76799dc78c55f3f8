"""Adjusts the throttle of an open run to the latency of writes, the lag of consumer groups, and metrics of brokers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Final, Generic, TypeVar

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, complain, say, worded
from kquota.cli.pacing.setter import RateSetter, throttled
from kquota.cli.suggestion import suggested
from kquota.errors import Incomplete, Invalid, KquotaError, Unreachable
from kquota.measure import ByteRate, counted, human_rate, human_rates
from kquota.pace.enforcement import longest_window
from kquota.pace.lag import READ_SECONDS, GrowingLag, OffsetsReading
from kquota.pace.landing import RateBounds
from kquota.pace.protection import SETTING_SECONDS, ClientWindow, Pressure, Protection, ProtectionStep
from kquota.pace.reported import BrokerTimes, ReportedTime
from kquota.probe.latency import LatencyProbe, measuring
from kquota.probe.port import ConsumerGroups
from kquota.reassign.moves import Replicas
from kquota.reassign.port import Clock
from kquota.terms import REQUEST_PERCENTAGE, TopicPartition
from kquota.watch.observation import Observed, WatchPorts
from kquota.watch.reading import shrunk

_LOWEST_SHARE: Final = 10
"""Without `--min-rate`, the lowest throttle is the highest throttle divided by this number."""
_LEAST_SECONDS: Final = 1.0
"""The minimum time between two readings, because each window needs enough writes."""
_READ_SECONDS: Final = 2.0
"""The time between two readings. It is short, because slow clients wait for a lower throttle."""
_REPORT_SECONDS: Final = 10.0
"""The minimum time between two readings of the exporters, because a reading costs a broker some CPU."""
_MILLISECONDS: Final = 1_000


def bounds_of(rate: ByteRate | None, bounds: RateBounds) -> tuple[ByteRate, ByteRate]:
    """Return the lowest and the highest throttle of a run.

    `rate` is the throttle that is set now or given for the start, or None. Raises Invalid if the highest throttle is
    not given, or if it is not above the lowest throttle.
    """
    high = rate if bounds.high is None else bounds.high
    if high is None:
        raise Invalid("--protect needs the highest throttle. Give --max-rate or --throttle")
    if bounds.low is None and high <= 1:
        raise Invalid(f"--protect: no throttle is below the highest one ({human_rate(high)}). Give a higher --max-rate")
    low = ByteRate(max(1, high // _LOWEST_SHARE)) if bounds.low is None else bounds.low
    if low >= high:
        lowest, highest = human_rates(low, high)
        raise Invalid(
            f"--min-rate {lowest}: not below the highest throttle ({highest}). Give a lower --min-rate or a higher "
            "--max-rate"
        )
    return low, high


@dataclass(slots=True)
class ScratchRemoval:
    """The result of removing the scratch topic. `code` is 1 if the removal failed, otherwise 0.

    After a failed removal, the command still returns its answer.
    """

    code: int = DONE

    def failed(self, error: KquotaError) -> None:
        """Set `code` to 1, and print why the scratch topic could not be removed."""
        self.code = FAILED
        later = ""
        if not isinstance(error, Incomplete):  # its message already suggests this command
            clean_up = suggested("quota probe --clean-up")
            later = f". The name of each topic contains an end time. After that time, run {clean_up}"
        complain(f"scratch topics of --protect may remain: {worded(error)}{later}")


@contextmanager
def protecting(
    bounds: tuple[ByteRate, ByteRate],
    rate: ByteRate,
    setter: RateSetter,
    ports: WatchPorts,
    exporters: world.UsageReader | None,
    removal: ScratchRemoval,
    *,
    max_latency: float | None,
    fresh: bool,
) -> Iterator[ProtectedPace]:
    """Yield the pace of `--protect`. Its scratch topic exists until the context ends. `bounds` are the lowest and the
    highest throttle, and `rate` is the current one.

    `max_latency` is the limit in seconds, or None if a measured baseline gives the limit. With `fresh`, no copy has
    begun, so the lowest throttle needs no time to take effect.

    Raises Invalid over ZooKeeper, and Unreachable if the cluster does not answer. Also raises the errors of
    `measuring`.
    """
    low, high = bounds
    at = world.where(setter.connection)
    logins = world.logins(at, None)
    settling = longest_window(world.broker_settings(at).values()) + SETTING_SECONDS
    with (
        logins.groups() as groups,
        ThreadPoolExecutor(2) as pool,
        measuring(logins, ports.clock, lambda: say("removing the scratch topic"), removal.failed) as probe,
    ):
        yield ProtectedPace(
            setter=setter,
            ports=ports,
            probe=probe,
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
            lags=_Background(partial(_offsets, groups), READ_SECONDS, ports.clock, pool),
            reports=None
            if exporters is None
            else _Background(partial(_times, exporters), _REPORT_SECONDS, ports.clock, pool),
        )


_Found = TypeVar("_Found")


@dataclass(slots=True)
class _Background(Generic[_Found]):
    """Calls `read` in a thread, because an exporter or a broker may not answer for some seconds. `period` is the
    minimum time between the starts of two calls, in seconds.
    """

    read: Callable[[], _Found]
    period: float
    clock: Clock
    pool: ThreadPoolExecutor
    running: Future[_Found] | None = None
    began: float = -math.inf

    def new(self) -> _Found | None:
        """Return the result of the reading that has ended since the last call, or None. Begin the next reading if it is
        due.
        """
        found = None
        if self.running is not None and self.running.done():
            found = self.running.result()
            self.running = None
        if self.running is None and self.clock.monotonic() - self.began >= self.period:
            self.began = self.clock.monotonic()
            self.running = self.pool.submit(self.read)
        return found


def _offsets(groups: ConsumerGroups) -> OffsetsReading | KquotaError:
    try:
        return groups.read()
    except KquotaError as error:
        return error


def _times(exporters: world.UsageReader) -> tuple[list[BrokerTimes], str | None]:
    """Return the times that the exporters report, and the reason why they are incomplete, if any."""
    reported: list[BrokerTimes] = []
    unreported = None
    try:
        answers = list(exporters())
    except KquotaError as error:
        return [], worded(error)
    for answer in answers:
        if isinstance(answer, Unreachable):
            unreported = worded(answer)
            continue
        if not answer.has_readings and answer.produce_ms is None:
            unreported = f"the metrics of broker {answer.broker} contain neither quotas nor times of produce requests"
            continue
        delays = [use.throttle_ms or 0.0 for bucket, use in answer.readings() if bucket.key == REQUEST_PERCENTAGE]
        times = {ReportedTime.THROTTLED: max(delays, default=0.0) / _MILLISECONDS}
        if answer.produce_ms is not None:
            times[ReportedTime.PRODUCE] = answer.produce_ms / _MILLISECONDS
        reported.append(BrokerTimes(broker=answer.broker, times=times))
    return reported, unreported


@dataclass(slots=True, kw_only=True)
class ProtectedPace:
    """Implements `MovePace`: lowers the throttle when clients become slow, and raises it while they are fast."""

    setter: RateSetter
    ports: WatchPorts
    probe: LatencyProbe
    state: Protection
    since: float
    """The monotonic time at which the current window began, in seconds."""
    lags: _Background[OffsetsReading | KquotaError]
    reports: _Background[tuple[list[BrokerTimes], str | None]] | None
    """The readings of the exporters, or None without exporters."""
    unreported: str | None = None
    """The reason why the metrics are incomplete, or None if they are complete."""
    unread: set[str] = field(default_factory=set)
    """The kinds of the notes that were already printed about consumer groups that cannot be read."""
    reported: set[Pressure] = field(default_factory=set)
    """The reasons that were printed since the last change of the throttle."""
    in_sync: dict[TopicPartition, Replicas] = field(default_factory=dict)
    """The last known in-sync replicas of each partition."""
    interval: float = _READ_SECONDS

    def wait(self, seconds: float) -> None:
        self.probe.wait(max(seconds, _LEAST_SECONDS))

    def after(self, found: Observed) -> None:
        partitions = found.reading.snapshot.partitions
        lost = shrunk(self.in_sync, partitions)
        now = self.ports.clock.monotonic()
        times: list[BrokerTimes] = []
        if self.reports is not None and (report := self.reports.new()) is not None:
            times, self.unreported = report
        window = ClientWindow(
            seconds=now - self.since,
            latencies=self.probe.latencies(),
            shrunk=lost,
            offsets=self._new_offsets(),
            reported=times,
            unreported=self.unreported,
        )
        self.since = now
        (move,) = found.view.moves
        open_run = throttled(self.ports.runs, move.run)
        if open_run is None or open_run.rate is None:
            return
        before = replace(self.state, rate=open_run.rate)
        after, step = before.after(window)
        if after.baseline and not before.baseline:
            broker, slowest = max(after.baseline.items(), key=itemgetter(1))
            time = f"{_shown(slowest)} (broker {broker})"
            say(f"run {open_run.id}: under the lowest throttle, writes take up to {time}")
        # If the throttle cannot be set, keep the old state, so that the next window gives a new decision.
        if step.rate != open_run.rate:
            why = _why(step)
            if not self.setter.set(open_run, step.rate, f"{self.setter.reason or '--protect'}: {why}", f": {why}"):
                self.state = before
                return
            self.reported.clear()
        else:
            if step.pressure not in (*self.reported, Pressure.CALM, Pressure.MEASURING):
                self.reported.add(step.pressure)
                say(f"run {open_run.id}: the throttle stays at {human_rate(step.rate)}: {_why(step)}")
            self.setter.repeat(open_run)
        for lag in step.excused:
            ignored = "kquota ignores this group until it keeps up"
            say(f"run {open_run.id}: {_grown(lag)} even under the lowest throttle. {ignored}")
        self.state = after
        self.in_sync |= {name: now.isr for name, now in partitions.items()}

    def _new_offsets(self) -> OffsetsReading | None:
        found = self.lags.new()
        for kind, why in _unread(found).items():
            if kind not in self.unread:
                self.unread.add(kind)
                say(why)
        return None if isinstance(found, KquotaError) else found


def _unread(found: OffsetsReading | KquotaError | None) -> dict[str, str]:
    """Return a note for each reason why groups could not be read, by the kind of the note. Notes of one kind differ
    only in their numbers.
    """
    if isinstance(found, KquotaError):
        why = worded(found)
        return {why: f"the lag of consumer groups is unknown: {why}"}
    notes: dict[str, str] = {}
    if found is not None and found.unlisted:
        brokers = counted(found.unlisted, "broker")
        notes["unlisted"] = f"--protect does not see all consumer groups, because {brokers} did not list them"
    if found is not None and found.unread:
        groups = counted(found.unread, "consumer group")
        notes["unread"] = f"--protect does not see the lag of {groups}, because the offsets could not be read"
    return notes


def _why(step: ProtectionStep) -> str:
    if step.pressure is Pressure.MEASURING:
        return "kquota is measuring the usual latency under the lowest throttle"
    if step.pressure is Pressure.SHRUNK:
        return f"{counted(step.shrunk, 'partition')} lost an in-sync replica"
    if step.lag is not None:
        return _grown(step.lag)
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
        return f"broker {step.broker} does not acknowledge all writes"
    limit = f"(limit {_shown(step.limit)})"
    return f"writes to broker {step.broker} take {_shown(step.latency)} {limit}"


def _grown(lag: GrowingLag) -> str:
    by = f"{counted(lag.records, 'record')} in {lag.seconds:.0f} s"
    return f"the lag of consumer group {lag.group!r} grew by at least {by}"


def _shown(seconds: float) -> str:
    return f"{seconds * _MILLISECONDS:.1f} ms"
