"""The Topics port on the Admin API: CreateTopics, CreatePartitions, DeleteTopics; a quota can reject them (KIP-599)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from kquota.mutation.port import Answer, Failure
from kquota.mutation.request import Assignment, Creation, Deletion, Growth, Mutation
from kquota.stores.wire.connection import Wire, kafka_error

_NOT_CONTROLLER: Final = 41
_BY_THE_BROKER: Final = -1
_TRIES: Final = 3

_Topic = CreateTopicsRequest.CreatableTopic
_Grown = CreatePartitionsRequest.CreatePartitionsTopic


class WireTopics:
    """Topics made, grown and deleted by the controller. `validate_only`: it only says what it would answer."""

    def __init__(self, wire: Wire, *, validate_only: bool = False) -> None:
        self._wire = wire
        self._validate_only = validate_only

    def send(self, mutations: Sequence[Mutation], seconds: float) -> Answer:
        """See the port."""
        request = self._request(mutations, int(seconds * 1_000))
        for _ in range(_TRIES):
            answer = self._wire.ask(request, self._wire.controller)
            found = _results(answer)
            if all(result.error_code != _NOT_CONTROLLER for result in found):
                break
            # The controller moved on; metadata says where to.
            self._wire.metadata([])
        outcomes = {result.name: _failure(result) for result in found}
        return Answer(
            throttle_time_ms=answer.throttle_time_ms,
            outcomes={one.topic: outcomes[one.topic] for one in mutations},
        )

    def _request(self, mutations: Sequence[Mutation], timeout_ms: int) -> Any:
        if creations := [one for one in mutations if isinstance(one, Creation)]:
            return CreateTopicsRequest(
                topics=[_creatable(one) for one in creations],
                timeout_ms=timeout_ms,
                validate_only=self._validate_only,
            )
        if growths := [one for one in mutations if isinstance(one, Growth)]:
            return CreatePartitionsRequest(
                topics=[_grown(one) for one in growths], timeout_ms=timeout_ms, validate_only=self._validate_only
            )
        names = [one.topic for one in mutations if isinstance(one, Deletion)]
        return DeleteTopicsRequest(
            topic_names=names,
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names],
            timeout_ms=timeout_ms,
        )


def _creatable(one: Creation) -> Any:
    given = bool(one.assignment)
    return _Topic(
        name=one.topic,
        num_partitions=_BY_THE_BROKER if given or one.partitions is None else one.partitions,
        replication_factor=_BY_THE_BROKER if given or one.replication_factor is None else one.replication_factor,
        assignments=[
            _Topic.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in _ordered(one.assignment)
        ],
        configs=[_Topic.CreatableTopicConfig(name=key, value=value) for key, value in one.configs.items()],
    )


def _grown(one: Growth) -> Any:
    assigned = [_Grown.CreatePartitionsAssignment(broker_ids=list(brokers)) for _, brokers in _ordered(one.assignment)]
    return _Grown(name=one.topic, count=one.partitions, assignments=assigned or None)


def _ordered(assignment: Assignment | None) -> Iterable[tuple[int, tuple[int, ...]]]:
    return sorted((assignment or {}).items())


def _results(answer: Any) -> Sequence[Any]:
    # CreatePartitions calls them results, DeleteTopics responses, CreateTopics topics.
    for name in ("topics", "results", "responses"):
        if (found := getattr(answer, name, None)) is not None:
            return list(found)
    raise AssertionError("unreachable")


def _failure(result: Any) -> Failure | None:
    if not result.error_code:
        return None
    message = getattr(result, "error_message", None)
    return Failure(code=result.error_code, reason=kafka_error(result.error_code, message))
