"""A throttle that protects clients during a move. The throttle rises while no signal shows harm, and falls when a
signal shows harm. The signals are slow writes, the lag of consumer groups, lost in-sync replicas, and slow clients in
the metrics of brokers.

This is a state machine without I/O. It receives one window of measurements after another, and returns the throttle to
set.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from kquota.measure import ByteRate, nearest_rank
from kquota.pace.enforcement import AS_SHIPPED
from kquota.pace.lag import SHOWN_SECONDS, GroupLags, GrowingLag, OffsetsReading
from kquota.pace.reported import BrokerTimes, HighTime, ReportedBaseline, limit_of
from kquota.terms import BrokerId

QUANTILE: Final = 0.95
"""The quantile of the latencies in a window. A window has about 20 writes, so a higher quantile would be their maximum,
a single write.
"""
BASELINE_QUANTILE: Final = 0.75
"""The baseline is this quantile of the windows' latencies. Client bursts in up to a quarter of the windows do not
count.
"""
RECENT: Final = 3
"""A window is slow only if the `QUANTILE` over the last `RECENT` windows, including this one, is also too high.
Otherwise, single delays would count, which also occur without a move: a delay of 0.1 s affects two of the writes to
each broker.
"""
LEAST_SAMPLES: Final = 5
"""With fewer writes in a window, the latency of a broker is unknown."""
SETTING_SECONDS: Final = 4.0
"""The time to write a throttle, and for brokers to apply it."""
BASELINE_SECONDS: Final = 20.0
CAUTIOUS_TIMES: Final = 6
CAUTION: Final = 0.9
CAUTIOUS_STEP: Final = 0.05
"""The rules for a throttle of at least `CAUTION` x the last throttle that was too high. Before an increase,
`Protection.calm` must then reach `CAUTIOUS_TIMES` x as many seconds as usual. The increase is `CAUTIOUS_STEP` x the
throttle that was too high.
"""
STEPS: Final = 20
"""`Protection.step` is the range from the lowest to the highest throttle, divided by this number."""
SLOW_SHARE: Final = 0.05
"""Writes may be slow in this share of the time, because bursts of clients also make writes slow."""
FORGIVEN_DEBT: Final = 2.5
"""A rare slow window leaves the throttle unchanged. It does not count as rare if earlier windows with harm exceed
`SLOW_SHARE` of the time by more than this many seconds.
"""
DECREASE: Final = 0.5
"""The smallest factor of a decrease. A decrease for another reason than slow writes uses the smallest factor."""
SMALL_DECREASE: Final = 0.7
"""The smallest factor if the throttle has been raised towards one that was too high. The throttle is then already close
to the limit of the clients.
"""
LEAST_DECREASE: Final = 0.85
"""The largest factor of a decrease. Between the smallest and the largest factor, the factor is (limit / latency)²,
because the latency grows faster than the throttle where a network is nearly full.
"""
RELIEF_SHARE: Final = 2 / 3
"""The minimum time between two decreases, as a share of `Protection.settling`, because the first one needs time to take
effect.
"""


class Pressure(enum.Enum):
    """The state of the clients in one window, as the reason for a throttle."""

    MEASURING = "kquota measures the baseline"
    CALM = "calm"
    SLOW = "writes are slow"
    REPORTED = "the metrics of brokers show slow clients"
    SHRUNK = "partitions lost in-sync replicas"
    LAGGING = "the lag of a consumer group grows"
    UNKNOWN = "unknown"


_HARM: Final = (Pressure.SLOW, Pressure.REPORTED, Pressure.SHRUNK, Pressure.LAGGING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWindow:
    """The measurements of one window of a few seconds: write latencies, in-sync replicas, consumer groups and
    metrics.
    """

    seconds: float
    """The length of the window."""
    latencies: Mapping[BrokerId, Collection[float]]
    """The latencies of the writes to each broker, in seconds. A failed write has an infinite latency."""
    shrunk: int = 0
    """The number of partitions that lost an in-sync replica."""
    offsets: OffsetsReading | None = None
    """A new reading of the consumer groups, or None without one."""
    reported: Collection[BrokerTimes] = ()
    """A new reading of the metrics of brokers. Empty without one."""
    unreported: str | None = None
    """The reason why the reading of the metrics is incomplete, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionStep:
    """The throttle to set, and the reason.

    `broker`, `latency` and `limit` are None while the baseline is measured. They are also None if no broker is slow and
    the latency of a broker is unknown.
    """

    rate: ByteRate
    pressure: Pressure
    broker: BrokerId | None = None
    """The broker with the highest ratio of `latency` to `limit`."""
    latency: float | None = None
    """The latency of writes to this broker, in seconds."""
    limit: float | None = None
    """The latency above which this broker is slow, in seconds."""
    shrunk: int = 0
    """The number of partitions that lost an in-sync replica."""
    lag: GrowingLag | None = None
    """The growth of the lag of a consumer group, if this lag is the reason."""
    high: HighTime | None = None
    """The reported time that exceeds its limit most, if metrics are the reason."""
    unreported: str | None = None
    """The reason why metrics are unknown, if `pressure` is `UNKNOWN` because of them. Otherwise None."""
    excused: tuple[GrowingLag, ...] = ()
    """The lags that grow even under the lowest throttle. Each of them counts again only after its group has kept up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The state between two windows. Times and latencies are in seconds.

    The first steps set the throttle `low`, to measure the baseline. The next steps set throttles from `low` to `high`.
    """

    low: ByteRate
    high: ByteRate
    rate: ByteRate
    """The throttle that is set. It may differ from the rate of the last step."""
    max_latency: float | None = None
    """The highest latency that the operator allows. If it is None, the limits follow from the baseline."""
    measures: bool = True
    """False if no baseline is measured."""
    settling: float = AS_SHIPPED.window + SETTING_SECONDS
    """The time until a throttle has its whole effect, and the minimum of `calm` before an increase.

    A slow window can count as a short burst of a client only if the previous window with harm was longer ago than this.
    """
    baseline: Mapping[BrokerId, float] = field(default_factory=dict)
    """The latency of each broker under the throttle `low`. Empty until it is known."""
    samples: tuple[Mapping[BrokerId, Collection[float]], ...] = ()
    """The latencies in each window of the baseline so far."""
    at_lowest: float = 0.0
    """The time under the throttle `low` so far, while the baseline is measured."""
    recent: tuple[Mapping[BrokerId, Collection[float]], ...] = ()
    """The latencies of the previous windows, at most `RECENT` - 1."""
    calm: float = 0.0
    """The time since the last increase, or since the last window with harm or with unknown latencies or metrics. A rare
    slow window does not count as harm, but its time is not added.
    """
    since_decrease: float = math.inf
    ceiling: ByteRate | None = None
    """The last throttle that was too high. None if none was, or if it no longer counts as too high."""
    approached: bool = False
    """True if the throttle has been raised towards `ceiling`."""
    since_slow: float = math.inf
    debt: float = 0.0
    """The time of the windows with harm since the last decrease, as far as it exceeds `SLOW_SHARE` of the time."""
    lagged: bool = False
    """True if the lag of a consumer group was the reason for the last decrease."""
    lags: GroupLags = field(default_factory=GroupLags)
    """The commits of consumer groups since the last decrease."""
    reported: ReportedBaseline = field(default_factory=ReportedBaseline)
    """The baselines and the last values of the times in brokers' metrics."""

    def after(self, window: ClientWindow) -> tuple[Protection, ProtectionStep]:
        """Return the state after a window, and the step. The state assumes that the throttle of the step is set."""
        if window.offsets is None or not self._settled:
            return self._after(window, None)
        lowest = self.rate <= self.low
        lags, growing = self.lags.after(window.offsets, lowest=lowest)
        state = replace(self, lags=lags)
        if not growing:
            return state._after(window, None)
        if not lowest:
            return state._after(window, growing[0])
        if self.lagged:
            # The decreases have not helped, so the throttles before them were not too high.
            state = replace(state, ceiling=None, approached=False, since_decrease=math.inf, lagged=False)
        state, step = state._after(window, None)
        return state, replace(step, excused=growing)

    @property
    def _settled(self) -> bool:
        """True if the last decrease has had its whole effect. Before the baseline is measured, the change to the lowest
        throttle counts as a decrease.
        """
        measured = bool(self.baseline) or not self.measures
        return self.since_decrease > self.settling and (measured or self.at_lowest >= self.settling)

    def _after(self, window: ClientWindow, lag: GrowingLag | None) -> tuple[Protection, ProtectionStep]:
        if not self.baseline and self.measures:
            return self._measured(window)
        reported, high = self.reported.after(window.reported)
        worst = self._worst(window, lag, high)
        since = self.since_decrease + window.seconds
        state = replace(
            self,
            since_decrease=since,
            since_slow=self.since_slow + window.seconds,
            debt=max(0.0, self.debt - SLOW_SHARE * window.seconds),
            reported=reported,
            recent=(*self.recent, window.latencies)[1 - RECENT :],
        )
        if worst.pressure in _HARM:
            return self._harmed(state, worst, window.seconds)
        if worst.pressure is Pressure.UNKNOWN:
            return replace(state, calm=0.0), worst
        calm = replace(state, calm=self.calm + window.seconds)
        patience = self.settling * (CAUTIOUS_TIMES if calm._near_ceiling else 1)
        if self.lagged:
            # The lag shows late whether the decrease was enough.
            patience = max(patience, self.settling + SHOWN_SECONDS)
        return calm._increased(worst) if calm.calm >= patience else (calm, worst)

    @property
    def step(self) -> int:
        """The smallest increase in bytes per second, except near a throttle that was too high."""
        return max(1, (self.high - self.low) // STEPS)

    @property
    def _near_ceiling(self) -> bool:
        return self.ceiling is not None and self.rate >= int(CAUTION * self.ceiling)

    def _clamped(self, rate: float) -> ByteRate:
        return ByteRate(max(self.low, min(self.high, int(rate))))

    def _measured(self, window: ClientWindow) -> tuple[Protection, ProtectionStep]:
        step = ProtectionStep(rate=self.low, pressure=Pressure.MEASURING, shrunk=window.shrunk)
        if self.rate != self.low or window.shrunk:
            return replace(self, rate=self.low, samples=(), at_lowest=0.0), step
        state = replace(self, at_lowest=self.at_lowest + window.seconds)
        if self.at_lowest < self.settling:
            return state, step
        state = replace(state, reported=self.reported.measured(window.reported))
        state = replace(state, samples=(*self.samples, window.latencies))
        if state.at_lowest < self.settling + BASELINE_SECONDS:
            return state, step
        brokers = sorted(set().union(*state.samples))
        found = {broker: usual([one.get(broker, ()) for one in state.samples]) for broker in brokers}
        known = {broker: value for broker, value in found.items() if value is not None and math.isfinite(value)}
        if not known or len(known) < len(found):
            return replace(state, samples=(), at_lowest=self.settling), step
        return replace(
            state, samples=(), recent=state.samples[1 - RECENT :], baseline=known, calm=BASELINE_SECONDS
        ), step

    def _worst(self, window: ClientWindow, lag: GrowingLag | None, high: HighTime | None) -> ProtectionStep:
        """Return the step that keeps the throttle, with the pressure of the window."""
        found = [
            (latency / limit, broker, latency, limit)
            for broker, latencies in sorted(window.latencies.items())
            if (latency := self._lasting(broker, latencies)) is not None
            for limit in [self.limit(broker)]
        ]
        kept = ProtectionStep(rate=self._clamped(self.rate), pressure=Pressure.UNKNOWN, shrunk=window.shrunk)
        if found:
            ratio, broker, latency, limit = max(found)
            pressure = Pressure.SLOW if ratio > 1 else Pressure.CALM
            if pressure is Pressure.SLOW or window.latencies.keys() <= {one[1] for one in found}:
                kept = replace(kept, pressure=pressure, broker=broker, latency=latency, limit=limit)
        if kept.pressure is Pressure.SLOW:
            return kept
        if window.shrunk:
            return replace(kept, pressure=Pressure.SHRUNK)
        if lag is not None:
            return replace(kept, pressure=Pressure.LAGGING, lag=lag)
        if high is not None:
            return replace(kept, pressure=Pressure.REPORTED, high=high)
        if window.unreported is not None:
            return replace(kept, pressure=Pressure.UNKNOWN, unreported=window.unreported)
        return kept

    def _lasting(self, broker: BrokerId, latencies: Collection[float]) -> float | None:
        now = quantile(latencies)
        recent = quantile([*chain.from_iterable(one.get(broker, ()) for one in self.recent), *latencies])
        return None if now is None or recent is None else min(now, recent)

    def limit(self, broker: BrokerId) -> float:
        """Return the latency in seconds above which a broker is slow.

        Without `max_latency`, a broker without a baseline has the limit of the highest baseline, so at least one broker
        must have a baseline.
        """
        if self.max_latency is not None:
            return self.max_latency
        return limit_of(self.baseline.get(broker, max(self.baseline.values())))

    def _harmed(self, state: Protection, worst: ProtectionStep, seconds: float) -> tuple[Protection, ProtectionStep]:
        slow = worst.pressure is Pressure.SLOW and not math.isinf(worst.latency or 0.0)
        rare = slow and state.since_slow > self.settling and state.debt <= FORGIVEN_DEBT
        since = state.since_decrease
        state = replace(state, since_slow=0.0, debt=state.debt + seconds)
        if since <= RELIEF_SHARE * self.settling:
            return replace(state, calm=0.0), worst
        if rare:
            return state, worst
        if self.rate > self.low:
            return state._decreased(worst)
        if slow and self.max_latency is None and since > self.settling:
            # The load of the clients has changed, so the baseline is measured again.
            return replace(state, calm=0.0, baseline={}, samples=(), at_lowest=self.settling), worst
        return replace(state, calm=0.0), worst

    def _decreased(self, worst: ProtectionStep) -> tuple[Protection, ProtectionStep]:
        factor = SMALL_DECREASE if self.approached else DECREASE
        if worst.pressure is Pressure.SLOW and worst.latency and worst.limit is not None:
            factor = max(factor, min(LEAST_DECREASE, (worst.limit / worst.latency) ** 2))
        rate = self._clamped(self.rate * factor)
        state = replace(
            self,
            rate=rate,
            calm=0.0,
            since_decrease=0.0,
            debt=0.0,
            ceiling=self.rate,
            approached=False,
            recent=(),
            lagged=worst.pressure is Pressure.LAGGING,
            lags=self.lags.forgotten(),
        )
        return state, replace(worst, rate=rate)

    def _increased(self, worst: ProtectionStep) -> tuple[Protection, ProtectionStep]:
        # If the throttle reaches the ceiling without harm, the load has changed, and the ceiling no longer applies.
        ceiling = None if self.ceiling is not None and self.rate >= self.ceiling else self.ceiling
        # Double the throttle until one is too high, because doubling finds the limit of the clients in a few minutes.
        higher = self.rate + (max(self.step, self.rate) if math.isinf(self.since_decrease) else self.step)
        if ceiling is not None and self._near_ceiling:
            higher = self.rate + max(1, int(CAUTIOUS_STEP * ceiling))
        elif ceiling is not None:
            cautious = int(CAUTION * ceiling)
            higher = min(cautious, self.rate + max(self.step, (cautious - self.rate) // 2))
        rate = self._clamped(higher)
        state = replace(self, rate=rate, calm=0.0, ceiling=ceiling, approached=ceiling is not None)
        return state, replace(worst, rate=rate)


def quantile(latencies: Collection[float]) -> float | None:
    """Return the `QUANTILE` of the latencies, or None if there are fewer than `LEAST_SAMPLES`."""
    return None if len(latencies) < LEAST_SAMPLES else nearest_rank(latencies, QUANTILE)


def usual(windows: Collection[Collection[float]]) -> float | None:
    """Return the `BASELINE_QUANTILE` of the windows' latencies. A window's latency is the `QUANTILE` of its writes.

    Windows with too few writes do not count. Return None if no window is left.
    """
    found = [latency for one in windows if (latency := quantile(one)) is not None]
    return nearest_rank(found, BASELINE_QUANTILE) if found else None
