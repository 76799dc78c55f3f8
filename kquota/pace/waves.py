"""A move in parts, one after the other: what each carries and how long it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kquota.pace.share import Pace, pace
from kquota.pace.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One part of a move: its `partitions` moving partitions, the first and the last by name, and their work."""

    first: str
    last: str
    partitions: int
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A move wave by wave, each with its pace."""

    each: tuple[tuple[Wave, Pace], ...]

    @property
    def seconds(self) -> float | None:
        """All of them, one after the other; None when the time of one is unknown or endless."""
        found = [pace.seconds for _, pace in self.each]
        known = [seconds for seconds in found if seconds is not None]
        return sum(known) if len(known) == len(found) else None


def in_waves(waves: Iterable[Wave], like: Pace) -> Waves:
    """The waves of a move under the throttle, and the enforcement, of the move as a whole."""
    return Waves(each=tuple((wave, pace(wave.work, like.throttle, like.enforcement)) for wave in waves))
