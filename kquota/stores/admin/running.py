"""The running reassignments (KIP-455, since Kafka 2.4), which only the controller knows."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kafka.protocol.admin.topics import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

from kquota.errors import Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.stores.admin.connection import (
    CONNECT_SECONDS,
    DESCRIBE,
    HUNG_SECONDS,
    Wire,
    advice_on_rights,
    kafka_error,
    was_sent,
)
from kquota.stores.admin.wire_format import (
    INT32,
    OwnAnswer,
    TopicCache,
    after_tags,
    broker_ids,
    compact,
    optional_text,
    read_text,
)
from kquota.terms import TopicPartition

TIMED_OUT: Final = 7
NOT_CONTROLLER: Final = 41
TIMEOUT_MS: Final = 30_000
_LIST_SECONDS: Final = 8.0
_POLL_SECONDS: Final = 0.1
_HEAD: Final = struct.Struct(">ih")
"""The first fields of the answer: throttle time in ms and error code."""


class RunningTopic(NamedTuple):
    """The moving partitions of one topic, sorted. The controller does not list their leaders and in-sync replicas."""

    name: str
    partitions: Mapping[TopicPartition, PartitionReplicas]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMoves:
    """An answer of the controller: the moving partitions, or an error code and its message.

    `throttle_time_ms` is the time that the client must wait (KIP-219).
    """

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: Sequence[RunningTopic]


class RunningMovesRequest(OwnAnswer, ListPartitionReassignmentsRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for all running reassignments. Its answer is `RunningMoves`."""

    RESPONSE = ListPartitionReassignmentsResponse

    def __init__(self, cache: TopicCache[RunningTopic] | None = None) -> None:
        super().__init__(timeout_ms=TIMEOUT_MS, topics=None)
        self._cache = moving_topics() if cache is None else cache

    def decoded(self, data: bytes) -> RunningMoves:
        throttled, error = _HEAD.unpack_from(data)
        message, at = optional_text(data, _HEAD.size)
        topics = self._cache.read(data, at, self.API_VERSION, complete=True)
        return RunningMoves(throttle_time_ms=throttled, error_code=error, error_message=message, topics=topics)


def moving_topics() -> TopicCache[RunningTopic]:
    """Return an empty cache for the answers to `RunningMovesRequest`."""
    return TopicCache(_topic, name_at=0)


def moving(wire: Wire) -> dict[TopicPartition, PartitionReplicas]:
    """Return the moving partitions, sorted. Raises the errors of `ask_controller` and `by_topic`."""
    return listed(moves_by_topic(wire, moving_topics()))


def moves_by_topic(wire: Wire, cache: TopicCache[RunningTopic]) -> dict[str, RunningTopic]:
    """Return the topics with moving partitions, sorted. Raises the same errors as `moving`.

    On KRaft, the metadata names any live broker as the controller. If this broker does not answer, kquota asks another.
    """
    request = RunningMovesRequest(cache)
    try:
        return by_topic(ask_controller(wire, request, HUNG_SECONDS))
    except Unreachable:
        answer = wire.read(request, _LIST_SECONDS, avoid=wire.controller)
    if answer.error_code == NOT_CONTROLLER:
        wire.refresh()
        answer = ask_controller(wire, request, _LIST_SECONDS)
    return by_topic(answer)


def by_topic(answer: RunningMoves) -> dict[str, RunningTopic]:
    """Return the topics of an answer by name, sorted.

    Raises Unreachable after `TIMED_OUT`, and after `NOT_CONTROLLER`, because an election can take longer than
    `ask_controller` waits. Raises Refused after any other error.
    """
    if answer.error_code:
        words = kafka_error(answer.error_code, answer.error_message)
        kind = Unreachable if answer.error_code in (NOT_CONTROLLER, TIMED_OUT) else Refused
        words += advice_on_rights(answer.error_code, DESCRIBE)
        raise kind(f"listing the running reassignments: the broker answered {words}")
    return {topic.name: topic for topic in sorted(answer.topics, key=attrgetter("name"))}


def listed(topics: Mapping[str, RunningTopic]) -> dict[TopicPartition, PartitionReplicas]:
    """Return the moving partitions of all topics, in the order of the topics."""
    found: dict[TopicPartition, PartitionReplicas] = {}
    for topic in topics.values():
        found |= topic.partitions
    return found


def ask_controller(
    wire: Wire,
    request: Any,
    seconds: float | None = None,
    *,
    results: Callable[[Any], Iterable[Any]] = lambda answer: (answer,),
) -> Any:
    """Return the answer of the current controller. On KRaft, any broker forwards the request.

    Retries with new metadata, for up to 10 s, if the request could not be sent or the answer has `NOT_CONTROLLER`. In
    both cases, nothing has changed. After 10 s, returns the last answer, even with `NOT_CONTROLLER`, or raises the last
    error. `results` returns the parts of an answer that have an `error_code` field. `seconds` limits each attempt as in
    `Wire.ask`, because a broker that finds no controller holds the request. Raises the same errors as `Wire.ask`.
    """
    give_up = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            answer = wire.ask(request, wire.controller, seconds)
            moved = any(one.error_code == NOT_CONTROLLER for one in results(answer))
            if not moved or time.monotonic() > give_up:
                return answer
        except Unreachable as error:
            if was_sent(request, error) or time.monotonic() > give_up:
                raise
        time.sleep(_POLL_SECONDS)
        wire.refresh()


def _topic(data: bytes, at: int, _version: int) -> tuple[RunningTopic, int]:
    name, at = read_text(data, at)
    count, at = compact(data, at)
    found = {}
    for _ in range(count):
        (number,) = INT32.unpack_from(data, at)
        replicas, at = broker_ids(data, at + INT32.size)
        adding, at = broker_ids(data, at)
        removing, at = broker_ids(data, at)
        at = after_tags(data, at)
        found[TopicPartition(name, number)] = PartitionReplicas(replicas=replicas, adding=adding, removing=removing)
    return RunningTopic(name, dict(sorted(found.items()))), after_tags(data, at)
