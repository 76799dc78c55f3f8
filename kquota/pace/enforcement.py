"""The enforcement of a replication throttle by brokers, and the fraction of the throttle that can be used.

A quota counts the bytes in a window of samples, and stops fetches when the bytes of the window are spent. A stopped
fetcher continues only after a pause. The pause is lost, so the usable fraction is window / (window + pause). Source:
Kafka's SampledStat and SimpleRate, a simulation, and measurements on real brokers (`bench truth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kquota.measure import whole_number
from kquota.terms import REPLICATION_RATES, SAMPLE_MS, SAMPLES

QUICK_SECONDS: Final = 0.3
"""The seconds of a move if the throttle delays none of its bytes: the controller's work, one or two fetches, and
joining the ISR.
"""
START_SECONDS: Final = 1.5
"""The seconds that a delayed move takes in addition to its copying and to `TURNOVER_SECONDS`. They are for the start,
the pause after the bytes that the throttle does not delay, the last fetch, and joining the ISR.
"""
TURNOVER_SECONDS: Final = 1.6
"""A move loses up to this many seconds while the second quota window replaces the first, because the first one began
with a burst.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """The broker settings that affect a throttled fetch, in bytes and seconds."""

    window_num: int = SAMPLES
    """The number of samples in the quota window."""
    window_seconds: float = SAMPLE_MS / 1_000
    """The length of one sample."""
    fetch_backoff: float = 1.0
    """`replica.fetch.backoff.ms`, in seconds."""
    fetch_wait: float = 0.5
    """`replica.fetch.wait.max.ms`, in seconds."""
    fetch_bytes: int = 1_048_576
    """`replica.fetch.max.bytes`."""
    response_bytes: int = 10_485_760
    """`replica.fetch.response.max.bytes`."""
    of_brokers: bool = False
    """True if brokers reported the settings. Otherwise, the settings are Kafka's defaults."""
    at_once: float = 1.0
    """The size of the first burst, in seconds of the throttle rate. Without throttled traffic before the move, it is 1,
    because Kafka counts the first sample as a full second.
    """
    throttled: bool = False
    """True if a broker already has a replication throttle. Up to a whole window of unused quota can then pass at once.
    """

    @property
    def window(self) -> float:
        """The length of the quota window in seconds."""
        return self.window_num * self.window_seconds

    @property
    def into_destination(self) -> float:
        """The usable fraction of a destination's throttle. A stopped fetcher pauses for `replica.fetch.backoff.ms`."""
        return self.window / (self.window + self.fetch_backoff)

    @property
    def out_of_quiet_leader(self) -> float:
        """The usable fraction of a leader's throttle if nothing is written to the partitions.

        A stopped fetch waits for `replica.fetch.wait.max.ms`. If producers write to the partitions, each write ends the
        wait, and the whole throttle can be used.
        """
        return self.window / (self.window + self.fetch_wait)

    def seconds(self, copying: float) -> float:
        """Return the seconds of a whole move, with its start, its end and the turnover of the window
        (`TURNOVER_SECONDS`).

        `copying` is the time of the bytes that do not pass at once, so 0 means that all bytes pass at once.
        """
        if not copying:
            return QUICK_SECONDS
        second = (copying + self.at_once - self.window) / self.window
        return START_SECONDS + TURNOVER_SECONDS * min(1.0, max(0.0, second)) + copying

    def beyond(self, throttle: float, copies: int) -> float:
        """Return how far a fetch of `copies` partitions exceeds a leader's throttle on average, in bytes per second.

        A running fetch is not stopped (KIP-73), so in each window the quota is spent in the middle of one fetch.
        """
        return min(self._fetch(copies), throttle * self.window_seconds) / (2 * self.window)

    def burst(self, throttle: float, copies: int) -> float:
        """Return the bytes of `copies` partitions that pass before the first pause.

        They are `at_once` seconds of the throttle plus half a fetch, because the last fetch exceeds the quota by half
        a fetch on average. The minimum is one whole fetch.
        """
        fetch = self._fetch(copies)
        return max(fetch, throttle * self.at_once + fetch / 2)

    def _fetch(self, copies: int) -> int:
        return min(self.response_bytes, copies * self.fetch_bytes)


AS_SHIPPED: Final = Enforcement()

_FETCH: Final = "replica.fetch."
_WINDOW: Final = "replication.quota.window."


def enforcement(brokers: Iterable[Mapping[str, str | None]]) -> Enforcement:
    """Return the enforcement that follows from the brokers' configs.

    If brokers differ, the lowest settings of the window and the highest settings of fetches count. Without brokers, or
    if a broker does not report all of the settings, Kafka's defaults are used for all brokers.
    """
    found = list(brokers)
    throttled = any(settings.get(key) is not None for settings in found for key in REPLICATION_RATES)

    def every(key: str) -> list[int]:
        return [value for settings in found if (value := whole_number(settings.get(key))) is not None]

    keys = ("backoff.ms", "wait.max.ms", "max.bytes", "response.max.bytes")
    fetch = {key: every(_FETCH + key) for key in keys}
    window = {key: every(_WINDOW + key) for key in ("num", "size.seconds")}
    if not found or any(len(values) < len(found) for values in (*fetch.values(), *window.values())):
        return replace(AS_SHIPPED, throttled=throttled)
    return Enforcement(
        window_num=min(window["num"]),
        window_seconds=min(window["size.seconds"]),
        fetch_backoff=max(fetch["backoff.ms"]) / 1000,
        fetch_wait=max(fetch["wait.max.ms"]) / 1000,
        fetch_bytes=max(fetch["max.bytes"]),
        response_bytes=max(fetch["response.max.bytes"]),
        of_brokers=True,
        throttled=throttled,
    )


def longest_window(brokers: Iterable[Mapping[str, str | None]]) -> float:
    """Return the longest quota window of the brokers, in seconds. Brokers that do not report their window are ignored.

    If no broker reports its window, return Kafka's default.
    """
    found = [
        (whole_number(settings.get(f"{_WINDOW}num")), whole_number(settings.get(f"{_WINDOW}size.seconds")))
        for settings in brokers
    ]
    known = [float(num * size) for num, size in found if num is not None and size is not None]
    return max(known, default=AS_SHIPPED.window)
