"""A search for the moves with the fewest bytes that bring log dirs into a band around the mean. It is for few replicas.
With many replicas, `balance` is close enough.

The search is branch and bound. The lower bound of a branch is the bytes that it has moved, plus the larger of two
amounts: the bytes that log dirs still lack, and the bytes that they hold in excess. A branch ends when its lower bound
reaches the bytes of the best answer so far. The number of steps is limited, so a cheaper answer may exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.placement.balance import BalanceBand
from kquota.terms import BrokerId

_FEW: Final = 40
_STEPS: Final = 30_000
_Outside = tuple[int, int]
"""The bytes that all places together still need to reach the band, and the bytes that they hold above the band. At
least the larger of these two amounts must still move.
"""


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
    lack = sum(max(0, band.low - load) for load in loads.values())
    excess = sum(max(0, load - band.high) for load in loads.values())
    search.extend(0, 0, (lack, excess))
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
        self.replicas, self.loads, self.room, self.most = replicas, loads, room, most
        self.limits = band.low, band.high
        self.moves: dict[int, BrokerId] = {}
        self.best: dict[int, BrokerId] | None = None
        self.steps = _STEPS

    def extend(self, first: int, moved: int, outside: _Outside) -> None:
        """Try to add moves of the replicas from index `first` to the current branch, which has already moved `moved`
        bytes.
        """
        if not any(outside):
            self.best, self.most = dict(self.moves), moved
            return
        for n in range(first, len(self.replicas)):
            each = self.replicas[n]
            left = self._loaded(outside, each.place, -each.size)
            for place, room in self.room.items():
                # A later replica is smaller, so a move that is too large does not end the loop.
                if moved + max(each.size, *outside) >= self.most or not self.steps:
                    break
                if place == each.place or (room is not None and each.size > room):
                    continue
                self.steps -= 1
                after = self._loaded(left, place, each.size)
                if moved + each.size + max(after) < self.most:
                    self._move(each, place)
                    self.extend(n + 1, moved + each.size, after)
                    self._undo(each, place, room)

    def _move(self, each: Movable, place: BrokerId) -> None:
        room = self.room[place]
        self.loads[each.place] -= each.size
        self.loads[place] += each.size
        self.room[place] = None if room is None else room - each.size
        self.moves[each.number] = place

    def _undo(self, each: Movable, place: BrokerId, room: int | None) -> None:
        self.loads[each.place] += each.size
        self.loads[place] -= each.size
        self.room[place] = room
        del self.moves[each.number]

    def _loaded(self, outside: _Outside, place: BrokerId, change: int) -> _Outside:
        """Return the bytes outside the band after this change of the load of one place."""
        before, (lack, excess), (low, high) = self.loads[place], outside, self.limits
        after = before + change
        if before < low:
            lack -= low - before
        elif before > high:
            excess -= before - high
        if after < low:
            lack += low - after
        elif after > high:
            excess += after - high
        return lack, excess
