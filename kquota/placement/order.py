"""The order of replicas: who is the preferred leader. It is kept wherever it can be."""

from __future__ import annotations

from collections import Counter

from kquota.placement.draft import PlacementDraft
from kquota.terms import BrokerId


def ordered(draft: PlacementDraft) -> dict[int, tuple[BrokerId, ...]]:
    """The replicas of every partition that changed, the preferred leader first; in the order of names.

    The first replica stays first while it keeps its replica, and a new replica stands where the old one stood. If the
    first goes, the leader becomes first, and nobody has to be elected. If the leader goes, too, one election cannot be
    avoided: the replica whose broker leads fewest partitions becomes first; of equals one that holds the data already.
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
    """Who leads once the replicas are these: the leader of today, else the first that is in sync (new ones are)."""
    now = draft.now[p]
    if now.leader is not None and now.leader in replicas:
        return now.leader
    return next((b for b in replicas if b in now.isr or b not in now.replicas), replicas[0])
