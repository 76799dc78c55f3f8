"""A move in parts, one after the other: what each carries, how long it takes, and what that makes of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kquota.measure import ByteRate
from kquota.pace.share import Pace, Share, pace
from kquota.pace.work import Work, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One part of a move: its `partitions` moving partitions, the first and the last by name, and their work."""

    first: str
    last: str
    partitions: int
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A move wave by wave, each with its pace; at least one. What `Pace` says of a move at once, it says of them all.

    A wave starts when the one before is in sync: brokers carry the writes of one wave at a time, and a throttle that
    the whole move could never outrun may do for each of its waves.
    """

    each: tuple[tuple[Wave, Pace], ...]

    @property
    def works(self) -> tuple[Work, ...]:
        """What each wave carries."""
        return tuple(wave.work for wave, _ in self.each)

    @property
    def throttle(self) -> ByteRate:
        """The throttle of all waves."""
        return self.each[0][1].throttle

    @property
    def seconds(self) -> float | None:
        """All of them, one after the other; None when the time of one is unknown or endless."""
        return total(pace.seconds for _, pace in self.each)

    @property
    def seconds_without_writes(self) -> float:
        """The expected time if nobody writes to the moving partitions."""
        return sum(pace.seconds_without_writes for _, pace in self.each)

    @property
    def least_seconds(self) -> float:
        """A lower bound: that of each wave, one after the other."""
        return sum(pace.least_seconds for _, pace in self.each)

    @property
    def feasible(self) -> bool | None:
        """The whole is when every wave is: False when one can never finish, None when of none but unknown ones."""
        verdicts = {pace.feasible for _, pace in self.each}
        return False if False in verdicts else None if None in verdicts else True

    @property
    def least_throttle(self) -> float | None:
        """Every wave can finish under any throttle above this (bytes per second); None when a rate is unknown."""
        least = [pace.least_throttle for _, pace in self.each]
        known = [rate for rate in least if rate is not None]
        return max(known) if len(known) == len(least) else None

    @property
    def worst(self) -> int:
        """The place in `each` of the first wave that can never finish, else of the longest."""
        stuck = [n for n, (_, pace) in enumerate(self.each) if pace.feasible is False]
        if stuck:
            return stuck[0]
        known = self.seconds is not None
        times = [(pace.seconds or 0.0) if known else pace.least_seconds for _, pace in self.each]
        return times.index(max(times))

    @property
    def bottleneck(self) -> Share | None:
        """That of the worst wave."""
        return self.each[self.worst][1].bottleneck

    @property
    def followed(self) -> bool | None:
        """Whether the times are more than a lower bound; None where none is expected."""
        found = {pace.followed for _, pace in self.each}
        return None if None in found else all(found)

    def under(self, throttle: ByteRate) -> Waves:
        """The same waves under another throttle."""
        return Waves(each=tuple((wave, pace.under(throttle)) for wave, pace in self.each))


def in_waves(waves: Iterable[Wave], like: Pace) -> Waves:
    """The waves of a move under the throttle, and the enforcement, of the move as a whole."""
    return Waves(each=tuple((wave, pace(wave.work, like.throttle, like.enforcement)) for wave in waves))
