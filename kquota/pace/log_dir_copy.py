"""The time of moves between the log dirs of a broker (KIP-113), which have a separate throttle.

All threads that copy between the log dirs of a broker share `replica.alter.log.dirs.io.max.bytes.per.second`. A thread
copies one replica after the other, and pauses for `replica.fetch.backoff.ms` when the quota is spent, like a throttled
fetcher (`enforcement`). A throttle of 0 does not stop the copies: each time the quota window is empty, a broker still
copies one fetch. Source: Kafka's ReplicaAlterLogDirsThread, and measurements on real brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.measure import whole_number
from kquota.pace.enforcement import AS_SHIPPED, Enforcement
from kquota.terms import LOG_DIR_RATE, LONG_MAX

LOG_DIR_START_SECONDS: Final = 2.0
"""The seconds to create the new logs, finish the last fetch and replace the old logs. No controller is involved."""
LOG_DIR_AT_ONCE_SECONDS: Final = 1.0
"""A broker copies the bytes of this many seconds of the throttle at once, before the quota takes effect."""
_WINDOW: Final = "alter.log.dirs.replication.quota.window."
_BACKOFF: Final = "replica.fetch.backoff.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirWork:
    """The replicas that one broker copies between its log dirs, and their bytes.

    `writes` is the rate at which these replicas grow during the copy, in bytes per second. None means unknown, never 0.
    """

    broker: int
    copies: int
    bytes: int
    writes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirPace:
    """The work of one broker under `throttle`, in bytes per second.

    If `throttle` is None, no throttle is set or known, and the time is unknown. It is also unknown if `throttle` is 0.
    """

    work: LogDirWork
    throttle: int | None
    enforcement: Enforcement = AS_SHIPPED

    @property
    def flows(self) -> float | None:
        """The rate of the copies in bytes per second once the quota takes effect. None without a throttle, or if it
        is 0.
        """
        return self.throttle * self.enforcement.into_destination if self.throttle else None

    @property
    def feasible(self) -> bool | None:
        """False if the replicas grow at least as fast as they are copied, otherwise True. None if the write rate is
        unknown, even without a throttle, and if the throttle is 0.
        """
        if self.work.writes is None or self.throttle == 0:
            return None
        return self.flows is None or self.flows > self.work.writes

    @property
    def seconds(self) -> float | None:
        """The expected time in seconds. None without a throttle, if it is 0, with an unknown write rate, or if copies
        never end.
        """
        return None if self.work.writes is None else self._seconds(self.work.writes)

    @property
    def seconds_without_writes(self) -> float | None:
        """The expected time in seconds if nothing is written during the copy. None without a throttle, or if it
        is 0.
        """
        return self._seconds(0.0)

    @property
    def least_seconds(self) -> float | None:
        """A lower bound in seconds: bytes / throttle. None without a throttle, or if it is 0."""
        return self.work.bytes / self.throttle if self.throttle else None

    def _seconds(self, writes: float) -> float | None:
        if self.throttle is None or self.flows is None or self.flows <= writes:
            return None
        return LOG_DIR_START_SECONDS + max(0.0, self.work.bytes - self.throttle * LOG_DIR_AT_ONCE_SECONDS) / (
            self.flows - writes
        )


def log_dir_throttle(settings: Mapping[str, str | None]) -> int | None:
    """Return the throttle in a broker's configs, in bytes per second. None if it is unlimited or unknown."""
    rate = whole_number(settings.get(LOG_DIR_RATE))
    return None if rate is None or rate >= LONG_MAX else rate


def log_dir_enforcement(settings: Mapping[str, str | None]) -> Enforcement:
    """Return how a broker enforces the throttle, according to its configs.

    If the broker does not report all of the configs, Kafka's defaults are used.
    """
    num, size = whole_number(settings.get(f"{_WINDOW}num")), whole_number(settings.get(f"{_WINDOW}size.seconds"))
    backoff = whole_number(settings.get(_BACKOFF))
    if num is None or size is None or backoff is None:
        return AS_SHIPPED
    return Enforcement(window_num=num, window_seconds=size, fetch_backoff=backoff / 1000, of_brokers=True)
