"""A lower bound for the number of bytes that any plan for the goal must copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kquota.placement.balance import BalanceBand
from kquota.placement.draft import MoveReason, PlacementDraft
from kquota.placement.goal import Goal
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """The copies that drain, replication factor and racks require, and the bytes that each broker can keep.

    The planner chooses the replicas to remove for a lower replication factor or for racks. The bytes that a broker
    keeps are therefore a range.
    """

    bytes: int
    """The total bytes of the new replicas."""
    most: dict[BrokerId, int]
    """The most bytes that each broker can keep: including all replicas that the planner could remove."""
    fewest: dict[BrokerId, int]
    """The fewest bytes that each broker can keep: without any replica that the planner could remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """The lower bound: the largest of its terms, in bytes. The term of a goal that is not set is 0."""

    forced: int
    """The total bytes of the new replicas that drain, replication factor and racks require."""
    lack: int
    """The total bytes that brokers, or log dirs, lack to reach the band."""
    excess: int
    """The total bytes that brokers, or log dirs, hold above the band, plus `forced`."""

    @property
    def bytes(self) -> int:
        """The lower bound in bytes."""
        return max(self.forced, self.lack, self.excess)

    def ratio(self, copied: int) -> float | None:
        """Return the `copied` bytes of a plan, divided by the lower bound. None if the lower bound is 0."""
        return copied / self.bytes if self.bytes else None


def forced(draft: PlacementDraft, goal: Goal, free: Iterable[int]) -> Forced:
    """Return the bytes that drain, replication factor and racks require.

    The planner must already have applied these goals to `draft`, but no other goals. `free` has the numbers of the
    partitions that the planner may change.
    """
    total = 0
    most, fewest = dict(draft.bytes), dict(draft.bytes)
    reachable = {draft.racks[broker] for broker in goal.destinations if broker in draft.racks}
    for p in free:
        if p not in draft.copies and p not in draft.drops:
            continue
        replicas, size = draft.replicas[p], draft.sizes[p]
        leaving = goal.drain if draft.names[p].topic in goal.drained_topics else frozenset()
        staying = [broker for broker in draft.now[p].replicas if broker not in leaving]
        copies = draft.copies.get(p, {})
        new = max(0, len(replicas) - len(staying))
        for_racks = any(why is MoveReason.RACKS for _, why in copies.values())
        if for_racks:
            racks = {draft.racks[broker] for broker in staying if broker in draft.racks}
            new = min(len(copies), max(new, min(len(replicas), len(racks | reachable)) - len(racks)))
        total += size * new
        for broker in replicas:
            most[broker] -= size
            fewest[broker] -= size
        for broker in staying:
            most[broker] += size
            if not for_racks and p not in draft.drops:
                fewest[broker] += size
    return Forced(bytes=total, most=most, fewest=fewest)


def least(goal: Goal, must: Forced, band: BalanceBand | None) -> LowerBound:
    """Return the lower bound for all goals together. `band` is None if the goals are neither to add brokers nor to
    balance.
    """
    lack = excess = 0
    if band is not None:
        fed = goal.destinations if goal.balance else tuple(goal.add)
        lack = sum(max(0, band.low - must.most.get(broker, 0)) for broker in fed)
        if goal.balance:
            excess = must.bytes + sum(max(0, must.fewest.get(broker, 0) - band.high) for broker in goal.destinations)
    return LowerBound(forced=must.bytes, lack=lack, excess=excess)
