"""The running reassignments, which only the controller knows (KIP-455), since Kafka 2.4."""

from __future__ import annotations

import time
from typing import Any, Final

from kafka.protocol.admin import ListPartitionReassignmentsRequest

from kquota.errors import Refused
from kquota.stores.admin.connection import CONNECT_SECONDS, Wire, kafka_error
from kquota.terms import TopicPartition

NOT_CONTROLLER: Final = 41
TIMEOUT_MS: Final = 30_000
_POLL_SECONDS: Final = 0.1


def moving(wire: Wire) -> dict[TopicPartition, Any]:
    """Return the controller's entry for each moving partition. Raises Unreachable, and Refused after an error."""
    answer = ask_controller(wire, ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=None))
    if answer.error_code:
        words = kafka_error(answer.error_code, answer.error_message)
        raise Refused(f"listing the running reassignments: the broker answered {words}")
    return {
        TopicPartition(topic.name, state.partition_index): state
        for topic in answer.topics
        for state in topic.partitions
    }


def ask_controller(wire: Wire, request: Any) -> Any:
    """Return the answer of the current controller. On KRaft, any broker forwards the request. Raises as `ask`."""
    give_up = time.monotonic() + CONNECT_SECONDS
    while True:
        answer = wire.ask(request, wire.controller)
        if answer.error_code != NOT_CONTROLLER or time.monotonic() > give_up:
            return answer
        time.sleep(_POLL_SECONDS)
        wire.metadata([])
