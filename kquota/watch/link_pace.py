"""The pace of copies between two brokers, the throttles that limit this pace, and the trend of a broker's lag."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from kquota.reassign.run import PAUSED_RATE
from kquota.terms import BrokerId
from kquota.watch.history import QUOTA_WINDOW, WatchHistory, WatchSample, window
from kquota.watch.links import LinkEnd, WatchedLink, end_limits, link_rates, throttles
from kquota.watch.symptom import ThrottleSide

_PACE_SECONDS: Final = 60.0
_USUAL_SECONDS: Final = 2 * QUOTA_WINDOW
"""In the share or the pace of one broker, the mean of all brokers counts like a measurement over this many seconds."""
_LEAST_SECONDS: Final = 4.0
"""The shortest time in which a pace can be measured."""
_FLAT: Final = 0.01
"""A lag that changes by at most this share is flat."""


class Trend(enum.Enum):
    """The change of SumReplicaLag over the last two quota windows, or over all samples if they cover less time. If
    readings are farther apart than two windows, it is the change since the previous reading. Samples from before the
    last wave do not count, because the new copies of a wave add their whole lag at once.
    """

    FALLING = "falling"
    FLAT = "flat"
    GROWING = "growing"


def capacities(history: WatchHistory) -> Mapping[LinkEnd, float]:
    """Return the bytes of copies that each link end can pass per second. The result is empty until a pace can be
    measured. A leader that is not in the result has no limit. The limit of a destination that is not in the result is
    unknown.

    A throttled end passes its throttle rate, or less if its copies received less than the throttles permitted
    (`_shares`). An end with the throttle of a paused run passes nothing. The throttle of a leader does not delay its
    follower traffic, so this traffic is subtracted first. A destination without a throttle passes what it received
    while it had running copies (`_received`).
    """
    since = _pace_window(history)
    if since is None:
        return {}
    limits = _limits(history)
    shares = _shares(history, since, limits)
    found: dict[LinkEnd, float] = {}
    for end, limit in limits.items():
        free = limit - _followed(history, since, end.broker) if end.side is ThrottleSide.LEADER else limit
        found[end] = max(0.0, free) * shares[end] if limit > PAUSED_RATE else 0.0
    receiving = {link.destination for link in history.links}
    unlimited = {broker for broker in receiving if LinkEnd.receiving(broker) not in limits}
    received = _received(history, since, unlimited)
    found |= {LinkEnd.receiving(broker): rate for broker, rate in received.items()}
    return found


def write_rates(history: WatchHistory) -> Mapping[WatchedLink, float]:
    """Return, for each link, the mean write rate per unfinished copy, in bytes per second.

    A link that had no unfinished copy in the measured time is left out. The result is empty until a pace can be
    measured.
    """
    since = _pace_window(history)
    if since is None:
        return {}
    seconds = {link: total - since.unfinished.get(link, 0.0) for link, total in history.now.unfinished.items()}
    return {
        link: max(0.0, total - since.written.get(link, 0.0)) / seconds[link]
        for link, total in history.now.written.items()
        if seconds[link]
    }


def _pace_window(history: WatchHistory) -> WatchSample | None:
    since = window(history, max(_PACE_SECONDS, (history.reading.at - history.began) / 2))
    return None if since is None or history.now.at - since.at < _LEAST_SECONDS else since


def _limits(history: WatchHistory) -> dict[LinkEnd, float]:
    """Return the throttle rate of each throttled end, also if only copies of later waves will use it."""
    later = {
        link: link_rates(link, history.moves[link.move].rates)
        for link, state in history.links.items()
        if state.done < state.copies and not state.running
    }
    return {**end_limits(later), **end_limits(throttles(history.links, history.reading.throttle))}


def _shares(history: WatchHistory, since: WatchSample, limits: Mapping[LinkEnd, float]) -> dict[LinkEnd, float]:
    """Return, for each end, the bytes that arrived on the links that it limits, as a share of the bytes that the
    throttles permitted there since a sample.

    The share is at most 1, because a copy may receive the bytes of a whole quota window at once. For the same reason, a
    short time shows little, so kquota adds `_USUAL_SECONDS` with the share of all ends (1 if it is unknown). A new end
    has the share of all ends. If nothing arrived for longer than `_USUAL_SECONDS`, the share is 0.
    """
    possible = {end: total - since.possible.get(end, 0.0) for end, total in history.now.possible.items()}
    used = {end: total - since.used.get(end, 0.0) for end, total in history.now.used.items()}
    every = sum(possible.values())
    usual = min(1.0, sum(used.values()) / every) if every else 1.0
    found = {}
    for end, limit in limits.items():
        if not limit:
            found[end] = 0.0
            continue
        came, most, more = used.get(end, 0.0), possible.get(end, 0.0), _USUAL_SECONDS * limit
        found[end] = min(1.0, (came + usual * more) / (most + more)) if came or most <= more else 0.0
    return found


def _received(history: WatchHistory, since: WatchSample, destinations: Collection[BrokerId]) -> dict[BrokerId, float]:
    """Return the bytes per second that each of these destinations received while it had running copies.

    As in `_shares`, kquota adds `_USUAL_SECONDS` at the mean pace of all destinations.
    """
    came: defaultdict[BrokerId, float] = defaultdict(float)
    for link, total in history.now.arrived.items():
        came[link.destination] += total - since.arrived.get(link, 0.0)
    busy = {broker: total - since.busy.get(broker, 0.0) for broker, total in history.now.busy.items()}
    every = sum(busy.values())
    if not every:
        return {}
    more = sum(came.values()) / every * _USUAL_SECONDS
    return {
        broker: (came[broker] + more) / (busy.get(broker, 0.0) + _USUAL_SECONDS)
        if came[broker] or busy.get(broker, 0.0) <= _USUAL_SECONDS
        else 0.0
        for broker in destinations
    }


def _followed(history: WatchHistory, since: WatchSample, leader: BrokerId) -> float:
    size = history.now.followed.get(leader, 0.0) - since.followed.get(leader, 0.0)
    return size / (history.now.at - since.at)


def sent_by(history: WatchHistory, since: WatchSample) -> dict[BrokerId, float]:
    """Return the bytes that each leader sent per second since a sample: copies and follower traffic."""
    seconds = history.now.at - since.at
    total: defaultdict[BrokerId, float] = defaultdict(float)
    for link, rate in rates_since(since.arrived, history.now.arrived, seconds).items():
        if link.leader is not None:
            total[link.leader] += rate
    for broker in history.now.followed:
        total[broker] += _followed(history, since, broker)
    return dict(total)


def rates_since(
    before: Mapping[WatchedLink, float], now: Mapping[WatchedLink, float], seconds: float
) -> dict[WatchedLink, float]:
    """Return the increase of each link's total between two samples, per second."""
    return {link: (total - before.get(link, 0.0)) / seconds for link, total in now.items()}


def trend(history: WatchHistory, broker: BrokerId) -> Trend | None:
    """Return the trend of a broker's SumReplicaLag. Returns None if a lag is unknown, or if the readings since the last
    wave do not cover `_LEAST_SECONDS` yet.
    """
    since = window(history, 2 * QUOTA_WINDOW, same_wave=True)
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
