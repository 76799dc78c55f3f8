"""A search for the moves with the fewest bytes that bring log dirs into the band. It is for few replicas. With many
replicas, `balance` is close enough.

The search is branch and bound. A branch ends when its bytes, plus the bytes that its log dirs still lack or hold in
excess, reach the bytes of the best answer so far. The number of steps is limited, so a cheaper answer may exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.placement.balance import BalanceBand
from kquota.terms import BrokerId

_FEW: Final = 40
_STEPS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """A replica that may move: its number, its size in bytes, and the number of the log dir that holds it (`place`)."""

    number: int
    size: int
    place: BrokerId


def cheapest(
    replicas: Sequence[Movable],
    loads: Mapping[BrokerId, int],
    room: Mapping[BrokerId, int | None],
    band: BalanceBand,
    most: int,
) -> dict[int, BrokerId] | None:
    """Return the new place of each replica that moves, so that all loads are in the band. Fewer than `most` bytes move.

    `loads` has the bytes in each place. `room` has the bytes that each place can receive, or None for no limit. Empty
    replicas do not move. The result is None if more than `_FEW` replicas are not empty, or if the search finds no
    solution.
    """
    ordered = sorted((each for each in replicas if each.size), key=lambda each: (-each.size, each.number))
    if len(ordered) > _FEW:
        return None
    search = _Search(ordered, dict(loads), dict(room), band, most)
    search.extend(0, 0)
    return search.best


class _Search:
    def __init__(
        self,
        replicas: Sequence[Movable],
        loads: dict[BrokerId, int],
        room: dict[BrokerId, int | None],
        band: BalanceBand,
        most: int,
    ) -> None:
        self.replicas, self.loads, self.room, self.band, self.most = replicas, loads, room, band, most
        self.moves: dict[int, BrokerId] = {}
        self.best: dict[int, BrokerId] | None = None
        self.steps = _STEPS

    def extend(self, first: int, moved: int) -> None:
        """Try to add moves of the replicas from index `first` to the current branch, which has already moved `moved`
        bytes.
        """
        missing = self._missing()
        if not missing:
            self.best, self.most = dict(self.moves), moved
            return
        for n in range(first, len(self.replicas)):
            each = self.replicas[n]
            for place in self.loads:
                # A later replica is smaller, so a move that is too large does not end the loop.
                if moved + max(each.size, missing) < self.most and self.steps and self._may(each, place):
                    self.steps -= 1
                    self._move(each, each.place, place)
                    self.moves[each.number] = place
                    if moved + each.size + self._missing() < self.most:
                        self.extend(n + 1, moved + each.size)
                    del self.moves[each.number]
                    self._move(each, place, each.place)

    def _may(self, each: Movable, place: BrokerId) -> bool:
        room = self.room[place]
        return place != each.place and (room is None or each.size <= room)

    def _move(self, each: Movable, source: BrokerId, destination: BrokerId) -> None:
        self.loads[source] -= each.size
        self.loads[destination] += each.size
        gains = destination if destination != each.place else source
        room = self.room[gains]
        if room is not None:
            self.room[gains] = room - each.size if gains == destination else room + each.size

    def _missing(self) -> int:
        """Return a lower bound for the bytes that must still move."""
        low, high = self.band.low, self.band.high
        lack = sum(low - load for load in self.loads.values() if load < low)
        return max(lack, sum(load - high for load in self.loads.values() if load > high))
