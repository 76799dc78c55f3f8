"""The sentences of kafka-reassign-partitions 4.3.1. Scripts read them, so do not change them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kquota.list_text import joined
from kquota.measure import ByteRate
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import CURRENT, PROPOSED, Plan
from kquota.reassign.progress import PartitionStatus, Progress
from kquota.terms import BrokerId, TopicPartition

EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
    "create a new partition assignment in addition to the existing one. The --additional flag can also be used to "
    "change the throttle by resubmitting the current reassignment."
)
RUN_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)
NONE_CANCELLED: Final = "None of the specified partition reassignments are active."


def generated(current: Plan, proposed: Plan) -> str:
    """Return the output of `--generate`. As in Kafka from 4.2 on, `current` has the log dir of every replica."""
    return f"{CURRENT}\n{current.text()}\n\n{PROPOSED}\n{proposed.text()}"


def running(moves: Mapping[TopicPartition, PartitionReplicas]) -> str:
    """Return the output of `--list`."""
    if not moves:
        return "No partition reassignments found."
    return "\n".join(
        ("Current partition reassignments:", *(_running_line(name, moves[name]) for name in sorted(moves)))
    )


def _running_line(name: TopicPartition, now: PartitionReplicas) -> str:
    adding = f" adding: {joined(now.adding)}." if now.adding else ""
    removing = f" removing: {joined(now.removing)}." if now.removing else ""
    return f"{name}: replicas: {joined(now.replicas)}.{adding}{removing}"


def current_assignment(rollback: Plan) -> str:
    """Return the first lines of `--execute`: the rollback plan."""
    return f"{CURRENT}\n\n{rollback.text()}\n\nSave this to use as the --reassignment-json-file option during rollback"


def throttle_set(rate: ByteRate) -> str:
    """Return the line of `--execute` about the throttle rate, in bytes per second."""
    return f"The inter-broker throttle limit was set to {rate} B/s"


def started(partitions: Collection[TopicPartition]) -> str:
    """Return the line of `--execute` that names the submitted partitions."""
    plural = "" if len(partitions) == 1 else "s"
    return f"Successfully started partition reassignment{plural} for {joined(sorted(partitions))}"


def failed(errors: Mapping[TopicPartition, str]) -> str:
    """Return one error for all partitions that the cluster refused to move, with reasons, and without a final period.
    Kafka prints a line for each partition.
    """
    return f"Error reassigning partition(s): {_errors(errors)}".removesuffix(".")


def cancelled(partitions: Collection[TopicPartition]) -> str:
    """Return the first line of `--cancel`."""
    plural = "" if len(partitions) == 1 else "s"
    return f"Successfully cancelled partition reassignment{plural} for: {joined(sorted(partitions))}"


def not_cancelled(errors: Mapping[TopicPartition, str]) -> str:
    """Return the line for moves that the cluster did not cancel, with reasons."""
    plural = "" if len(errors) == 1 else "s"
    return f"Error cancelling partition reassignment{plural} for: {_errors(errors)}"


def status_lines(found: Iterable[PartitionStatus]) -> str:
    """Return the first lines of `--verify`."""
    return "\n".join(("Status of partition reassignment:", *map(_status_line, found)))


def _status_line(status: PartitionStatus) -> str:
    match status.progress:
        case Progress.DONE:
            return f"Reassignment of partition {status.partition} is completed."
        case Progress.IN_PROGRESS:
            return f"Reassignment of partition {status.partition} is still in progress."
        case Progress.ELSEWHERE:
            return (
                f"There is no active reassignment of partition {status.partition}, but replica set is "
                f"{joined(status.replicas)} rather than {joined(status.target)}."
            )


def clearing_brokers(brokers: Collection[BrokerId]) -> str:
    """Return the line of `--verify` about the rates that it clears."""
    return f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {joined(sorted(brokers))}"


def clearing_topics(topics: Collection[str]) -> str:
    """Return the line of `--verify` about the throttled replica lists that it clears."""
    return f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {joined(sorted(topics))}"


def _errors(errors: Mapping[TopicPartition, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in sorted(errors.items()))
