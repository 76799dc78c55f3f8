"""The working copy of an assignment. It adds and removes replicas and updates each broker's sums.

It also has the order of replicas, which decides the preferred leader. The planner keeps the order if possible.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from kquota.placement.cluster import ClusterLayout, Disk
from kquota.placement.goal import Goal
from kquota.terms import BrokerId, TopicPartition


class MoveReason(enum.StrEnum):
    """The goal for which a replica moves."""

    DRAIN = "drain"
    REPLICATION_FACTOR = "replication-factor"
    RACKS = "racks"
    ADD = "add"
    BALANCE = "balance"


class Ranking:
    """Brokers from the emptiest to the fullest. Brokers with equal loads are sorted by id."""

    def __init__(self, loads: Mapping[BrokerId, int]) -> None:
        self.ordered = sorted((load, broker) for broker, load in loads.items())

    def change(self, broker: BrokerId, before: int, after: int) -> None:
        """Update the order after a change of the broker's load."""
        del self.ordered[bisect_left(self.ordered, (before, broker))]
        insort(self.ordered, (after, broker))

    def __iter__(self) -> Iterator[BrokerId]:
        return (broker for _, broker in self.ordered)


class PlacementDraft:
    """The draft of an assignment. Partitions are numbered in the order of the cluster. An unknown size counts as 0."""

    def __init__(self, cluster: ClusterLayout, goal: Goal) -> None:
        self.names: list[TopicPartition] = list(cluster.partitions)
        self.now = list(cluster.partitions.values())
        self.sizes = [cluster.sizes.get(name, 0) for name in self.names]
        self.replicas = [list(now.replicas) for now in self.now]
        # For each partition, the source and the goal of each broker that gets a replica. The source is the broker that
        # loses its replica in return, or None for an additional replica. The keys are always exactly the brokers of
        # `replicas[p]` that do not hold the partition now.
        self.copies: dict[int, dict[BrokerId, tuple[BrokerId | None, MoveReason]]] = {}
        # For each partition, the brokers whose replicas are removed without a replacement.
        self.drops: dict[int, list[BrokerId]] = {}
        self.racks = cluster.racks()
        self.alive = frozenset(cluster.alive)
        self.bytes: dict[BrokerId, int] = dict.fromkeys(cluster.brokers, 0)
        self.loads: dict[BrokerId, int] = dict.fromkeys(cluster.brokers, 0)
        # The bytes that each broker must receive.
        self.incoming: dict[BrokerId, int] = dict.fromkeys(cluster.brokers, 0)
        disks = {broker: _new_disk(cluster, broker) for broker in cluster.brokers}
        # `pending` has the bytes that running moves still copy to each broker. `room` has the bytes that the broker can
        # receive besides these, or None if its disk is unknown.
        self.pending = {broker: 0 if disk is None else disk.pending for broker, disk in disks.items()}
        self.room = {broker: _room(disk, goal.disk_limit) for broker, disk in disks.items()}
        # Each replica counts as at least a tenth of an average one, because otherwise all empty replicas would go to
        # the emptiest broker.
        held = sum(map(len, self.replicas))
        every = sum(size * len(replicas) for size, replicas in zip(self.sizes, self.replicas, strict=True))
        self.least_weight = max(1, every // (10 * held)) if held else 1
        for size, replicas in zip(self.sizes, self.replicas, strict=True):
            weight = max(size, self.least_weight)
            for broker in replicas:
                self.bytes[broker] += size
                self.loads[broker] += weight
        self.destinations = frozenset(goal.destinations)
        self.rankings = {
            rack: Ranking({b: self.loads[b] for b in self.destinations if self.racks.get(b) == rack})
            for rack in sorted({self.racks.get(b) for b in self.destinations}, key=str)
        }

    def spread(self, replicas: list[BrokerId]) -> int:
        """Return the number of racks of these replicas, without those on dead brokers. It is 0 if all live brokers are
        in one rack.
        """
        return len({self.racks[broker] for broker in replicas if broker in self.racks})

    def fits(self, p: int, broker: BrokerId) -> bool:
        """Return True if the broker has room for a replica of `p` besides its current replicas, the copies of running
        moves and the other copies of this draft.

        The result is also True if the broker holds the partition now, if its disk is unknown, or if the size is 0.
        """
        room = self.room[broker]
        if room is None or broker in self.now[p].replicas or not self.sizes[p]:
            return True
        return self.incoming[broker] + self.sizes[p] <= room

    def emptiest(self, p: int, barred: Collection[str | None] = ()) -> BrokerId | None:
        """Return the least loaded destination that can get a replica of `p` and whose rack is not in `barred`.

        Among brokers with equal loads, it is the one with the lowest id. The result is None if there is no such
        destination.
        """
        replicas = self.replicas[p]
        best: tuple[int, BrokerId] | None = None
        for rack, ranking in self.rankings.items():
            if rack in barred:
                continue
            for entry in ranking.ordered:
                if best is not None and entry > best:
                    break
                if entry[1] not in replicas and self.fits(p, entry[1]):
                    best = entry
                    break
        return None if best is None else best[1]

    def leads(self, p: int, broker: BrokerId) -> bool:
        """Return True if the broker is the leader or the preferred leader of partition `p`."""
        return broker == self.now[p].leader or broker == self.replicas[p][0]

    def add(self, p: int, broker: BrokerId, why: MoveReason) -> None:
        """Add a replica of partition `p` at the last position, for the goal `why`."""
        self.replicas[p].append(broker)
        self._weigh(p, broker, 1)
        self._note(p, broker, None, why)

    def drop(self, p: int, broker: BrokerId) -> None:
        """Remove a replica of partition `p`, without a replacement."""
        self.replicas[p].remove(broker)
        self._weigh(p, broker, -1)
        self.drops.setdefault(p, []).append(broker)

    def move(self, p: int, source: BrokerId, destination: BrokerId, why: MoveReason) -> None:
        """Move a replica of partition `p` to another broker, at the same position. A replica that is itself new keeps
        its recorded goal. Otherwise, the goal is `why`.
        """
        replicas = self.replicas[p]
        replicas[replicas.index(source)] = destination
        self._weigh(p, source, -1)
        self._weigh(p, destination, 1)
        copies = self.copies.get(p, {})
        if source in copies:  # the new replica goes to `destination` instead, because `source` does not have it yet
            self._note(p, destination, *copies.pop(source))
        else:
            self._note(p, destination, source, why)

    def _note(self, p: int, destination: BrokerId, source: BrokerId | None, why: MoveReason) -> None:
        copies = self.copies.setdefault(p, {})
        if destination == source:
            pass
        elif destination in self.drops.get(p, ()):
            self.drops[p].remove(destination)
            if source is not None:
                self.drops[p].append(source)
        elif (freed := next((to for to, (of, _) in copies.items() if of == destination), None)) is not None:
            # The replica on `destination` was to move to `freed`. It now stays, and the new replica on `freed` replaces
            # the one on `source`, if any.
            copies[freed] = (source, copies[freed][1])
        else:
            copies[destination] = (source, why)
        if not copies:
            del self.copies[p]

    def _weigh(self, p: int, broker: BrokerId, sign: int) -> None:
        size = self.sizes[p]
        self.bytes[broker] += sign * size
        if broker not in self.now[p].replicas:
            self.incoming[broker] += sign * size
        before = self.loads[broker]
        self.loads[broker] = after = before + sign * max(size, self.least_weight)
        if broker in self.destinations:
            self.rankings[self.racks.get(broker)].change(broker, before, after)


def ordered(draft: PlacementDraft) -> dict[int, tuple[BrokerId, ...]]:
    """Return the replicas of every changed partition, the preferred leader first, sorted by partition.

    The preferred leader does not change as long as it keeps its replica, and a new replica takes the position of the
    old one. If the preferred leader loses its replica, the current leader comes first, so that no election is
    necessary. If the current leader also loses its replica, the broker that leads the fewest partitions comes first.
    Among brokers that lead equally many, one that already has the data comes first. The planner does not choose an
    out-of-sync replica here if there is any other.
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


def _new_disk(cluster: ClusterLayout, broker: BrokerId) -> Disk | None:
    found = cluster.brokers[broker]
    return found.disk if found.cordon is None else found.open_disk


def _room(disk: Disk | None, limit: Fraction) -> int | None:
    """Return the bytes that the disk can still receive, or None if the disk is unknown. The result is negative if the
    disk, with its pending bytes, is fuller than `limit`.
    """
    return None if disk is None else int(disk.total * limit) - disk.used - disk.pending
