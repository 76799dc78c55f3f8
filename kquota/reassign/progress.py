"""The progress of a plan: the state of each of its partitions."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition


class Progress(enum.Enum):
    """The state of a partition or log dir of a plan: done as planned, in progress (moved by any client) or neither."""

    DONE = "done"
    IN_PROGRESS = "in progress"
    ELSEWHERE = "ended elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition of a plan, with its current and its planned replicas.

    A deleted partition has no current replicas, and has ended elsewhere.
    """

    partition: TopicPartition
    progress: Progress
    replicas: Replicas
    target: Replicas


def statuses(
    plan: Plan, partitions: Mapping[TopicPartition, PartitionReplicas], running: Collection[TopicPartition]
) -> tuple[PartitionStatus, ...]:
    """Return one status for each partition of the plan, in the order of the plan."""
    return tuple(
        _status(name, target, partitions.get(name), running=name in running) for name, target in plan.targets.items()
    )


def _status(name: TopicPartition, target: Replicas, now: PartitionReplicas | None, *, running: bool) -> PartitionStatus:
    replicas = now.replicas if now else ()
    if running or (now and now.moving):
        progress = Progress.IN_PROGRESS
    else:
        progress = Progress.DONE if replicas == target else Progress.ELSEWHERE
    return PartitionStatus(partition=name, progress=progress, replicas=replicas, target=target)


def led_by_others(
    plan: Plan, partitions: Mapping[TopicPartition, PartitionReplicas], alive: Collection[BrokerId]
) -> tuple[TopicPartition, ...]:
    """Return the partitions that have their planned replicas, but are not led by the first planned replica (the
    preferred leader).

    A partition is left out if its preferred leader is out of sync, or if the broker of its preferred leader is dead.
    """
    return tuple(
        name
        for name, target in plan.targets.items()
        if (now := partitions.get(name)) is not None
        and now.replicas == target
        and now.leader != target[0]
        and target[0] in now.isr
        and target[0] in alive
    )


def verdict(parts: Iterable[Progress]) -> Progress:
    """Return the state of partitions and log dirs together: in progress if any of them is, otherwise elsewhere if any
    is, otherwise done. If `parts` is empty, the state is done.
    """
    seen = set(parts)
    return next((part for part in (Progress.IN_PROGRESS, Progress.ELSEWHERE) if part in seen), Progress.DONE)
