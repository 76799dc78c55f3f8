"""The order of replicas, which decides the preferred leader. The planner keeps the order if possible."""

from __future__ import annotations

from collections import Counter

from kquota.placement.draft import PlacementDraft
from kquota.terms import BrokerId


def ordered(draft: PlacementDraft) -> dict[int, tuple[BrokerId, ...]]:
    """Return the replicas of every changed partition, the preferred leader first, sorted by partition.

    The preferred leader does not change as long as it keeps its replica, and a new replica takes the position of the
    old one. If the preferred leader loses its replica, the current leader comes first, so that no election is
    necessary. If both lose their replicas, the replica on the broker that leads the fewest partitions comes first.
    Among equal brokers, the planner prefers one that already has the data. A replica that stays and is out of sync
    comes first only if there is no other.
    """
    leading = Counter(now.leader for now in draft.now if now.leader is not None)
    found: dict[int, tuple[BrokerId, ...]] = {}
    for p in sorted(draft.copies.keys() | draft.drops.keys()):
        replicas, now = draft.replicas[p], draft.now[p]
        if tuple(replicas) == now.replicas:
            continue
        if now.replicas[0] in replicas:
            first = now.replicas[0]
        elif now.leader in replicas:
            first = now.leader
        else:
            able = [b for b in replicas if b in now.isr or b not in now.replicas] or replicas
            first = min(able, key=lambda b: (leading[b], b not in now.replicas, replicas.index(b)))
        found[p] = (first, *(broker for broker in replicas if broker != first))
        if now.leader is not None:
            leading[now.leader] -= 1
            leading[leader_after(draft, p, found[p])] += 1
    return found


def leader_after(draft: PlacementDraft, p: int, replicas: tuple[BrokerId, ...]) -> BrokerId:
    """Return the leader after a change to these replicas: the current leader, otherwise the first in-sync replica.

    New replicas count as in sync, because the change ends only when they are. Without an in-sync replica, the first
    replica counts.
    """
    now = draft.now[p]
    if now.leader is not None and now.leader in replicas:
        return now.leader
    return next((b for b in replicas if b in now.isr or b not in now.replicas), replicas[0])
