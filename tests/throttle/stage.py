"""Short constructors of clusters, for the rules about throttles that are set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from kquota.measure import ByteRate
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.run import Purpose, Run, Taken
from kquota.settings.rates import StoredRate
from kquota.settings.resource import Setting
from kquota.terms import (
    DYNAMIC_BROKER,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    BrokerId,
    TopicPartition,
)
from kquota.throttle.cluster_throttles import BrokerOrDefault, ClusterThrottles

BEGUN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
LEADER, FOLLOWER = LEADER_REPLICAS, FOLLOWER_REPLICAS
BOTH_RATES = (LEADER_RATE, FOLLOWER_RATE)


def partition(*replicas: int, isr: Sequence[int] | None = None, adding: Sequence[int] = ()) -> PartitionReplicas:
    """Return a partition that its first replica leads. All replicas except those that are being added are in sync,
    unless `isr` is given.
    """
    there = [b for b in replicas if b not in adding] if isr is None else isr
    return PartitionReplicas(
        replicas=_ids(replicas), adding=_ids(adding), leader=BrokerId(replicas[0]) if there else None, isr=_ids(there)
    )


def _ids(numbers: Sequence[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def rate(value: str, source: str = DYNAMIC_BROKER, *, in_force: bool = True) -> StoredRate:
    return StoredRate(value=value, source=source, in_force=in_force)


def on(broker: int, value: str) -> dict[BrokerOrDefault, dict[str, StoredRate]]:
    """Return the same rate on both sides of one broker."""
    return {BrokerId(broker): {key: rate(value) for key in BOTH_RATES}}


def throttles(
    partitions: Mapping[str, Sequence[PartitionReplicas]],
    lists: Mapping[tuple[str, str], str] | None = None,
    limits: Mapping[BrokerOrDefault, Mapping[str, StoredRate]] | None = None,
    *,
    runs: Sequence[Run] = (),
    misplaced: Mapping[BrokerOrDefault, tuple[str, ...]] | None = None,
    alive: Sequence[int] = (1, 2, 3),
    release: tuple[int, ...] | None = (4, 1),
    unread_topics: Sequence[str] = (),
    hidden_topics: Sequence[str] = (),
    topic_ids: Mapping[str, str] | None = None,
) -> ClusterThrottles:
    """Return the throttles of brokers 1, 2 and 3. A partition that gains replicas is moving."""
    named = {TopicPartition(topic, n): now for topic, all_ in partitions.items() for n, now in enumerate(all_)}
    snapshot = Snapshot(
        racks={BrokerId(b): None for b in alive},
        partitions=named,
        running={name: now for name, now in named.items() if now.moving},
        topic_ids=topic_ids or {},
    )
    return ClusterThrottles(
        limits={**{BrokerId(b): {} for b in alive}, **(limits or {})},
        lists={Setting.of_topic(topic, key): text for (topic, key), text in (lists or {}).items()},
        snapshot=snapshot,
        misplaced=misplaced or {},
        runs=tuple(runs),
        release=release,
        unread_topics=tuple(unread_topics),
        hidden_topics=tuple(hidden_topics),
    )


def run(
    taken: Mapping[Setting, Sequence[str]],
    targets: Mapping[TopicPartition, Sequence[int]] | None = None,
    *,
    purpose: Purpose = Purpose.MOVE,
) -> Run:
    """Return an open run that set these values, with all moves submitted."""
    plan = Plan(targets={name: tuple(map(BrokerId, replicas)) for name, replicas in (targets or {}).items()})
    return Run(
        id="20260301T123000Z-0123456789ab",
        begun=BEGUN,
        plan=plan,
        rollback=plan,
        rate=ByteRate(1000),
        taken={s: Taken(setting=s, prior=None, ours=tuple(values)) for s, values in taken.items()},
        purpose=purpose,
        handed_over=frozenset(plan.targets),
    )
