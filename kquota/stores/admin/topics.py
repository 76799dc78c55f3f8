"""The Topics port on the Admin API: metadata, CreateTopics, CreatePartitions and DeleteTopics.

A quota can reject the last three (KIP-599).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
)

from kquota.errors import Refused
from kquota.mutation.port import BatchResult, Failure
from kquota.mutation.topic import Creation, Deletion, Growth, Mutation, Partition, Topic
from kquota.reassign.moves import PartitionReplicas
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.controllers import must_be_active
from kquota.stores.admin.permissions import must_show
from kquota.stores.admin.running import ask_controller, moving
from kquota.stores.admin.wire_format import printed_id
from kquota.terms import BrokerId, TopicPartition

_BY_THE_BROKER: Final = -1
_SHOWS_ELIGIBLE_LEADERS: Final = (4, 0)
_PAGE: Final = 500
_LIMIT: Final = 2_000
_UNMENTIONED: Final = Failure(code=-1, reason="the broker's answer does not mention the topic")

_Topic = CreateTopicsRequest.CreatableTopic
_Described = DescribeTopicPartitionsRequest
_Grown = CreatePartitionsRequest.CreatePartitionsTopic


class WireTopics:
    """The topics of a cluster, through its brokers. Implements `Topics`.

    With `validate_only`, the controller only checks creations and growths. `send` and `request` then raise Refused for
    deletions, because Kafka cannot check a deletion.
    """

    def __init__(self, wire: Wire, *, validate_only: bool = False) -> None:
        self._wire = wire
        self._validate_only = validate_only

    def must_have_controller(self) -> None:
        must_be_active(self._wire)

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        return self.answer(self.request(mutations, seconds), mutations)

    def answer(self, request: Any, mutations: Sequence[Mutation]) -> BatchResult:
        """Send the request of these mutations, and return its result. Raises the same errors as `ask_controller`.

        A topic that the answer does not mention has a failure. After Unreachable, `was_sent` returns whether the
        controller may have received the request.
        """
        answer = ask_controller(self._wire, request, results=_results)
        found = _results(answer)
        outcomes = {result.name: failure(result) for result in found}
        return BatchResult(
            throttle_time_ms=answer.throttle_time_ms,
            outcomes={one.topic: outcomes.get(one.topic, _UNMENTIONED) for one in mutations},
        )

    def topics(self, names: Collection[str] | None, *, detailed: bool = False) -> tuple[Topic, ...]:
        """Return the topics. With `detailed`, they include eligible leader replicas if every broker that answers runs
        Kafka 4.0 or newer.

        Metadata does not return these replicas, so kquota sends DescribeTopicPartitions. For names and partitions,
        these requests would double the time.
        """
        wanted = None if names is None else sorted(names)
        if wanted == []:
            return ()
        # Read the moves before the partitions. Otherwise, a replica of a move that ends in between looks out of sync.
        moving = self._moving() if detailed else {}
        described = [topic for topic in self._wire.metadata(wanted).topics if not topic.error_code]
        if detailed and self._wire.oldest() >= _SHOWS_ELIGIBLE_LEADERS:
            described = list(self._pages(sorted(topic.name for topic in described)))
        parts: dict[str, list[Any]] = {}
        for topic in described:
            parts.setdefault(topic.name, []).append(topic)
        return tuple(_topic(parts[name], moving) for name in sorted(parts))

    def must_show(self, topics: Collection[str]) -> None:
        must_show(self._wire, topics)

    def _moving(self) -> Mapping[TopicPartition, PartitionReplicas]:
        try:
            return moving(self._wire)
        except Refused:
            return {}

    def _pages(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the topics that still exist. A topic with many partitions comes in parts."""
        for start in range(0, len(names), _PAGE):
            asked = [_Described.TopicRequest(name=name) for name in names[start : start + _PAGE]]
            cursor = None
            while True:
                answer = self._wire.ask(_Described(topics=asked, response_partition_limit=_LIMIT, cursor=cursor))
                yield from (topic for topic in answer.topics if not topic.error_code)
                if answer.next_cursor is None:
                    break
                at = answer.next_cursor
                cursor = _Described.Cursor(topic_name=at.topic_name, partition_index=at.partition_index)

    def request(self, mutations: Sequence[Mutation], seconds: float) -> Any:
        """Return the request for mutations of one kind: only creations, only growths, or only deletions.

        The controller waits at most `seconds` for the mutations. Raises Refused for deletions with `validate_only`.
        """
        timeout_ms = int(seconds * 1_000)
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
        if self._validate_only:
            raise Refused(
                f"topic {names[0]}: Kafka cannot validate a deletion without deleting the topic. Nothing was sent"
            )
        return DeleteTopicsRequest(
            topic_names=names,
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names],
            timeout_ms=timeout_ms,
        )


def _creatable(creation: Creation) -> Any:
    partitions, replicas = creation.partitions, creation.replication_factor
    if creation.assignment:
        partitions = replicas = None
    return _Topic(
        name=creation.topic,
        num_partitions=_BY_THE_BROKER if partitions is None else partitions,
        replication_factor=_BY_THE_BROKER if replicas is None else replicas,
        assignments=[
            _Topic.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in sorted((creation.assignment or {}).items())
        ],
        configs=[_Topic.CreatableTopicConfig(name=key, value=value) for key, value in creation.configs.items()],
    )


def _grown(growth: Growth) -> Any:
    assigned = [
        _Grown.CreatePartitionsAssignment(broker_ids=list(brokers))
        for _, brokers in sorted((growth.assignment or {}).items())
    ]
    return _Grown(name=growth.topic, count=growth.partitions, assignments=assigned or None)


def _results(answer: Any) -> Sequence[Any]:
    # The field is `results` in CreatePartitions, `responses` in DeleteTopics, and `topics` in CreateTopics.
    for name in ("topics", "results", "responses"):
        if (found := getattr(answer, name, None)) is not None:
            return list(found)
    raise AssertionError("unreachable")


def failure(result: Any) -> Failure | None:
    """Return why one topic or partition of an answer failed, or None if it did not fail."""
    if not result.error_code:
        return None
    message = getattr(result, "error_message", None)
    return Failure(code=result.error_code, reason=kafka_error(result.error_code, message))


def _topic(parts: Sequence[Any], moving: Mapping[TopicPartition, PartitionReplicas]) -> Topic:
    partitions = (
        partition_state(one, moving.get(TopicPartition(part.name, one.partition_index)))
        for part in parts
        for one in part.partitions or ()
    )
    return Topic(
        name=parts[0].name,
        id=printed_id(getattr(parts[0], "topic_id", None)),
        internal=bool(parts[0].is_internal),
        partitions=tuple(sorted(partitions, key=lambda one: one.number)),
    )


def partition_state(partition: Any, move: PartitionReplicas | None) -> Partition:
    """Return a partition from its metadata and, if the partition is moving, from the controller's entry `move`.

    `elr` and `last_known_elr` are None if the answer has no such field.
    """
    has_elr = hasattr(partition, "eligible_leader_replicas")
    return Partition(
        number=partition.partition_index,
        leader=None if partition.leader_id < 0 else BrokerId(partition.leader_id),
        replicas=_brokers(move.replicas if move else partition.replica_nodes),
        isr=_brokers(partition.isr_nodes),
        elr=_brokers(partition.eligible_leader_replicas or ()) if has_elr else None,
        last_known_elr=_brokers(partition.last_known_elr or ()) if has_elr else None,
        adding=_brokers(move.adding if move else ()),
        removing=_brokers(move.removing if move else ()),
    )


def _brokers(ids: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))
