"""The pace of copies between two brokers, the throttles that limit this pace, and the trend of a broker's lag."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.terms import BrokerId
from kquota.watch.history import QUOTA_WINDOW, WatchedLink, WatchHistory, WatchSample, window
from kquota.watch.reading import BrokerRates

_PACE_SECONDS: Final = 60.0
_LEAST_SECONDS: Final = 4.0
"""The shortest time in which a pace can be measured."""
_FLAT: Final = 0.01
"""A lag that changes by at most this share is flat."""


class Trend(enum.Enum):
    """The change of SumReplicaLag over the last two quota windows, or over the time of all samples if it is shorter. If
    readings are farther apart, it is the change since the last reading.
    """

    FALLING = "falling"
    FLAT = "flat"
    GROWING = "growing"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPace:
    """The pace of one link's copies, in bytes per second: the bytes that arrive, and the write rate in the same
    time.
    """

    arriving: float
    written: float

    @property
    def net(self) -> float:
        """The rate at which the missing bytes decrease, or negative if they increase."""
        return self.arriving - self.written


def paces(history: WatchHistory) -> Mapping[WatchedLink, LinkPace]:
    """Return the sustained pace of each link. The result is empty until a pace can be measured.

    A copy may receive the bytes of a whole quota window at once, so a measured rate above the throttle does not last.
    kquota therefore reduces such a rate to the throttles of the destination and the leader.
    """
    since = window(history, max(_PACE_SECONDS, (history.reading.at - history.began) / 2))
    if since is None or history.now.at - since.at < _LEAST_SECONDS:
        return {}
    seconds = history.now.at - since.at
    arriving = rates_since(since.arrived, history.now.arrived, seconds)
    written = rates_since(since.written, history.now.written, seconds)
    limits = throttles(history)
    sent, received = sent_by(history, since), received_by(arriving)
    found = {}
    for link, rate in arriving.items():
        share = 1.0
        if limits[link].leader is not None and link.leader is not None and sent.get(link.leader):
            share = min(share, (limits[link].leader or 0) / sent[link.leader])
        if limits[link].follower is not None and received[link.destination]:
            share = min(share, (limits[link].follower or 0) / received[link.destination])
        found[link] = LinkPace(arriving=rate * share, written=written.get(link, 0.0))
    return found


def throttles(history: WatchHistory) -> Mapping[WatchedLink, BrokerRates]:
    """Return the rates that limit each link: the leader's rate for sending, and the follower's rate for receiving.

    A rate is None if it is unset or unknown, or if no copy of the link is in this side's throttled replica list.
    """
    rates, unset = history.reading.throttle.rates, BrokerRates()
    found: defaultdict[WatchedLink, BrokerRates] = defaultdict(BrokerRates)
    for link, state in history.links.items():
        leader = rates.get(link.leader, unset).leader if state.sending and link.leader is not None else None
        follower = rates.get(link.destination, unset).follower if state.receiving else None
        found[link] = BrokerRates(leader=leader, follower=follower)
    return found


def sent_by(history: WatchHistory, since: WatchSample) -> dict[BrokerId, float]:
    """Return the bytes that each leader sent per second since a sample: copies and follower traffic."""
    seconds = history.now.at - since.at
    total: defaultdict[BrokerId, float] = defaultdict(float)
    for link, rate in rates_since(since.arrived, history.now.arrived, seconds).items():
        if link.leader is not None:
            total[link.leader] += rate
    for broker, size in history.now.followed.items():
        total[broker] += (size - since.followed.get(broker, 0.0)) / seconds
    return dict(total)


def rates_since(
    before: Mapping[WatchedLink, float], now: Mapping[WatchedLink, float], seconds: float
) -> dict[WatchedLink, float]:
    """Return the increase of each link's total between two samples, per second."""
    return {link: (total - before.get(link, 0.0)) / seconds for link, total in now.items()}


def trend(history: WatchHistory, broker: BrokerId) -> Trend | None:
    """Return the trend of a broker's SumReplicaLag, or None if it is unknown."""
    since = window(history, 2 * QUOTA_WINDOW)
    if since is None or history.now.at - since.at < _LEAST_SECONDS:
        return None
    before, now = since.lag.get(broker), history.now.lag.get(broker)
    if before is None or now is None:
        return None
    if abs(now - before) <= _FLAT * max(before, now):
        return Trend.FLAT
    return Trend.FALLING if now < before else Trend.GROWING


def received_by(rates: Mapping[WatchedLink, float]) -> dict[BrokerId, float]:
    """Return the total rate of all links to each destination."""
    found: defaultdict[BrokerId, float] = defaultdict(float)
    for link, rate in rates.items():
        found[link.destination] += rate
    return dict(found)


def time_left(left: int | None, net: float) -> float | None:
    """Return the seconds until no bytes are missing. None if `left` is unknown, or the bytes do not decrease."""
    if left is None:
        return None
    if left == 0:
        return 0.0
    return left / net if net > 0 else None
