"""Who gets which share of a throttle, broker by broker, and so how long a move takes and whether it can ever end.

A leader's throttle carries the copies *and* the in-sync followers that fetch listed partitions: these are counted, not
delayed (KAFKA-4313). A destination's throttle is shared by its new replicas. Each copy must outrun its own writes.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED, AT_ONCE_SECONDS, START_SECONDS, Enforcement
from kquota.pace.fair_rates import Port, Stream, StreamEnds, run
from kquota.pace.work import Link, Work, total

_TIE: Final = 1e-9


class Side(enum.Enum):
    """Which of a broker's two replication throttles."""

    LEADER = "leader"
    DESTINATION = "destination"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one side of one broker must carry during the move, under `throttle`.

    `bytes` is the size of all its copies. `keep_up` is the traffic of in-sync followers that spends this throttle (0 on
    a destination); `writes` is what producers add to its copies meanwhile, counted once a copy. Bytes per second; None
    is unknown, never 0.
    """

    broker: int
    side: Side
    throttle: ByteRate
    enforcement: Enforcement
    copies: int
    bytes: int
    keep_up: float | None
    writes: float | None

    @property
    def flows(self) -> float:
        """How much of the throttle flows for certain, in bytes per second."""
        if self.side is Side.DESTINATION:
            return self.throttle * self.enforcement.into_destination
        return self.throttle * (1.0 if self.needed else self.enforcement.out_of_quiet_leader)

    @property
    def left(self) -> float | None:
        """The rate that is left for copies: what flows - keep_up. May be negative."""
        return None if self.keep_up is None else self.flows - self.keep_up

    @property
    def needed(self) -> float | None:
        """The throttle must be greater than this, or the copies of this side never catch up.

        The sum is enough: a copy that has caught up is in sync and keeps spending w, so the last one still gets
        T - keep_up - (all the others' w), and must outrun its own.
        """
        return None if self.keep_up is None or self.writes is None else self.keep_up + self.writes

    @property
    def finishes(self) -> bool | None:
        """Whether the copies outrun their writes; None when a rate is unknown."""
        return None if self.needed is None else self.throttle > self.needed

    @property
    def spare(self) -> float | None:
        """The rate at which what is missing shrinks, in bytes per second; None when a rate is unknown or too high."""
        if self.needed is None or self.throttle <= self.needed:
            return None
        if self.side is Side.DESTINATION or not self.needed:
            # Where writes need all that flows, the least bit of luck decides: a copy creeps.
            creep = (self.throttle - self.needed) * (1 - self.flows / self.throttle)
            return max(self.flows - self.needed, creep)
        # Stopped fetches go on with the next write, and exceed the quota by some of it: never by more than is written.
        return self.flows - max(0.0, self.needed - self.enforcement.beyond(self.throttle, self.copies))

    @property
    def at_once(self) -> float:
        """The bytes that pass before the quota binds."""
        return self.throttle * AT_ONCE_SECONDS

    @property
    def seconds(self) -> float | None:
        """How long this side's copies take once they flow, were it the only narrow one; None as `spare` is."""
        return None if self.spare is None else max(0.0, self.bytes - self.at_once) / self.spare

    @property
    def least_seconds(self) -> float:
        """bytes / T: no move is faster, whatever the traffic."""
        return self.bytes / self.throttle


def shares(work: Work, throttle: ByteRate, enforcement: Enforcement) -> tuple[Share, ...]:
    """The share of every broker that sends or receives, leader first, under `throttle` on both sides of each."""
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
    """How fast a move goes under `throttle`: the share of every broker that sends or receives, leader first.

    `run` is when each of the work's links ends, `START_SECONDS` not counted; None while a rate is unknown and when the
    move never finishes.
    """

    work: Work
    throttle: ByteRate
    enforcement: Enforcement
    shares: tuple[Share, ...]
    run: StreamEnds | None

    @property
    def feasible(self) -> bool | None:
        """False when any side can never finish; None when no side is known to fail but a rate is unknown."""
        verdicts = {share.finishes for share in self.shares}
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def bottleneck(self) -> Share | None:
        """The side that the whole move waits for: one that never finishes, else the narrower side of the last copies.

        While rates are unknown, the slowest if nothing were written. None when nothing moves; a tie goes to the first.
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
        """When each side has its last copy done, in seconds from the start; empty where no time is expected."""
        if self.run is None:
            return {}
        found: dict[tuple[int, Side], float] = {}
        for link, end in zip(self.work.links, self.run.ends, strict=True):
            for port in _ports(link):
                found[port] = max(found.get(port, 0.0), START_SECONDS + end)
        return found

    @property
    def least_throttle(self) -> float | None:
        """The move can finish under any throttle above this (bytes per second); None when a rate is unknown."""
        needed = [share.needed for share in self.shares]
        known = [rate for rate in needed if rate is not None]
        return max(known, default=0.0) if len(known) == len(needed) else None

    @property
    def seconds(self) -> float | None:
        """The expected time: start-up and tail, then what the copies take side by side; 0 when nothing moves.

        None when a rate is unknown and when the move never finishes.
        """
        if not self.shares:
            return 0.0
        return None if self.run is None else START_SECONDS + self.run.end

    @property
    def works(self) -> tuple[Work, ...]:
        """What is carried at once: all of it."""
        return (self.work,)

    @property
    def followed(self) -> bool | None:
        """Whether the time is more than a lower bound (`fluid.MOST_STREAMS`); None where none is expected."""
        return None if self.run is None else self.run.exact

    def under(self, throttle: ByteRate) -> Pace:
        """The same move under another throttle."""
        return pace(self.work, throttle, self.enforcement)

    @property
    def seconds_without_writes(self) -> float:
        """The expected time if nobody writes to the moving partitions."""
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
        """bytes / T of the busiest side: a lower bound."""
        return max((share.least_seconds for share in self.shares), default=0.0)


def pace(work: Work, throttle: ByteRate, enforcement: Enforcement = AS_SHIPPED) -> Pace:
    """The pace of `work` under `throttle` on both sides of every broker."""
    found = shares(work, throttle, enforcement)
    at_once: dict[Port, float] = {(share.broker, share.side): share.at_once for share in found}
    spare: dict[Port, float] = {(s.broker, s.side): s.spare for s in found if s.spare is not None}
    streams = [Stream(amount=link.bytes, ports=_ports(link)) for link in work.links]
    flowed = run(streams, spare, at_once) if len(spare) == len(found) else None
    return Pace(work=work, throttle=throttle, enforcement=enforcement, shares=found, run=flowed)


def _ports(link: Link) -> tuple[tuple[int, Side], tuple[int, Side]]:
    return (link.leader, Side.LEADER), (link.destination, Side.DESTINATION)
