"""A move in waves, one after the other: the partitions of each wave, and the work and time of each and of all waves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from kquota.measure import ByteRate, highest, total
from kquota.pace.share import Pace, Share, pace
from kquota.pace.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One wave of a move: the number of its `partitions`, the names of the first and the last one, and its work."""

    first: str
    last: str
    partitions: int
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """The waves of a move, at least one, each with its pace. The properties shared with `Pace` apply to the whole move.

    A wave starts when all replicas of the previous wave are in sync, so the throttle must exceed the writes of only one
    wave. A throttle that is too low for the whole move can therefore be enough for each wave.
    """

    each: tuple[tuple[Wave, Pace], ...]

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of each wave, in order."""
        return tuple(wave.work for wave, _ in self.each)

    @property
    def throttle(self) -> ByteRate:
        """The throttle of all waves, in bytes per second."""
        return self.each[0][1].throttle

    @property
    def seconds(self) -> float | None:
        """The expected time of all waves in seconds, one after the other.

        None if the time of a wave is unknown or a wave never finishes.
        """
        return total(pace.seconds for _, pace in self.each)

    @property
    def seconds_without_writes(self) -> float:
        """The expected time in seconds if nothing is written to the moving partitions."""
        return sum(pace.seconds_without_writes for _, pace in self.each)

    @property
    def least_seconds(self) -> float:
        """A lower bound in seconds: the sum of the waves' lower bounds."""
        return sum(pace.least_seconds for _, pace in self.each)

    @property
    def feasible(self) -> bool | None:
        """True if every wave can finish, and False if any wave can never finish. None if a rate is unknown and no wave
        is known to fail.
        """
        verdicts = {pace.feasible for _, pace in self.each}
        return False if False in verdicts else None if None in verdicts else True

    @property
    def least_throttle(self) -> float | None:
        """The rate in bytes per second that a throttle must exceed so that every wave can finish.

        None if a rate is unknown.
        """
        return highest(pace.least_throttle for _, pace in self.each)

    @property
    def worst(self) -> int:
        """The index in `each` of the first wave that can never finish, otherwise of the longest wave.

        If the time of any wave is unknown, the wave with the largest lower bound counts as the longest.
        """
        stuck = [n for n, (_, pace) in enumerate(self.each) if pace.feasible is False]
        if stuck:
            return stuck[0]
        known = self.seconds is not None
        times = [(pace.seconds or 0.0) if known else pace.least_seconds for _, pace in self.each]
        return times.index(max(times))

    @property
    def bottleneck(self) -> Share | None:
        """The bottleneck of the worst wave, or None if nothing moves in it."""
        return self.each[self.worst][1].bottleneck

    @property
    def followed(self) -> bool | None:
        """True if the links of every wave were simulated, and False if the time of any wave is only a lower bound. None
        if any wave has no expected time.
        """
        found = {pace.followed for _, pace in self.each}
        return None if None in found else all(found)

    def under(self, throttle: ByteRate) -> Waves:
        """Return the same waves under another throttle."""
        return Waves(each=tuple((wave, pace.under(throttle)) for wave, pace in self.each))


def in_waves(waves: Iterable[Wave], like: Pace) -> Waves:
    """Return the waves of a move, with the throttle and the enforcement of `like`, the pace of the whole move."""
    return Waves(each=tuple((wave, pace(wave.work, like.throttle, like.enforcement)) for wave in waves))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The split of a move into waves. Partitions stay in their order, and each wave is a range of them.

    Exactly one of `waves` and `in_flight` is set.
    """

    waves: int | None = None
    """The maximum number of waves."""
    in_flight: int | None = None
    """The maximum bytes of one wave. Only a wave with a single partition can exceed it."""

    def starts(self, copied: Sequence[int]) -> list[int]:
        """Return the index at which each wave begins. `copied` has the bytes to copy for each partition."""
        return _no_more_than(copied, self.in_flight) if self.in_flight is not None else _even(copied, self.waves or 1)


def _no_more_than(copied: Sequence[int], limit: int) -> list[int]:
    starts: list[int] = []
    flying = 0
    for n, size in enumerate(copied):
        if not starts or flying + size > limit:
            starts.append(n)
            flying = 0
        flying += size
    return starts


def _even(copied: Sequence[int], waves: int) -> list[int]:
    """Return the index of the first partition of each wave, for at most `waves` waves with about the same bytes. A
    partition belongs to the wave that contains its middle, and no wave is empty.
    """
    whole = sum(copied)
    if not whole:
        copied, whole = [1] * len(copied), len(copied)
    starts: list[int] = []
    wave = -1
    for n, end in enumerate(accumulate(copied)):
        part = min((2 * end - copied[n]) * waves // (2 * whole), waves - 1)
        if part > wave:
            starts.append(n)
            wave = part
    return starts
