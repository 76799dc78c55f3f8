"""The running reassignments, which only the controller knows (KIP-455), since Kafka 2.4."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.protocol.admin.topics import ListPartitionReassignmentsRequest

from kquota.errors import Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.stores.admin.connection import CONNECT_SECONDS, Wire, kafka_error, was_sent
from kquota.terms import BrokerId, TopicPartition

NOT_CONTROLLER: Final = 41
TIMEOUT_MS: Final = 30_000
_LIST_SECONDS: Final = 8.0
_POLL_SECONDS: Final = 0.1


def moving(wire: Wire) -> dict[TopicPartition, Any]:
    """Return the controller's entry for each moving partition. Raises Unreachable, and Refused after an error."""
    return listed(ask_controller(wire, everything(), _LIST_SECONDS))


def everything() -> Any:
    """Return the request for all running reassignments."""
    return ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None)


def listed(answer: Any) -> dict[TopicPartition, Any]:
    """Return the entry of each partition in an answer. Raises Refused after an error."""
    if answer.error_code:
        words = kafka_error(answer.error_code, answer.error_message)
        raise Refused(f"listing the running reassignments: the broker answered {words}")
    return {
        TopicPartition(topic.name, state.partition_index): state
        for topic in answer.topics
        for state in topic.partitions
    }


def in_motion(entries: Mapping[TopicPartition, Any]) -> dict[TopicPartition, PartitionReplicas]:
    """Return the replicas of the controller's entries, which have no leader and no in-sync replicas."""
    found = {}
    for name, entry in sorted(entries.items()):
        replicas, adding, removing = (
            tuple(map(BrokerId, ids)) for ids in (entry.replicas, entry.adding_replicas, entry.removing_replicas)
        )
        found[name] = PartitionReplicas(replicas=replicas, adding=adding, removing=removing)
    return found


def ask_controller(
    wire: Wire, request: Any, seconds: float | None = None, *, moved: Callable[[Any], bool] | None = None
) -> Any:
    """Return the answer of the current controller. On KRaft, any broker forwards the request.

    `moved` returns True for the answer of a broker that is not the controller. A broker that finds no controller holds
    the request, so `seconds` can limit the wait as in `Wire.ask`. If the broker is not the controller, or does not
    accept connections, kquota reads the metadata again and asks the broker that the metadata now names: another live
    broker on KRaft, or the new controller on ZooKeeper. After 10 s, kquota returns the last answer, or raises the last
    error. Raises the same errors as `Wire.ask`.
    """
    is_moved = _is_moved if moved is None else moved
    give_up = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            answer = wire.ask(request, wire.controller, seconds)
            if not is_moved(answer) or time.monotonic() > give_up:
                return answer
        except Unreachable as error:
            if was_sent(request, error) or time.monotonic() > give_up:
                raise
        time.sleep(_POLL_SECONDS)
        wire.metadata([])


def _is_moved(answer: Any) -> bool:
    return bool(answer.error_code == NOT_CONTROLLER)
