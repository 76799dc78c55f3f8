"""The moves from the current replicas to a plan: their sources, destinations, throttle entries and work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from kquota.measure import total
from kquota.pace.work import Link, Work, work
from kquota.reassign.plan import Plan
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, BrokerId, ReplicaId, TopicPartition

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplicas:
    """The replicas of a partition. During a move, `replicas` has the old and the new replicas (KIP-455).

    `leader` is None if the partition has no leader or the leader is unknown. An unknown `isr` is empty.
    """

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()
    leader: BrokerId | None = None
    isr: Replicas = ()

    @property
    def moving(self) -> bool:
        """True if a running move adds or removes replicas."""
        return bool(self.adding or self.removing)

    @property
    def before(self) -> Replicas:
        """The replicas before the running move (possibly in another order), or the current replicas without a move."""
        return tuple([b for b in self.replicas if b not in self.adding]) if self.adding else self.replicas

    @property
    def target(self) -> Replicas:
        """The replicas after the running move, or the current replicas without a move."""
        return tuple([b for b in self.replicas if b not in self.removing]) if self.removing else self.replicas


class Move(NamedTuple):
    """The move of one partition. `sources` are all replicas before the move, and `destinations` are the new replicas.

    `submitted` is true if the cluster is already moving the partition to this `target`.
    """

    partition: TopicPartition
    sources: Replicas
    destinations: Replicas
    target: Replicas
    submitted: bool


def moves(plan: Plan, partitions: Mapping[TopicPartition, PartitionReplicas]) -> tuple[Move, ...]:
    """Return a move for each existing partition that differs from the plan or is moving, in the order of the plan."""
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
    """Return the rollback plan: for each partition of `plan`, its current replicas or the replicas before its running
    move. Every partition of `plan` must be in `partitions`.
    """
    return Plan(targets={name: partitions[name].before for name in plan.targets})


def list_entries(moving: Iterable[Move]) -> dict[Setting, tuple[str, ...]]:
    """Return the throttled replica list entries of the moves, `partition:broker`, sorted as strings (KIP-73).

    The leader list has every replica before the move, because each of them may become the leader. The follower list has
    the new replicas. A partition without new replicas copies nothing. It gets no entries, because its in-sync followers
    would only use up the rate. `moving` are moves of one plan, so no entry occurs twice.
    """
    leaders: defaultdict[str, list[str]] = defaultdict(list)
    followers: defaultdict[str, list[str]] = defaultdict(list)

    # Cache the entries, because many topics have equal ones: 100,000 partitions would otherwise need 25 MB.
    @cache
    def entry(partition: int, broker: BrokerId) -> str:
        return f"{partition}:{broker}"

    for move in moving:
        if move.destinations:
            topic, number = move.partition
            leaders[topic] += [entry(number, broker) for broker in move.sources]
            followers[topic] += [entry(number, broker) for broker in move.destinations]
    return {
        Setting.of_topic(topic, key): tuple(sorted(wanted[topic]))
        for topic in sorted(followers)
        for key, wanted in ((FOLLOWER_REPLICAS, followers), (LEADER_REPLICAS, leaders))
    }


def throttled_brokers(moving: Iterable[Move]) -> tuple[BrokerId, ...]:
    """Return every broker that may send or receive a copy, sorted."""
    return tuple(sorted({b for move in moving if move.destinations for b in (*move.sources, *move.destinations)}))


def carried(
    moving: Iterable[Move],
    partitions: Mapping[TopicPartition, PartitionReplicas],
    sizes: Mapping[TopicPartition, int],
    writes: Mapping[TopicPartition, float | None],
    left: Mapping[ReplicaId, int | None] = MappingProxyType({}),
) -> Work:
    """Return the work of `moving`. The Spark job (`spark.estimate`) calculates the same sums, and a test compares the
    results.

    `sizes` has the bytes of each partition's leader, and `writes` the bytes per second that producers write to it. A
    partition that is missing from `sizes` counts as 0 bytes. A partition without a known value in `writes` has an
    unknown rate. A partition without a leader is left out, because it cannot be copied. `left` has the bytes that
    running copies still need. A copy without a known value in `left` counts with the size of its leader.
    """
    keep_up: defaultdict[int, list[float | None]] = defaultdict(list)
    links: defaultdict[tuple[BrokerId, BrokerId], list[TopicPartition]] = defaultdict(list)
    for move in moving:
        now = partitions[move.partition]
        if not move.destinations or now.leader is None:
            continue
        written = writes.get(move.partition)
        followers = sum(broker in move.sources and broker != now.leader for broker in now.isr)
        keep_up[now.leader].append(0.0 if not followers else None if written is None else written * followers)
        for broker in move.destinations:
            if broker == now.leader:  # this new replica caught up and was elected
                continue
            links[now.leader, broker].append(move.partition)
    return work(
        (
            Link(
                leader=leader,
                destination=destination,
                copies=len(names),
                bytes=sum(
                    sizes.get(name, 0) if (missing := left.get((name, destination))) is None else missing
                    for name in names
                ),
                writes=total(writes.get(name) for name in names),
            )
            for (leader, destination), names in links.items()
        ),
        {leader: total(rates) for leader, rates in keep_up.items()},
    )
