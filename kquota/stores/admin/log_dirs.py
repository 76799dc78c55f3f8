"""The LogDirs port on the Admin API: DescribeLogDirs (KIP-113, KIP-827), metadata, and ListOffsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from kquota.errors import KquotaError, Refused
from kquota.sizes.replica import LogDir, Replica
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.terms import BrokerId, ReplicaId, TopicPartition

_LATEST, _EARLIEST, _EARLIEST_LOCAL, _PENDING = -1, -2, -4, -6
_TIERED: Final = (3, 6)
"""The first release with tiered topics (KIP-405)."""
_VERSIONS: Final = {_EARLIEST_LOCAL: 8, _PENDING: 11}
"""The versions of ListOffsets that added these timestamps (KIP-405, KIP-1023). Version 1 has the others."""
# To a consumer (-1), only the leader answers. With this id, a follower reports the end of its own log.
_DEBUGGING_REPLICA: Final = -2
_CONSUMER: Final = -1


class WireLogDirs:
    """The log dirs of the live brokers."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def cluster_id(self) -> str:
        return self._wire.cluster_id

    def brokers(self) -> Mapping[BrokerId, str | None]:
        return {broker.id: broker.rack for broker in self._wire.brokers().values()}

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        """Ask for all topics and filter the answer, because a request for one topic must list its partitions."""
        wanted: list[Any] | None = None if topics is None or topics else []
        answers = self._answers({broker: DescribeLogDirsRequest(topics=wanted) for broker in brokers})
        racks = self.brokers()
        found = []
        for broker, answer in answers.items():
            if getattr(answer, "error_code", 0):
                raise Refused(f"broker {broker} answered DescribeLogDirs with {kafka_error(answer.error_code, None)}")
            found += [_log_dir(broker, racks.get(broker), result, topics) for result in answer.results]
        return sorted(found, key=lambda log_dir: (log_dir.broker, log_dir.path))

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        held: dict[BrokerId, set[TopicPartition]] = defaultdict(set)
        for log_dir in log_dirs:
            held[log_dir.broker] |= {replica.partition for replica in log_dir.replicas if not replica.future}
        # Without tiered topics, the local log is the whole log.
        local = _EARLIEST_LOCAL if self._wire.oldest() >= _TIERED else _EARLIEST
        # Asked first, because these offsets belong to the sizes, and the logs change.
        ends = self._list_offsets(held, _LATEST, _DEBUGGING_REPLICA)
        local_starts = self._list_offsets(held, local, _DEBUGGING_REPLICA)
        states = self._states({replica.partition for log_dir in log_dirs for replica in log_dir.replicas})
        starts = self._list_offsets(_led(states), _EARLIEST, _CONSUMER)
        return [
            replace(
                log_dir,
                replicas=tuple(
                    _with_details(replica, log_dir.broker, states.get(replica.partition), starts, local_starts, ends)
                    for replica in log_dir.replicas
                ),
            )
            for log_dir in log_dirs
        ]

    def pending(self, log_dirs: list[LogDir]) -> Mapping[TopicPartition, int]:
        led: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for log_dir in log_dirs:
            led[log_dir.broker] += [replica.partition for replica in log_dir.replicas if replica.leader]
        return {partition: at for (partition, _), at in self._list_offsets(led, _PENDING, _CONSUMER).items()}

    def _states(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        wanted = set(partitions)
        topics = sorted({partition.topic for partition in wanted})
        if not topics:
            return {}
        found = {}
        for topic in self._wire.metadata(topics).topics:
            for state in topic.partitions or ():
                partition = TopicPartition(topic.name, state.partition_index)
                if partition in wanted:
                    found[partition] = state
        return found

    def _list_offsets(
        self, held: Mapping[BrokerId, Collection[TopicPartition]], timestamp: int, replica_id: int
    ) -> dict[ReplicaId, int]:
        answers = self._answers(
            {
                broker: _list_offsets(partitions, timestamp, replica_id)
                for broker, partitions in held.items()
                if partitions
            }
        )
        return {
            (TopicPartition(topic.name, state.partition_index), broker): state.offset
            for broker, answer in answers.items()
            for topic in answer.topics
            for state in topic.partitions
            if state.error_code == 0 and state.offset >= 0
        }

    def _answers(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        answers = self._wire.ask_each(requests)
        for answer in answers.values():
            if isinstance(answer, KquotaError):
                raise answer
        return answers


def _log_dir(broker: BrokerId, rack: str | None, result: Any, topics: Collection[str] | None) -> LogDir:
    replicas = [
        Replica(
            partition=TopicPartition(topic.name, state.partition_index),
            size=state.partition_size,
            offset_lag=state.offset_lag,
            future=state.is_future_key,
        )
        for topic in result.topics
        if topics is None or topic.name in topics
        for state in topic.partitions
    ]
    return LogDir(
        broker=broker,
        rack=rack,
        path=result.log_dir,
        error=kafka_error(result.error_code, None) if result.error_code else None,
        volume_total=_known_size(result.total_bytes),
        volume_usable=_known_size(result.usable_bytes),
        replicas=tuple(sorted(replicas, key=lambda replica: (replica.partition, replica.future))),
        cordoned=bool(result.is_cordoned),
    )


def _known_size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


def _led(states: Mapping[TopicPartition, Any]) -> dict[BrokerId, set[TopicPartition]]:
    led: dict[BrokerId, set[TopicPartition]] = defaultdict(set)
    for partition, state in states.items():
        if state.leader_id >= 0:
            led[BrokerId(state.leader_id)].add(partition)
    return led


def _with_details(
    replica: Replica,
    broker: BrokerId,
    state: Any | None,
    starts: Mapping[ReplicaId, int],
    local_starts: Mapping[ReplicaId, int],
    ends: Mapping[ReplicaId, int],
) -> Replica:
    if replica.future or state is None:
        return replica
    return replace(
        replica,
        start_offset=starts.get((replica.partition, broker)),
        local_start_offset=local_starts.get((replica.partition, broker)),
        end_offset=ends.get((replica.partition, broker)),
        leader=state.leader_id == broker,
        in_sync=broker in state.isr_nodes,
    )


def _list_offsets(partitions: Collection[TopicPartition], timestamp: int, replica_id: int) -> Any:
    of_topic: dict[str, list[int]] = defaultdict(list)
    for partition in sorted(partitions):
        of_topic[partition.topic].append(partition.partition)
    topic_data = ListOffsetsRequest.ListOffsetsTopic
    topics = [
        topic_data(
            name=topic,
            partitions=[topic_data.ListOffsetsPartition(partition_index=i, timestamp=timestamp) for i in numbers],
        )
        for topic, numbers in of_topic.items()
    ]
    oldest = _VERSIONS.get(timestamp, 1)
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=0, topics=topics, min_version=oldest)
