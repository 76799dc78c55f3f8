"""Who gets which share of a throttle, broker by broker, and so how long a move takes and whether it can ever end.

A leader's throttle carries the copies *and* the in-sync followers that fetch listed partitions: these are counted, not
delayed (KAFKA-4313). A destination's throttle is shared by its new replicas. Each copy must outrun its own writes.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.work import Link, Work, total

# Four throttled moves of 200 to 1200 MB to one broker, measured on three real brokers with Kafka's own tool, took
# bytes / throttle plus 3 to 4 s (the controller's start, the last fetches, joining the ISR) ...
START_SECONDS: Final = 3.5
# ... at a rate a few percent under the throttle: a fetch overshoots the quota, then waits for the window.
EFFICIENCY: Final = 0.97


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
    copies: int
    bytes: int
    keep_up: float | None
    writes: float | None

    @property
    def left(self) -> float | None:
        """The rate that is left for copies: T - keep_up. May be negative."""
        return None if self.keep_up is None else self.throttle - self.keep_up

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
    def seconds(self) -> float | None:
        """bytes / (left - writes); None when a rate is unknown and when it never finishes."""
        if self.needed is None or self.throttle <= self.needed:
            return None
        return self.bytes / (self.throttle - self.needed)

    @property
    def least_seconds(self) -> float:
        """bytes / T: no move can be faster, whatever the traffic."""
        return self.bytes / self.throttle


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a move goes under `throttle`: the share of every broker that sends or receives, leader first."""

    work: Work
    throttle: ByteRate
    shares: tuple[Share, ...]

    @property
    def feasible(self) -> bool | None:
        """False when any side can never finish; None when no side is known to fail but a rate is unknown."""
        verdicts = {share.finishes for share in self.shares}
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def bottleneck(self) -> Share | None:
        """The side that the whole move waits for: one that never finishes, else the slowest.

        While rates are unknown, the slowest if nothing were written. None when nothing moves; a tie goes to the first.
        """
        if not self.shares:
            return None
        if stuck := [s for s in self.shares if s.finishes is False]:
            return max(stuck, key=lambda s: (s.needed or 0.0) - s.throttle)
        if self.feasible:
            return max(self.shares, key=lambda s: s.seconds or 0.0)
        return max(self.shares, key=lambda s: s.least_seconds)

    @property
    def least_throttle(self) -> float | None:
        """The move can finish under any throttle above this (bytes per second); None when a rate is unknown."""
        needed = [share.needed for share in self.shares]
        known = [rate for rate in needed if rate is not None]
        return max(known, default=0.0) if len(known) == len(needed) else None

    @property
    def seconds(self) -> float | None:
        """The expected time: start-up and tail, then the bottleneck's; 0 when nothing moves.

        None when a rate is unknown and when the move never finishes.
        """
        if not self.feasible:
            return None
        return 0.0 if self.bottleneck is None else _expected(self.bottleneck.seconds or 0.0)

    def under(self, throttle: ByteRate) -> Pace:
        """The same move under another throttle."""
        return pace(self.work, throttle)

    @property
    def seconds_without_writes(self) -> float:
        """The expected time if nobody writes to the moving partitions."""
        return _expected(self.least_seconds) if self.shares else 0.0

    @property
    def least_seconds(self) -> float:
        """bytes / T of the busiest side: a lower bound."""
        return max((share.least_seconds for share in self.shares), default=0.0)


def _expected(seconds: float) -> float:
    return START_SECONDS + seconds / EFFICIENCY


def pace(work: Work, throttle: ByteRate) -> Pace:
    """The pace of `work` under `throttle` on both sides of every broker."""
    sides: defaultdict[tuple[int, bool], list[Link]] = defaultdict(list)
    for link in work.links:
        sides[link.leader, False].append(link)
        sides[link.destination, True].append(link)
    shares = (
        Share(
            broker=broker,
            side=Side.DESTINATION if receives else Side.LEADER,
            throttle=throttle,
            copies=sum(link.copies for link in links),
            bytes=sum(link.bytes for link in links),
            keep_up=0.0 if receives else work.keep_up[broker],
            writes=total(link.writes for link in links),
        )
        for (broker, receives), links in sorted(sides.items())
    )
    return Pace(work=work, throttle=throttle, shares=tuple(shares))


def throttle_within(work: Work, seconds: float) -> ByteRate | None:
    """The smallest throttle under which the expected time of `work` is at most `seconds`.

    None when a rate is unknown. Raises Refused where no throttle helps: starting and ending alone take as long.
    """
    shares = pace(work, ByteRate(1)).shares
    copying = (seconds - START_SECONDS) * EFFICIENCY
    if copying <= 0 and shares:
        raise Refused(f"a move takes {START_SECONDS:g} s to start and end, whatever its throttle")
    needed = [None if s.needed is None else s.needed + s.bytes / copying for s in shares]
    known = [rate for rate in needed if rate is not None]
    if len(known) < len(needed):
        return None
    throttle = ByteRate(max(1, math.ceil(max(known, default=0.0))))
    reached = pace(work, throttle).seconds
    # Of two floats' sum a hair may be missing, and at exactly what its writes need a copy never ends.
    return throttle if reached is not None and reached <= seconds else ByteRate(throttle + 1)
