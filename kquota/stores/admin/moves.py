"""The MoveCluster port on the Admin API: metadata, reassignments (KIP-455) and dynamic configs, since Kafka 2.4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka.protocol.admin.topics import AlterPartitionReassignmentsRequest

from kquota.errors import Refused, Unknown, Unreachable
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.stores.admin.connection import kafka_error
from kquota.stores.admin.running import TIMEOUT_MS, ask_controller, in_motion, moving
from kquota.stores.admin.settings import WireSettings
from kquota.stores.state.topic_id import printed
from kquota.terms import BrokerId, TopicPartition

_METADATA_FETCH_SECONDS: Final = 0.5
"""The seconds for which a broker's fetch of the metadata log waits for new records (KRaft)."""
_TIMED_OUT: Final = 7
_NO_SUCH_TOPIC: Final = (3, 17)

_Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


class WireMoves(WireSettings):
    """Moves of replicas, through the brokers of the cluster. Implements `MoveCluster` and `Configs`."""

    @property
    def stale_seconds(self) -> float:
        return _METADATA_FETCH_SECONDS

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        running = moving(self._wire)
        answer = self._wire.metadata(None if topics is None else sorted(topics))
        partitions = {}
        for topic in answer.topics:
            if topic.error_code and topic.error_code not in _NO_SUCH_TOPIC:
                raise Refused(f"topic {topic.name}: the broker answered {kafka_error(topic.error_code, None)}")
            for state in topic.partitions or ():
                name = TopicPartition(topic.name, state.partition_index)
                partitions[name] = _partition(state, running.get(name))
        return Snapshot(
            racks={broker.id: broker.rack for broker in self._wire.brokers().values()},
            partitions=dict(sorted(partitions.items())),
            running=in_motion(running),
            topic_ids={t.name: known for t in answer.topics if not t.error_code and (known := printed(t.topic_id))},
        )

    @property
    def largest_submission(self) -> int | None:
        return None

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Submit the moves in one request. On a ZooKeeper cluster, only the controller accepts this request.

        KRaft cannot replace a running move with a target that adds nothing or removes nothing, because the controller
        keeps the old list of adding or removing replicas (4.3.1: [1,2] -> [1,3] and back left 3 in both lists forever).
        kquota therefore first cancels the running move with a separate request.
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
            raise Unknown(f"{error}; it is unknown whether the moves were submitted") from error
        if answer.error_code:
            words = f"submitting the moves: the broker answered {kafka_error(answer.error_code, answer.error_message)}"
            raise Unknown(words) if answer.error_code == _TIMED_OUT else Refused(words)
        return {
            TopicPartition(topic.name, state.partition_index): _words(state)
            for topic in answer.responses
            for state in topic.partitions
            if state.error_code
        }


def _partition(state: Any, move: Any | None) -> PartitionReplicas:
    """Return a partition from the metadata, with the replicas of its running move.

    The moves are read before the metadata, so a move that ended in between still counts as running.
    """
    leader = BrokerId(state.leader_id) if state.leader_id >= 0 else None
    if move is None:
        # Converting the ids to BrokerId would be too slow for a large cluster, which has 100,000 partitions.
        return PartitionReplicas(replicas=tuple(state.replica_nodes), leader=leader, isr=tuple(state.isr_nodes))
    return PartitionReplicas(
        replicas=tuple(move.replicas),
        adding=tuple(move.adding_replicas),
        removing=tuple(move.removing_replicas),
        leader=leader,
        isr=tuple(state.isr_nodes),
    )


def _would_keep(move: Any, target: Replicas) -> bool:
    """Return True if the controller would keep the adding or removing replicas of the running move, because `target`
    adds or removes none.
    """
    before = set(move.replicas) - set(move.adding_replicas)
    adds, removes = set(target) - before, set(move.replicas) - set(target)
    return bool((move.adding_replicas and not adds) or (move.removing_replicas and not removes))


def _words(state: Any) -> str:
    return str(state.error_message or kafka_error(state.error_code, None))
