"""The pressure on clients, according to brokers' metrics: the time of produce requests, and throttled requests."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

FACTOR: Final = 1.5
LEAST_EXCESS_SECONDS: Final = 0.005
"""A time is high if it is above `FACTOR` times its baseline, and also more than this many seconds above its
baseline.
"""


class ReportedTime(enum.Enum):
    """A time that brokers report."""

    PRODUCE = "produce requests"
    """The 99th percentile over the produce requests of about five minutes (Kafka's decaying reservoir). A high value
    that does not rise is therefore old.
    """
    THROTTLED = "request quotas"
    """The highest mean delay that a request quota causes for a client. Delays by byte rate quotas do not count, because
    they do not depend on a move.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTimes:
    """The times of one broker in seconds. A time that the broker does not report is absent."""

    broker: str
    times: Mapping[ReportedTime, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HighTime:
    """A reported time that is above its limit. `seconds` and `limit` are in seconds."""

    broker: str
    time: ReportedTime
    seconds: float
    limit: float


_Key: TypeAlias = tuple[str, ReportedTime]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedBaseline:
    """The baselines and the last values of all brokers' times, in seconds."""

    highest: Mapping[_Key, float] = field(default_factory=dict)
    """The baselines: the highest value under the lowest throttle, or else the first value that was read."""
    last: Mapping[_Key, float] = field(default_factory=dict)
    """The last value that each broker reported for each `ReportedTime`."""

    def measured(self, found: Collection[BrokerTimes]) -> ReportedBaseline:
        """Return the baseline after another reading under the lowest throttle."""
        now = _flat(found)
        highest = {key: max(value, self.highest.get(key, 0.0)) for key, value in now.items()}
        return ReportedBaseline(highest={**self.highest, **highest}, last={**self.last, **now})

    def after(self, found: Collection[BrokerTimes]) -> tuple[ReportedBaseline, HighTime | None]:
        """Return the baseline after a reading, and the time that exceeds its limit by the largest factor. The time is
        None if no time is high.

        A `PRODUCE` time counts only if it is above its last value, or has none. A broker without a baseline for a time
        is compared with the highest baseline of the other brokers. If no broker has a baseline for a time, this reading
        becomes its baseline.
        """
        now = _flat(found)
        high: list[tuple[float, HighTime]] = []
        first = {}
        for (broker, time), seconds in sorted(now.items(), key=lambda one: (one[0][0], one[0][1].value)):
            known = [value for (_, kind), value in self.highest.items() if kind is time]
            if not known:
                first[broker, time] = seconds
                continue
            limit = limit_of(self.highest.get((broker, time), max(known)))
            rising = time is not ReportedTime.PRODUCE or seconds > self.last.get((broker, time), 0.0)
            if seconds > limit and rising:
                high.append((seconds / limit, HighTime(broker=broker, time=time, seconds=seconds, limit=limit)))
        state = ReportedBaseline(highest={**self.highest, **first}, last={**self.last, **now})
        return state, max(high, key=lambda one: one[0])[1] if high else None


def limit_of(baseline: float) -> float:
    """Return the limit for a time with this baseline, in seconds. A time above the limit is high.

    >>> [round(limit_of(baseline), 3) for baseline in (0.0, 0.004, 0.1)]
    [0.005, 0.009, 0.15]
    """
    return max(FACTOR * baseline, baseline + LEAST_EXCESS_SECONDS)


def _flat(found: Collection[BrokerTimes]) -> dict[_Key, float]:
    return {(one.broker, time): seconds for one in found for time, seconds in one.times.items()}
