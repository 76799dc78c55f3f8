"""The MoveCluster port on the Admin API: metadata, reassignments (KIP-455) and dynamic configs, since Kafka 2.4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from kafka.protocol.admin.topics import AlterPartitionReassignmentsRequest

from kquota.errors import Refused, Unknown, Unreachable
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.stores.admin.connection import ALTER, Wire, advice_on_rights, kafka_error, topic_refusal
from kquota.stores.admin.controller_configs import ControllerConfigs
from kquota.stores.admin.partition_states import PartitionStatesRequest, TopicStates, topic_states
from kquota.stores.admin.running import (
    TIMED_OUT,
    TIMEOUT_MS,
    RunningTopic,
    ask_controller,
    listed,
    moves_by_topic,
    moving,
    moving_topics,
)
from kquota.stores.admin.settings import WireSettings
from kquota.terms import TopicPartition

_NO_SUCH_TOPIC: Final = (3, 17)

_Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


class WireMoves(WireSettings):
    """Moves of replicas, through the brokers of the cluster. Implements `MoveCluster` and `Configs`.

    An instance keeps the topics of its last snapshot, so that its next snapshot decodes only topics that have changed.
    """

    stale_seconds = 0.5
    """On KRaft, a broker sees the end of a move with its next fetch of the metadata log, which can wait for 0.5 s."""
    largest_submission = None

    def __init__(
        self,
        wire: Wire,
        must_hold: Callable[[], None] = lambda: None,
        controllers: Callable[[], ControllerConfigs] | None = None,
    ) -> None:
        super().__init__(wire, must_hold, controllers)
        self._moving = moving_topics()
        self._states = topic_states()
        self._joined: dict[str, _JoinedTopic] = {}

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        running = moves_by_topic(self._wire, self._moving)
        answer = self._wire.partition_states(PartitionStatesRequest(topics, self._states))
        partitions: dict[TopicPartition, PartitionReplicas] = {}
        joined: dict[str, _JoinedTopic] = {}
        for topic in sorted(answer.topics, key=attrgetter("name")):
            if topic.error_code and topic.error_code not in _NO_SUCH_TOPIC:
                raise topic_refusal(topic.name, topic.error_code)
            moves = running.get(topic.name)
            if moves is None:
                partitions |= topic.partitions
                continue
            both = self._joined.get(topic.name)
            if both is None or both.topic is not topic or both.moves is not moves:
                both = _JoinedTopic(topic, moves, _joined(topic.partitions, moves.partitions))
            joined[topic.name] = both
            partitions |= both.partitions
        self._joined = joined
        return Snapshot(
            racks={broker.id: broker.rack for broker in self._wire.brokers().values()},
            partitions=partitions,
            running=listed(running),
            topic_ids={topic.name: topic.id for topic in answer.topics if not topic.error_code and topic.id},
        )

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Submit the targets, after cancelling the running moves whose replicas the controller would keep.

        A KRaft controller keeps the adding replicas of a running move if the new target adds none, and the removing
        replicas if it removes none. In Kafka 4.3.1, a move from [1,2] to [1,3] and back left 3 forever among the
        adding and the removing replicas.
        """
        running = moving(self._wire)
        replaced = [
            name
            for name, target in targets.items()
            if name in running and target and _would_keep(running[name], target)
        ]
        refused = self._submitted(dict.fromkeys(replaced)) if replaced else {}
        still = moving(self._wire) if refused else {}
        refused = {name: words for name, words in refused.items() if name in still}
        return {**refused, **self._submitted({name: t for name, t in targets.items() if name not in refused})}

    def _submitted(self, targets: Mapping[TopicPartition, Replicas | None]) -> dict[TopicPartition, str]:
        by_topic: defaultdict[str, list[Any]] = defaultdict(list)
        for name, target in targets.items():
            replicas = None if target is None else list(target)
            partition = _Topic.ReassignablePartition(partition_index=name.partition, replicas=replicas)
            by_topic[name.topic].append(partition)
        topics = [_Topic(name=topic, partitions=partitions) for topic, partitions in by_topic.items()]
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)
        self._must_hold()
        try:
            answer = ask_controller(self._wire, request)
        except Unreachable as error:
            raise Unknown(f"{error}. It is unknown whether the moves were submitted") from error
        if answer.error_code:
            words = f"submitting the moves: the broker answered {kafka_error(answer.error_code, answer.error_message)}"
            words += advice_on_rights(answer.error_code, ALTER)
            raise Unknown(words) if answer.error_code == TIMED_OUT else Refused(words)
        return {
            TopicPartition(topic.name, state.partition_index): str(
                state.error_message or kafka_error(state.error_code, None)
            )
            for topic in answer.responses
            for state in topic.partitions
            if state.error_code
        }


class _JoinedTopic(NamedTuple):
    """A topic from the metadata, its moves from the controller, and the partitions with the values of both."""

    topic: TopicStates
    moves: RunningTopic
    partitions: Mapping[TopicPartition, PartitionReplicas]


def _joined(
    described: Mapping[TopicPartition, PartitionReplicas], moves: Mapping[TopicPartition, PartitionReplicas]
) -> dict[TopicPartition, PartitionReplicas]:
    """Return the described partitions with the values of their moves. kquota reads the moves first, so a move that ends
    before the metadata is read still counts as running.
    """
    return {
        name: now
        if (move := moves.get(name)) is None
        else PartitionReplicas(
            replicas=move.replicas, adding=move.adding, removing=move.removing, leader=now.leader, isr=now.isr
        )
        for name, now in described.items()
    }


def _would_keep(move: PartitionReplicas, target: Replicas) -> bool:
    adds, removes = set(target) - set(move.before), set(move.replicas) - set(target)
    return bool((move.adding and not adds) or (move.removing and not removes))
