"""What a plan moves, given where the replicas are now: sources, destinations, and the throttle they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, REPLICATION_RATES, BrokerId, TopicPartition

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplicas:
    """Where a partition is. During a move `replicas` holds old and new ones together, as the cluster says (KIP-455).

    `leader` is None when the partition has none.
    """

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()
    leader: BrokerId | None = None
    isr: Replicas = ()

    @property
    def moving(self) -> bool:
        """Whether the controller has a move of it under way."""
        return bool(self.adding or self.removing)

    @property
    def before(self) -> Replicas:
        """The replicas it had before the move that is under way, or has now when there is none."""
        return tuple(b for b in self.replicas if b not in self.adding) if self.adding else self.replicas

    @property
    def target(self) -> Replicas:
        """The replicas it will have after the move that is under way, or has now when there is none."""
        return tuple(b for b in self.replicas if b not in self.removing) if self.removing else self.replicas


class Move(NamedTuple):
    """One partition on its way: `sources` are all replicas before the move, `destinations` the new ones only.

    `submitted` when the cluster is already moving it to this very `target`.
    """

    partition: TopicPartition
    sources: Replicas
    destinations: Replicas
    target: Replicas
    submitted: bool


def moves(plan: Plan, partitions: Mapping[TopicPartition, PartitionReplicas]) -> tuple[Move, ...]:
    """The partitions of the plan that are not where it wants them, in its order; not those that are nowhere."""
    return tuple(
        _move(name, now, target)
        for name, target in plan.targets.items()
        if (now := partitions.get(name)) is not None and (now.replicas != target or now.moving)
    )


def _move(name: TopicPartition, now: PartitionReplicas, target: Replicas) -> Move:
    sources = now.before
    destinations = tuple([b for b in target if b not in sources])
    return Move(name, sources, destinations, target, now.moving and now.target == target)


def rollback(plan: Plan, partitions: Mapping[TopicPartition, PartitionReplicas]) -> Plan:
    """The plan that puts every partition of `plan` back where it is, or was before the move under way."""
    return Plan(targets={name: partitions[name].before for name in plan.targets})


def list_entries(moving: Iterable[Move]) -> dict[Setting, tuple[str, ...]]:
    """The throttled-replica list entries that the moves need, `partition:broker`, sorted as strings (KIP-73).

    Leader list: every replica before the move, because any of them may become the leader. Follower list: the new
    ones. A partition that gains no replica copies nothing and gets none: its in-sync followers would only use the
    throttle up. `moving` are moves of one plan, so each entry arises once.
    """
    leaders: defaultdict[str, list[str]] = defaultdict(list)
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for move in moving:
        if move.destinations:
            topic, number = move.partition
            # Topics repeat each other's entries: of 100,000 partitions they are 25 MB where each stands for itself.
            leaders[topic] += [intern(f"{number}:{b}") for b in move.sources]
            followers[topic] += [intern(f"{number}:{b}") for b in move.destinations]
    return {
        Setting.of_topic(topic, key): tuple(sorted(wanted[topic]))
        for topic in sorted(followers)
        for key, wanted in ((FOLLOWER_REPLICAS, followers), (LEADER_REPLICAS, leaders))
    }


def throttled_brokers(moving: Iterable[Move]) -> tuple[BrokerId, ...]:
    """Every broker that sends or receives a copy, sorted."""
    return tuple(sorted({b for move in moving if move.destinations for b in (*move.sources, *move.destinations)}))


def rates(brokers: Collection[BrokerId], rate: ByteRate) -> dict[Setting, tuple[str, ...]]:
    """The rate, in bytes per second, on both sides of every broker named (KIP-73)."""
    return {Setting.of_broker(b, key): (str(rate),) for b in sorted(brokers) for key in REPLICATION_RATES}
