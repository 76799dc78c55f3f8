"""The load on each broker's throttle during a move, the expected time of the move, and its feasibility.

A leader's throttle counts the copies *and* the follower traffic of listed partitions. This follower traffic is not
delayed (KAFKA-4313). The new replicas on a destination share its throttle. A copy must be faster than the writes to it.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

from kquota.measure import ByteRate, highest, total
from kquota.pace.enforcement import AS_SHIPPED, Enforcement
from kquota.pace.fair_rates import Port, Stream, StreamEnds, run
from kquota.pace.work import Link, Work

_TIE: Final = 1e-9


class Side(enum.Enum):
    """One of the two replication throttles of a broker."""

    LEADER = "leader"
    DESTINATION = "destination"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The load of one side of one broker during the move. Rates are in bytes per second. None means unknown,
    never 0.
    """

    broker: int
    side: Side
    throttle: ByteRate
    enforcement: Enforcement
    copies: int
    bytes: int
    """The bytes to copy on this side."""
    keep_up: float | None
    """The follower traffic that uses this throttle. It is 0 on a destination."""
    writes: float | None
    """The rate at which producers write to the partitions of the copies, counted for each copy."""

    @property
    def flows(self) -> float:
        """The usable part of the throttle, in bytes per second.

        A leader can use its whole throttle if `needed` is known and above 0, because each write ends the wait of a
        stopped fetch (see `Enforcement.out_of_quiet_leader`).
        """
        if self.side is Side.DESTINATION:
            return self.throttle * self.enforcement.into_destination
        return self.throttle * (1.0 if self.needed else self.enforcement.out_of_quiet_leader)

    @property
    def left(self) -> float | None:
        """The rate that remains for copies, in bytes per second: `flows` - `keep_up`. It can be negative. None if
        `keep_up` is unknown.
        """
        return None if self.keep_up is None else self.flows - self.keep_up

    @property
    def needed(self) -> float | None:
        """The rate that the throttle must exceed so that the copies of this side catch up, in bytes per second. None if
        a rate is unknown.

        It is `keep_up` + `writes`. A copy that has caught up is in sync and keeps using its write rate. The last copy
        therefore gets `throttle` - `keep_up` - (the write rates of all other copies). This must exceed the last copy's
        own write rate.
        """
        return None if self.keep_up is None or self.writes is None else self.keep_up + self.writes

    @property
    def finishes(self) -> bool | None:
        """True if `throttle` exceeds `needed`, so that the copies of this side catch up. None if a rate is unknown."""
        return None if self.needed is None else self.throttle > self.needed

    @property
    def spare(self) -> float | None:
        """The rate at which the missing bytes decrease, in bytes per second.

        None if a rate is unknown or the throttle is too low.
        """
        if self.needed is None or self.throttle <= self.needed:
            return None
        if self.side is Side.DESTINATION or not self.needed:
            # A copy makes a little progress even if writes need the whole usable part, because the usable part varies.
            creep = (self.throttle - self.needed) * (1 - self.flows / self.throttle)
            return max(self.flows - self.needed, creep)
        # A stopped fetch continues with the next write. It exceeds the quota a little, but never by more than the
        # write rate.
        return self.flows - max(0.0, self.needed - self.enforcement.beyond(self.throttle, self.copies))

    @property
    def at_once(self) -> float:
        """The bytes that are copied before the quota takes effect."""
        return self.enforcement.burst(self.throttle, self.copies)

    @property
    def seconds(self) -> float | None:
        """The time in seconds that the copies of this side take if no other side slows them down. None if `spare` is
        None.
        """
        return None if self.spare is None else max(0.0, self.bytes - self.at_once) / self.spare

    @property
    def least_seconds(self) -> float:
        """A lower bound in seconds: (`bytes` - `at_once`) / `throttle`."""
        return max(0.0, self.bytes - self.at_once) / self.throttle


def shares(work: Work, throttle: ByteRate, enforcement: Enforcement) -> tuple[Share, ...]:
    """Return a share for each side of each broker under `throttle`, by broker id, the leader side of a broker first."""
    sides: defaultdict[tuple[int, bool], list[Link]] = defaultdict(list)
    for link in work.links:
        sides[link.leader, False].append(link)
        sides[link.destination, True].append(link)
    return tuple(
        Share(
            broker=broker,
            side=Side.DESTINATION if receives else Side.LEADER,
            throttle=throttle,
            enforcement=enforcement,
            copies=sum(link.copies for link in links),
            bytes=sum(link.bytes for link in links),
            keep_up=0.0 if receives else work.keep_up[broker],
            writes=total(link.writes for link in links),
        )
        for (broker, receives), links in sorted(sides.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pace of a move under `throttle`, which applies to both sides of every broker."""

    work: Work
    throttle: ByteRate
    enforcement: Enforcement
    shares: tuple[Share, ...]
    """One share for each side of each broker, in the order of `shares()`."""
    run: StreamEnds | None
    """The end of each link in seconds, without the times that `Enforcement.seconds` adds. None if a rate is unknown or
    the move never finishes.
    """

    @property
    def feasible(self) -> bool | None:
        """True if every side can finish, and False if any side can never finish. None if a rate is unknown and no side
        is known to fail.
        """
        verdicts = {share.finishes for share in self.shares}
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def bottleneck(self) -> Share | None:
        """The side that the move waits for. None if nothing moves.

        If sides can never finish, it is the one whose throttle is furthest below `needed`. Otherwise, it is the slower
        side of the last copies. If a rate is unknown, it is the side with the largest `least_seconds`. If several sides
        are equal, it is the first one in `shares`.
        """
        if not self.shares:
            return None
        if stuck := [s for s in self.shares if s.finishes is False]:
            return max(stuck, key=lambda s: (s.needed or 0.0) - s.throttle)
        if self.run is None:
            return max(self.shares, key=lambda s: s.least_seconds)
        last = self.run.end * (1 - _TIE)
        ports = {
            port
            for link, end in zip(self.work.links, self.run.ends, strict=True)
            if end >= last
            for port in _ports(link)
        }
        return max((s for s in self.shares if (s.broker, s.side) in ports), key=lambda s: s.seconds or 0.0)

    @property
    def ends(self) -> dict[tuple[int, Side], float]:
        """The time at which each side finishes its last copy, in seconds from the start.

        Empty without an expected time.
        """
        if self.run is None:
            return {}
        found: dict[tuple[int, Side], float] = {}
        for link, end in zip(self.work.links, self.run.ends, strict=True):
            for port in _ports(link):
                found[port] = max(found.get(port, 0.0), self.enforcement.seconds(end))
        return found

    @property
    def least_throttle(self) -> float | None:
        """The rate in bytes per second that a throttle must exceed so that the move can finish.

        It is 0 if nothing moves. None if a rate is unknown.
        """
        return highest([0.0, *(share.needed for share in self.shares)])

    @property
    def seconds(self) -> float | None:
        """The expected time in seconds, including the start and the end of the move. It is 0 if nothing moves.

        It is None if a rate is unknown or the move never finishes.
        """
        if not self.shares:
            return 0.0
        return None if self.run is None else self.enforcement.seconds(self.run.end)

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of the move as the only element. `Waves.works` has one element for each wave."""
        return (self.work,)

    @property
    def followed(self) -> bool | None:
        """True if the links of the move were simulated. False if there are more than `fair_rates.MOST_STREAMS` links,
        so that the expected time is only a lower bound. None without an expected time.
        """
        return None if self.run is None else self.run.exact

    def under(self, throttle: ByteRate) -> Pace:
        """Return the pace of the same move under another throttle."""
        return pace(self.work, throttle, self.enforcement)

    @property
    def seconds_without_writes(self) -> float:
        """The expected time in seconds if nothing is written to the moving partitions."""
        if self.seconds is not None and not any(share.needed for share in self.shares):
            return self.seconds
        silent = replace(
            self.work,
            links=tuple(replace(k, writes=0.0) for k in self.work.links),
            keep_up=dict.fromkeys(self.work.keep_up, 0.0),
        )
        return pace(silent, self.throttle, self.enforcement).seconds or 0.0

    @property
    def least_seconds(self) -> float:
        """A lower bound on the time in seconds: the highest lower bound of all sides."""
        return max((share.least_seconds for share in self.shares), default=0.0)


def pace(work: Work, throttle: ByteRate, enforcement: Enforcement = AS_SHIPPED) -> Pace:
    """Return the pace of `work` under `throttle` on both sides of every broker. By default, the brokers have Kafka's
    default settings.
    """
    found = shares(work, throttle, enforcement)
    at_once: dict[Port, float] = {(share.broker, share.side): share.at_once for share in found}
    spare: dict[Port, float] = {(s.broker, s.side): s.spare for s in found if s.spare is not None}
    streams = [Stream(amount=link.bytes, ports=_ports(link)) for link in work.links]
    flowed = run(streams, spare, at_once) if len(spare) == len(found) else None
    return Pace(work=work, throttle=throttle, enforcement=enforcement, shares=found, run=flowed)


def _ports(link: Link) -> tuple[tuple[int, Side], tuple[int, Side]]:
    return (link.leader, Side.LEADER), (link.destination, Side.DESTINATION)
