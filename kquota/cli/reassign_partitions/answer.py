"""Parts that the answers of several actions of `reassign-partitions` share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import Part, key, spread
from kquota.terms import BrokerId, ReplicaId, TopicPartition

if TYPE_CHECKING:
    from kquota.reassign.log_dir_actions import Started
    from kquota.reassign.moves import Replicas
    from kquota.reassign.plan import Plan


def plan_document(plan: Plan | None) -> Any:
    """Return a plan in the JSON of kafka-reassign-partitions. None stays None."""
    return None if plan is None else json.loads(plan.text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Part):
    """The replicas to which a partition moves or returns. None means that only the cluster knows the previous replicas
    of the partition.
    """

    partition: TopicPartition = spread()
    replicas: Replicas | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaText(Part):
    """A replica, with its log dir, or with the reason why its move has not started (`--cancel`: not stopped)."""

    partition: TopicPartition = spread()
    broker: BrokerId
    text: str = key("told")


def replica_texts(texts: Mapping[ReplicaId, object]) -> tuple[ReplicaText, ...]:
    """Return each replica with its text."""
    return tuple(ReplicaText(partition=name, broker=broker, text=str(text)) for (name, broker), text in texts.items())


def log_dirs_code(done: Started) -> int:
    """Return 1 if a broker refused a request, 8 if a broker has not acted on a request yet, and 0 otherwise."""
    if done.refused:
        return FAILED
    return NOT_YET if done.waiting else DONE
