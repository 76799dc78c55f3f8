"""Forms of values that the answers of several actions of `reassign-partitions` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kquota.cli.contract import DONE, FAILED, NOT_YET
from kquota.cli.output import JsonObject, plain
from kquota.terms import ReplicaId, TopicPartition

if TYPE_CHECKING:
    from kquota.reassign.log_dir_actions import Started
    from kquota.reassign.moves import Replicas
    from kquota.reassign.plan import Plan


def plan_or_null(plan: Plan) -> Any:
    """Return a plan in the JSON of kafka-reassign-partitions, or None if the plan is empty."""
    return plan.document() if plan.targets else None


def placed(targets: Mapping[TopicPartition, Replicas | None]) -> list[JsonObject]:
    """Return the replicas to which each partition moves or returns. null means that only the cluster knows the previous
    replicas of the partition.
    """
    return [{**plain(name), "replicas": to} for name, to in targets.items()]


def replica_texts(texts: Mapping[ReplicaId, object]) -> list[JsonObject]:
    """Return each replica with its text: a log dir, or the reason why its move did not start or stop."""
    return [{**plain(name), "broker": broker, "told": str(text)} for (name, broker), text in texts.items()]


def log_dirs_code(done: Started) -> int:
    """Return 1 if a broker refused a request, 8 if a broker has not acted on a request yet, and 0 otherwise."""
    if done.refused:
        return FAILED
    return NOT_YET if done.waiting else DONE
