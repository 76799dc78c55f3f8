"""Clusters for tests of the planner: small handwritten ones, and random ones by Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from kquota.placement.cluster import Broker, ClusterLayout, Disk
from kquota.placement.goal import Goal
from kquota.placement.planned import Planned
from kquota.reassign.moves import PartitionReplicas
from kquota.terms import BrokerId, TopicPartition

TOPIC = "t"


def small(
    replicas: Sequence[Sequence[int]],
    *,
    sizes: Sequence[int] = (),
    racks: Mapping[int, str] | None = None,
    brokers: Sequence[int] = (1, 2, 3),
    dead: Sequence[int] = (),
    disks: Mapping[int, tuple[int, int]] | None = None,
) -> ClusterLayout:
    """Return a cluster with partitions 0, 1, … of the topic `t`, each led by its first live replica. The default size
    is 100 bytes.
    """
    live = [broker for broker in brokers if broker not in dead]
    found = {}
    for number, ids in enumerate(replicas):
        sync = tuple(BrokerId(broker) for broker in ids if broker in live)
        found[TopicPartition(TOPIC, number)] = PartitionReplicas(
            replicas=tuple(map(BrokerId, ids)), leader=sync[0] if sync else None, isr=sync
        )
    return ClusterLayout(
        brokers={
            BrokerId(broker): Broker(
                rack=(racks or {}).get(broker) if broker in live else None,
                alive=broker in live,
                disk=None if not disks or broker not in disks else Disk(total=disks[broker][0], used=disks[broker][1]),
            )
            for broker in {*brokers, *dead, *(broker for ids in replicas for broker in ids)}
        },
        partitions=found,
        sizes={name: sizes[number] if number < len(sizes) else 100 for number, name in enumerate(found)},
    )


def goal(cluster: ClusterLayout, **wanted: object) -> Goal:
    """Return a goal for all topics and live brokers, with the additional options `wanted`."""
    topics = frozenset(name.topic for name in cluster.partitions)
    every = Goal(brokers=frozenset(cluster.alive), topics=topics, drained_topics=topics)
    return replace(every, **wanted)  # type: ignore[arg-type]


def ids(*brokers: int) -> frozenset[BrokerId]:
    return frozenset(map(BrokerId, brokers))


def after(cluster: ClusterLayout, planned: Planned) -> ClusterLayout:
    """Return the cluster at the end of the plan. Removed replicas no longer exist, and leaders are as planned."""
    partitions = dict(cluster.partitions)
    for change in planned.changes:
        isr = tuple(b for b in change.after if b in cluster.partitions[change.partition].isr or b not in change.before)
        partitions[change.partition] = PartitionReplicas(replicas=change.after, leader=change.leader_after, isr=isr)
    brokers = {
        broker: replace(found, disk=None if found.disk is None else replace(found.disk, used=found.disk.used + grown))
        for broker, found in cluster.brokers.items()
        for grown in [planned.brokers[broker].after.bytes - planned.brokers[broker].before.bytes]
    }
    return replace(cluster, partitions=partitions, brokers=brokers)


@st.composite
def clusters(draw: st.DrawFn, *, disks: bool = False) -> ClusterLayout:
    """Up to 8 brokers, some dead, with or without racks; up to 30 partitions of 3 topics, some moving or leaderless."""
    brokers = draw(st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True))
    dead = set(draw(st.lists(st.sampled_from(brokers), max_size=2, unique=True))) if len(brokers) > 2 else set()
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=len(brokers), max_size=len(brokers)))
    names = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 9)), max_size=30, unique=True))
    partitions, sizes = {}, {}
    for topic, number in names:
        name = TopicPartition(topic, number)
        replicas = draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=4, unique=True))
        live = [broker for broker in replicas if broker not in dead]
        isr = draw(st.lists(st.sampled_from(live), min_size=1, unique=True)) if live else []
        moving = draw(st.integers(0, 9)) == 0 and len(replicas) > 1
        partitions[name] = PartitionReplicas(
            replicas=tuple(map(BrokerId, replicas)),
            leader=BrokerId(isr[0]) if isr else None,
            isr=tuple(map(BrokerId, isr)),
            adding=(BrokerId(replicas[-1]),) if moving else (),
        )
        sizes[name] = draw(st.integers(0, 50) | st.integers(0, 1000))
    return ClusterLayout(
        brokers={
            BrokerId(broker): Broker(
                rack=None if broker in dead else rack,
                alive=broker not in dead,
                disk=(
                    Disk(
                        total=5_000, used=draw(st.integers(0, 5_000)), pending=draw(st.just(0) | st.integers(0, 1_000))
                    )
                    if disks
                    else None
                ),
            )
            for broker, rack in zip(brokers, racks, strict=True)
        },
        partitions=partitions,
        sizes=sizes,
    )


@st.composite
def goals(draw: st.DrawFn, cluster: ClusterLayout) -> Goal:
    """Any combination of goals that is valid in itself."""
    live = st.sampled_from(cluster.alive)
    some = st.lists(live, min_size=1, unique=True).map(frozenset)
    brokers = draw(st.just(frozenset(cluster.alive)) | some)
    drain = draw(st.just(frozenset[BrokerId]()) | st.frozensets(st.sampled_from(list(cluster.brokers)), max_size=2))
    if not brokers - drain:
        drain = frozenset()
    topics = draw(st.frozensets(st.sampled_from("xyz")))
    return Goal(
        brokers=brokers,
        topics=topics,
        drained_topics=draw(st.just(topics) | st.just(frozenset("xyz"))),
        drain=drain,
        add=draw(st.frozensets(st.sampled_from(sorted(brokers - drain)), max_size=2)),
        replication_factor=draw(st.none() | st.integers(1, 4)),
        repair_racks=draw(st.booleans()),
        balance=draw(st.booleans()),
        tolerance=draw(st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2)])),
    )
