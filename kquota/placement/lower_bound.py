"""The fewest bytes that any plan for the goal must copy. What a plan copies above that is its own doing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kquota.placement.balance import BalanceBand
from kquota.placement.draft import PlacementDraft, Why
from kquota.placement.goal import Goal
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """The bytes that drain, replication factor and racks make new, and what of today's replicas each broker may keep.

    Which replicas go for a lower replication factor or for a rack is the planner's choice: `most` holds all of them,
    `fewest` none of these partitions.
    """

    bytes: int
    most: dict[BrokerId, int]
    fewest: dict[BrokerId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """The lower bound: the largest of its terms, in bytes. A term of a goal that was not asked for is 0.

    `forced`: each partition's size, times the replicas that it must get because of drain, replication factor or racks.
    `lack`: what brokers lack below the band. `excess`: what brokers hold above it, and besides all that is `forced`.
    """

    forced: int
    lack: int
    excess: int

    @property
    def bytes(self) -> int:
        """The bound itself."""
        return max(self.forced, self.lack, self.excess)


def forced(draft: PlacementDraft, goal: Goal, free: Iterable[int]) -> Forced:
    """What the goals that look at single partitions ask for. `draft` has reached them, and is not evened out yet."""
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
        for_racks = any(why is Why.RACKS for _, why in copies.values())
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


def least(goal: Goal, must: Forced, band: BalanceBand | None) -> Least:
    """The bound for all goals together."""
    lack = excess = 0
    if band is not None:
        fed = goal.destinations if goal.balance else tuple(goal.add)
        lack = sum(max(0, band.low - must.most.get(broker, 0)) for broker in fed)
        if goal.balance:
            excess = must.bytes + sum(max(0, must.fewest.get(broker, 0) - band.high) for broker in goal.destinations)
    return Least(forced=must.bytes, lack=lack, excess=excess)
