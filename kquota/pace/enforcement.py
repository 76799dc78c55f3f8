"""How brokers enforce a replication throttle, and so how much of it flows: less than all of it, for a reason.

A quota looks back over a window of samples and stops a fetch once the window's bytes are spent. Whoever was stopped
comes back only after a pause, and a window is followed by one pause of which nothing is made up for: what flows is
window / (window + pause). Read in SampledStat and SimpleRate, simulated, and seen on real brokers (`bench truth`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.terms import SAMPLE_MS, SAMPLES

START_SECONDS: Final = 4.0
"""The controller's start, the first fetches, the last ones, and joining the ISR."""
AT_ONCE_SECONDS: Final = 2.0
"""Of each throttle so many seconds' worth pass at once: the first sample counts as a whole one from its first moment,
and the fetch that finds the quota spent was under way before.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """The brokers' settings that shape a throttled fetch, in bytes and seconds; as Kafka ships them unless `told`."""

    window_num: int = SAMPLES
    window_seconds: float = SAMPLE_MS / 1_000
    fetch_backoff: float = 1.0
    fetch_wait: float = 0.5
    fetch_bytes: int = 1_048_576
    response_bytes: int = 10_485_760
    told: bool = False

    @property
    def window(self) -> float:
        """How far a quota looks back: replication.quota.window.num x replication.quota.window.size.seconds."""
        return self.window_num * self.window_seconds

    @property
    def into_destination(self) -> float:
        """The share of a destination's throttle that flows: one that is stopped sleeps replica.fetch.backoff.ms."""
        return self.window / (self.window + self.fetch_backoff)

    @property
    def out_of_quiet_leader(self) -> float:
        """The share of a leader's throttle that flows: a fetch that it stops waits replica.fetch.wait.max.ms there.

        Unless somebody writes to the partitions: that ends the wait, and then all of it flows.
        """
        return self.window / (self.window + self.fetch_wait)

    def beyond(self, throttle: float, copies: int) -> float:
        """By how much a fetch of so many partitions exceeds a leader's throttle, bytes per second: half of it a window.

        No fetch is stopped under way (KIP-73): the quota is spent before one in the middle, and after it.
        """
        fetch = min(self.response_bytes, copies * self.fetch_bytes, throttle * self.window_seconds)
        return fetch / (2 * self.window)


AS_SHIPPED: Final = Enforcement()

_FETCH: Final = "replica.fetch."
_WINDOW: Final = "replication.quota.window."


def enforcement(brokers: Iterable[Mapping[str, str | None]]) -> Enforcement:
    """What the brokers' configs come to, as DescribeConfigs tells them; where brokers differ, what makes moves slower.

    As shipped where one of them does not tell.
    """
    found = list(brokers)

    def every(key: str) -> list[int]:
        texts = [settings.get(key) for settings in found]
        return [int(text) for text in texts if text is not None and text.isascii() and text.isdigit()]

    keys = ("backoff.ms", "wait.max.ms", "max.bytes", "response.max.bytes")
    fetch = {key: every(_FETCH + key) for key in keys}
    window = {key: every(_WINDOW + key) for key in ("num", "size.seconds")}
    if not found or any(len(values) < len(found) for values in (*fetch.values(), *window.values())):
        return AS_SHIPPED
    return Enforcement(
        window_num=min(window["num"]),
        window_seconds=min(window["size.seconds"]),
        fetch_backoff=max(fetch["backoff.ms"]) / 1000,
        fetch_wait=max(fetch["wait.max.ms"]) / 1000,
        fetch_bytes=max(fetch["max.bytes"]),
        response_bytes=max(fetch["response.max.bytes"]),
        told=True,
    )
