"""Moves replicas from full to empty brokers, to bring each broker into a band around the mean with few copied bytes.

The algorithm makes only moves that bring the brokers as a whole closer to the band, and undoes a move that no longer
helps. It therefore ends. A second run on its result changes nothing, unless the removal of old replicas has made room
on a disk. Moves that push no broker out of the band come first, then followers before leaders.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf
from typing import Final

from kquota.placement.draft import MoveReason, PlacementDraft, Ranking
from kquota.placement.goal import Goal
from kquota.terms import BrokerId

_PARTNERS: Final = 10
_GIVEN: Final = 50
_NEAR: Final = 4
"""These limits apply to the search for an exchange, because a full search takes too long. For each broker, the search
considers at most `_PARTNERS` other brokers. For each pair, it considers at most `_GIVEN` replicas of one broker, and
for each of these replicas at most `2 * _NEAR` replicas of the other broker.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceBand:
    """A band around a mean: the minimum and the maximum number of bytes that a broker or a log dir should hold."""

    low: int
    high: int
    mean: int

    @classmethod
    def around(cls, mean: Fraction, tolerance: Fraction) -> BalanceBand:
        """Return the band around `mean`. Its limits are `mean` x (1 - `tolerance`) and `mean` x (1 + `tolerance`),
        rounded outwards.
        """
        return cls(low=floor(mean * (1 - tolerance)), high=ceil(mean * (1 + tolerance)), mean=round(mean))

    def off(self, load: int) -> int:
        """Return the bytes by which `load` is outside the band, or 0 if it is inside."""
        return max(0, load - self.high, self.low - load)


def level(draft: PlacementDraft, goal: Goal, movable: Sequence[int], band: BalanceBand) -> None:
    """Move and exchange replicas in `draft` until every destination is in the band, or the search finds nothing that
    helps.

    `movable` has the numbers of the partitions that may move.
    """
    scales = _Scales(draft, goal, movable, band, MoveReason.BALANCE)
    while scales.relieve() or scales.feed(goal.destinations) or scales.swap() or scales.take_back():
        pass


def fill(
    draft: PlacementDraft,
    goal: Goal,
    movable: Sequence[int],
    band: BalanceBand,
    receivers: Collection[BrokerId],
    why: MoveReason,
) -> None:
    """Move replicas from the fullest brokers to the `receivers` below the band, until each receiver reaches the band or
    no move helps.

    Brokers that are not in `receivers` get no new replicas. `movable` has the numbers of the partitions that may move.
    `why` is the goal that is recorded for the moves.
    """
    scales = _Scales(draft, goal, movable, band, why)
    while scales.feed(receivers) or scales.take_back():
        pass


class _Scales:
    """The brokers to balance, and the movable followers and leaders of each broker, sorted by size. Empty replicas are
    left out.

    Brokers with equal loads are sorted by id, and replicas of equal size by partition number. Both orders therefore
    depend only on the current assignment, not on the earlier moves that led to it.
    """

    def __init__(
        self, draft: PlacementDraft, goal: Goal, movable: Sequence[int], band: BalanceBand, why: MoveReason
    ) -> None:
        self.draft, self.band, self.why = draft, band, why
        self.brokers = goal.destinations
        self.ranking = Ranking({broker: draft.bytes[broker] for broker in self.brokers})
        self.stock: dict[bool, dict[BrokerId, list[tuple[int, int]]]] = {
            leading: {broker: [] for broker in self.brokers} for leading in (False, True)
        }
        followers, leaders = self.stock[False], self.stock[True]
        for p in movable:
            if size := draft.sizes[p]:
                for broker in draft.replicas[p]:
                    if broker in followers:
                        (leaders if draft.leads(p, broker) else followers)[broker].append((size, p))
        for stock in self.stock.values():
            for held in stock.values():
                held.sort()

    def relieve(self) -> bool:
        above = [broker for load, broker in reversed(self.ranking.ordered) if load > self.band.high]
        moved = False
        for broker in above:
            while self.draft.bytes[broker] > self.band.high and self._send(broker):
                moved = True
        return moved

    def feed(self, receivers: Collection[BrokerId]) -> bool:
        below = [broker for load, broker in self.ranking.ordered if load < self.band.low and broker in receivers]
        moved = False
        for broker in below:
            spent: set[tuple[bool, bool, BrokerId]] = set()
            while self.draft.bytes[broker] < self.band.low and self._fetch(broker, spent):
                moved = True
        return moved

    def swap(self) -> bool:
        """Exchange a replica for a smaller one of another broker. Return False if no exchange helps."""
        ordered = [broker for _, broker in self.ranking.ordered]
        load, band = self.draft.bytes, self.band
        above = [broker for broker in reversed(ordered) if load[broker] > band.high]
        below = [broker for broker in ordered if load[broker] < band.low]
        pairs = [(source, destination) for source in above for destination in ordered[:_PARTNERS]]
        pairs += [(source, destination) for destination in below for source in ordered[: -_PARTNERS - 1 : -1]]
        held = {
            broker: sorted(self.stock[False][broker] + self.stock[True][broker])
            for broker in {broker for pair in pairs for broker in pair}
        }
        for leading in (False, True):
            for source, destination in pairs:
                for p, q in self._exchanges(held[source], held[destination], source, destination):
                    leads = self.draft.leads(p, source) or self.draft.leads(q, destination)
                    if (
                        leads == leading
                        and self._may_move(p, source, destination)
                        and self._may_move(q, destination, source)
                    ):
                        self._move(p, source, destination)
                        self._move(q, destination, source)
                        return True
        return False

    def take_back(self) -> bool:
        """Undo moves that later moves made unnecessary, the largest first. Return True if a move was undone."""
        draft, band = self.draft, self.band
        made = [
            (p, destination, source)
            for p, copies in draft.copies.items()
            for destination, (source, why) in copies.items()
            if why is self.why and source is not None and source in self.stock[False] and draft.sizes[p]
        ]
        undone = False
        for p, destination, source in sorted(made, key=lambda move: (-draft.sizes[move[0]], move)):
            size, from_load, to_load = draft.sizes[p], draft.bytes[destination], draft.bytes[source]
            needless = band.off(from_load - size) + band.off(to_load + size) <= band.off(from_load) + band.off(to_load)
            still = draft.copies.get(p, {}).get(destination, (None,))[0] == source
            if needless and still and self._may_move(p, destination, source):
                self._move(p, destination, source)
                undone = True
        return undone

    def _exchanges(
        self,
        gives: Sequence[tuple[int, int]],
        takes: Sequence[tuple[int, int]],
        source: BrokerId,
        destination: BrokerId,
    ) -> Iterator[tuple[int, int]]:
        """Yield pairs of partitions whose exchange reduces the total distance of the two brokers from the band, the
        smallest partition of `gives` first.
        """
        from_load, to_load, off = self.draft.bytes[source], self.draft.bytes[destination], self.band.off
        wanted = min(max(off(from_load), off(to_load)), (from_load - to_load) // 2)
        if wanted <= 0:
            return
        first = bisect_left(gives, (wanted, -1))
        for size, p in gives[first : first + _GIVEN]:
            near = bisect_left(takes, (size - wanted, -1))
            for other, q in takes[max(0, near - _NEAR) : near + _NEAR]:
                shift = size - other
                if shift > 0 and off(from_load - shift) + off(to_load + shift) < off(from_load) + off(to_load):
                    yield p, q

    def _send(self, source: BrokerId) -> bool:
        excess = self.draft.bytes[source] - self.band.high
        roomiest = self.draft.bytes[next(iter(self.ranking))]
        size = min(excess, max(0, self.band.high - roomiest))
        for clean in (True, False):
            for leading in (False, True):
                for p in _nearest(self.stock[leading][source], size):
                    destination = next(self._receivers(p, source, clean), None)
                    if destination is not None:
                        self._move(p, source, destination)
                        return True
        return False

    def _fetch(self, destination: BrokerId, spent: set[tuple[bool, bool, BrokerId]]) -> bool:
        """Move one replica to a broker, and return True if one was moved. A source without a suitable replica is added
        to `spent`, because a fuller destination accepts even fewer replicas.
        """
        low, lack = self.band.low, self.band.low - self.draft.bytes[destination]
        for clean in (True, False):
            for leading in (False, True):
                for load, source in reversed(self.ranking.ordered):
                    if load <= low or source == destination:
                        break
                    if (clean, leading, source) in spent:
                        continue
                    for p in _nearest(self.stock[leading][source], min(lack, load - low)):
                        if self._gains(p, source, destination, clean) and self._may_move(p, source, destination):
                            self._move(p, source, destination)
                            return True
                    spent.add((clean, leading, source))
        return False

    def _receivers(self, p: int, source: BrokerId, clean: bool) -> Iterator[BrokerId]:
        for broker in self.ranking:
            if not self._gains(p, source, broker, clean):
                # All later brokers are at least as full, so `_gains` is also False for them.
                return
            if self._may_move(p, source, broker):
                yield broker

    def _gains(self, p: int, source: BrokerId, destination: BrokerId, clean: bool) -> bool:
        """Return True if the move of `p` brings the two brokers closer to the band in total. Call it only if the source
        is above the band or the destination is below it. With `clean`, the source must also not fall below the band,
        and the destination must not rise above it.
        """
        size, band = self.draft.sizes[p], self.band
        from_load, to_load = self.draft.bytes[source], self.draft.bytes[destination]
        if clean:
            return from_load - size >= band.low and to_load + size <= band.high
        return band.off(from_load - size) + band.off(to_load + size) < band.off(from_load) + band.off(to_load)

    def _may_move(self, p: int, source: BrokerId, destination: BrokerId) -> bool:
        draft, replicas = self.draft, self.draft.replicas[p]
        if destination in replicas or not draft.fits(p, destination):
            return False
        racks = draft.racks
        if not racks or racks[source] == racks[destination]:
            return True
        others = [racks.get(broker) for broker in replicas if broker != source]
        return racks[destination] not in others or racks[source] in others

    def _move(self, p: int, source: BrokerId, destination: BrokerId) -> None:
        draft = self.draft
        row = (draft.sizes[p], p)
        leading = draft.leads(p, source)
        held = self.stock[leading][source]
        del held[bisect_left(held, row)]
        loads = {broker: draft.bytes[broker] for broker in (source, destination)}
        draft.move(p, source, destination, self.why)
        for broker, load in loads.items():
            self.ranking.change(broker, load, draft.bytes[broker])
        insort(self.stock[draft.leads(p, destination)][destination], row)


def _nearest(held: Sequence[tuple[int, int]], size: int) -> Iterator[int]:
    """Yield the partitions of at most `size` bytes, the largest first. Then yield the larger partitions, the smallest
    first.
    """
    cut = bisect_right(held, (size, inf))
    yield from (held[n][1] for n in range(cut - 1, -1, -1))
    yield from (held[n][1] for n in range(cut, len(held)))
