"""`move plan` of 100,000 partitions on 200 brokers: only the planner, on a generated cluster."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench.measured import Measured, measured
from bench.race import say
from bench.section import Section
from kquota.placement.cluster import Broker, ClusterLayout, Disk
from kquota.placement.goal import Goal
from kquota.placement.planner import plan
from kquota.reassign.moves import PartitionReplicas
from kquota.terms import BrokerId, TopicPartition

PARTITIONS: Final = 100_000
BROKERS: Final = 200
RACKS: Final = 4
NEW: Final = frozenset(BrokerId(BROKERS + n) for n in range(8))
PROMISED: Final = 10.0
ROUNDS: Final = 3


def sections() -> list[Section]:
    """Measure the seconds from a cluster in memory to the text of the plan, for each goal."""
    cluster = _skewed(PARTITIONS)
    say(f"move plan, {PARTITIONS} partitions on {BROKERS} brokers: {ROUNDS} rounds of {len(_goals(cluster))} goals")
    found = [
        Measured(
            name=f"move plan, {PARTITIONS} partitions, {name}",
            ours=tuple(_seconds(cluster, goal) for _ in range(ROUNDS)),
            promised=PROMISED,
        )
        for name, goal in _goals(cluster).items()
    ]
    return [measured("planner", found)]


def drained(partitions: int) -> float:
    """Return the seconds that the planner takes to drain 8 of 200 brokers with this number of partitions."""
    cluster = _skewed(partitions)
    return _seconds(cluster, next(iter(_goals(cluster).values())))


def _skewed(count: int) -> ClusterLayout:
    """Return a cluster with three replicas of each partition on three of four racks, at random. A few partitions have
    most of the bytes, and 8 brokers are empty.

    The seed is fixed, so every run plans for the same cluster.
    """
    dice = random.Random(1)
    racks = [[BrokerId(n) for n in range(rack, BROKERS, RACKS)] for rack in range(RACKS)]
    partitions, sizes = {}, {}
    for number in range(count):
        replicas = tuple(dice.choice(racks[rack]) for rack in dice.sample(range(RACKS), 3))
        name = TopicPartition(f"topic-{number // 100:04d}", number % 100)
        partitions[name] = PartitionReplicas(replicas=replicas, leader=replicas[0], isr=replicas)
        sizes[name] = int(dice.paretovariate(1.2) * 10**8) % 10**12
    disk = Disk(total=20 * 10**12, used=10**12)
    brokers = {BrokerId(n): Broker(rack=f"rack-{n % RACKS}", disk=disk) for n in range(BROKERS)}
    brokers |= {broker: Broker(rack=f"rack-{broker % RACKS}", disk=replace(disk, used=0)) for broker in NEW}
    return ClusterLayout(brokers=brokers, partitions=partitions, sizes=sizes)


def _goals(cluster: ClusterLayout) -> Mapping[str, Goal]:
    topics = frozenset(name.topic for name in cluster.partitions)
    old = Goal(brokers=frozenset(cluster.alive) - NEW, topics=topics, drained_topics=topics)
    drain = frozenset(BrokerId(n) for n in range(8))
    return {
        "drain of 8 brokers": replace(old, drain=drain),
        "8 brokers added": replace(old, brokers=old.brokers | NEW, add=NEW),
        "balance": replace(old, balance=True),
        "replication factor 3 -> 4": replace(old, replication_factor=4),
        "replication factor 3 -> 2": replace(old, replication_factor=2),
        "all goals": replace(
            old, brokers=old.brokers | NEW, add=NEW, drain=drain, balance=True, repair_racks=True, replication_factor=3
        ),
    }


def _seconds(cluster: ClusterLayout, goal: Goal) -> float:
    started = time.perf_counter()
    plan(cluster, goal).plan.text()
    return time.perf_counter() - started
