"""What the answers of several actions of `reassign-partitions` are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Part, spread
from kquota.terms import BrokerId, ReplicaId, TopicPartition

if TYPE_CHECKING:
    from kquota.reassign.log_dir_actions import Started
    from kquota.reassign.moves import Replicas
    from kquota.reassign.plan import Plan


def plan_document(plan: Plan | None) -> Any:
    """A plan as kafka-reassign-partitions takes it."""
    return None if plan is None else json.loads(plan.text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Part):
    """Where a partition is to be; None: where it was before."""

    partition: TopicPartition = spread()
    replicas: Replicas | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTold(Part):
    """A replica, and its log dir or what its broker answered."""

    partition: TopicPartition = spread()
    broker: BrokerId
    told: str


def replicas_told(told: Mapping[ReplicaId, object]) -> tuple[ReplicaTold, ...]:
    """Each replica with what is said of it."""
    return tuple(ReplicaTold(partition=name, broker=broker, told=str(text)) for (name, broker), text in told.items())


def log_dirs_code(done: Started) -> int:
    """1 for what a broker refused, 8 for what has yet to begin, else 0."""
    if done.refused:
        return FAILED
    return NOT_YET if done.waiting else DONE
