"""The links between leaders and destinations, their throttles, and the rates that these throttles permit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kquota.measure import total
from kquota.pace.fair_rates import rates
from kquota.terms import BrokerId
from kquota.watch.copies import CopyReading
from kquota.watch.reading import BrokerRates, ThrottleReading
from kquota.watch.symptom import ThrottleSide


class WatchedLink(NamedTuple):
    """The copies of one move from one leader to one destination. `leader` is None if the partitions have no leader."""

    move: int
    leader: BrokerId | None
    destination: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """The copies of one link in the last reading."""

    copies: int = 0
    """The number of copies, including those that are done."""
    done: int = 0
    copied: int | None = 0
    """The bytes on the destination, or None if they are unknown for at least one copy."""
    left: int | None = 0
    """The missing bytes, or None if they are unknown for at least one copy."""
    sending: bool = False
    """True if the leaders' throttled replica list has the leader of a copy that is not done."""
    receiving: bool = False
    """True if the followers' throttled replica list has the destination of a copy that is not done."""
    running: bool = False
    """True if a submitted copy is not done."""


class LinkEnd(NamedTuple):
    """A broker as the leader or as the destination of its links in all moves."""

    side: ThrottleSide
    broker: BrokerId

    @classmethod
    def sending(cls, leader: BrokerId) -> LinkEnd:
        """Return the broker as the sending end of links."""
        return cls(ThrottleSide.LEADER, leader)

    @classmethod
    def receiving(cls, destination: BrokerId) -> LinkEnd:
        """Return the broker as the receiving end of links."""
        return cls(ThrottleSide.FOLLOWER, destination)


def link_ends(link: WatchedLink) -> tuple[LinkEnd, LinkEnd]:
    """Return the destination and the leader of a link that has a leader."""
    assert link.leader is not None
    return LinkEnd.receiving(link.destination), LinkEnd.sending(link.leader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowing:
    """The links of running copies, with the rates that the throttles permit."""

    rates: Mapping[WatchedLink, float]
    """The rate of each link in bytes per second, as `fair` calculates it. It is 0 if no throttle limits the link."""
    limits: Mapping[WatchedLink, LinkEnd]
    """The end whose throttle limits the link. A link that no throttle limits is not included."""


def links_of(found: Iterable[CopyReading], throttle: ThrottleReading) -> dict[WatchedLink, LinkState]:
    """Return the links of all copies, with their states."""
    by_link: defaultdict[tuple[int, BrokerId | None, BrokerId], list[CopyReading]] = defaultdict(list)
    for copy in found:
        by_link[copy.move, copy.leader, copy.replica[1]].append(copy)
    links = {}
    for (move, leader, destination), those in by_link.items():
        going = [copy for copy in those if not copy.done]
        links[WatchedLink(move, leader, destination)] = LinkState(
            copies=len(those),
            done=len(those) - len(going),
            copied=total(copy.copied for copy in those),
            left=total(copy.left for copy in going),
            sending=any((copy.replica[0], leader) in throttle.leaders for copy in going),
            receiving=any(copy.replica in throttle.followers for copy in going),
            running=any(copy.submitted for copy in going),
        )
    return links


def running(
    found: Iterable[CopyReading], before: Collection[WatchedLink], alive: Collection[BrokerId]
) -> Collection[WatchedLink]:
    """Return the links of the submitted copies that lack bytes, or whose missing bytes are unknown. Links to brokers
    that are not `alive` are left out, so that the time of a restart does not count as slow copying.

    Between two waves, return `before`, so that the time between the waves counts as part of the earlier wave.
    """
    going: set[WatchedLink] = set()
    waiting = any_submitted = False
    for move, replica, leader, _, left, _, _, done, _, submitted, _ in found:
        if done or left == 0:
            continue
        if not submitted:
            waiting = True
            continue
        any_submitted = True
        if replica[1] in alive:
            going.add(WatchedLink(move, leader, replica[1]))
    return before if waiting and not any_submitted else going


def flowing(
    links: Collection[WatchedLink], throttles: Mapping[WatchedLink, BrokerRates], followed: Mapping[BrokerId, float]
) -> Flowing:
    """Return the rates that the throttles permit on these links, and the end that limits each link. `followed` is each
    leader's follower traffic in bytes per second, which is subtracted from the throttle rate of the leader.
    """
    free = end_limits(throttles)
    for leader, rate in followed.items():
        if (end := LinkEnd.sending(leader)) in free:
            free[end] = max(0.0, free[end] - rate)
    routes = {link: link_ends(link) for link in links if link.leader is not None}
    found = fair(routes, free)
    through: defaultdict[LinkEnd, float] = defaultdict(float)
    for link, rate in found.items():
        for end in routes[link]:
            through[end] += rate
    limits = {}
    for link, rate in found.items():
        full = [end for end in routes[link] if end in free and through[end] >= free[end] * (1 - 1e-9)]
        if rate < math.inf and full:
            limits[link] = full[0]
    return Flowing(rates={link: found[link] if link in limits else 0.0 for link in links}, limits=limits)


def fair(
    routes: Mapping[WatchedLink, tuple[LinkEnd, LinkEnd]], capacity: Mapping[LinkEnd, float]
) -> dict[WatchedLink, float]:
    """Return the rate of each link if the links share the capacity of their ends equally. If one end limits a link, the
    unused part of its share at the other end goes to the other links there (max-min fairness).

    An end that is missing from `capacity` has no limit, so the rate of a link without a limited end is infinite. Rates
    and capacities are bytes per second.
    """
    ends = {end for both in routes.values() for end in both}
    return rates(routes, {end: max(0.0, capacity.get(end, math.inf)) for end in ends})


def end_limits(throttles: Mapping[WatchedLink, BrokerRates]) -> dict[LinkEnd, float]:
    """Return the throttle rate of each link end, in bytes per second. An end without a known throttle is left out."""
    found: dict[LinkEnd, float] = {}
    for link, limits in throttles.items():
        if link.leader is not None and limits.leader is not None:
            found[LinkEnd.sending(link.leader)] = limits.leader
        if limits.follower is not None:
            found[LinkEnd.receiving(link.destination)] = limits.follower
    return found


def throttles(links: Mapping[WatchedLink, LinkState], throttle: ThrottleReading) -> Mapping[WatchedLink, BrokerRates]:
    """Return the rates that limit each link: the leader's rate for sending, and the follower's rate for receiving.

    A rate is None if it is unset or unknown, or if this side's throttled replica list has no unfinished copy of the
    link.
    """
    return {
        link: link_rates(link, throttle.rates, sending=state.sending, receiving=state.receiving)
        for link, state in links.items()
    }


def link_rates(
    link: WatchedLink, rates: Mapping[BrokerId, BrokerRates], *, sending: bool = True, receiving: bool = True
) -> BrokerRates:
    """Return the rates that limit the link. A rate is None if it is unset or unknown. The leader's rate is also None if
    `sending` is false or the link has no leader, and the follower's rate is also None if `receiving` is false.
    """
    unset = BrokerRates()
    leader = rates.get(link.leader, unset).leader if sending and link.leader is not None else None
    return BrokerRates(leader=leader, follower=rates.get(link.destination, unset).follower if receiving else None)
