"""The LogDirs port on the Admin API: DescribeLogDirs (KIP-113, KIP-827), metadata, and ListOffsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from kquota.errors import KquotaError, Refused
from kquota.sizes.replica import LogDir, Replica
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.offsets import (
    CONSUMER,
    DEBUGGING_REPLICA,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    PENDING,
    offsets,
    request,
)
from kquota.terms import BrokerId, TopicPartition

_AT_ONCE: Final = 16
"""The number of brokers that are asked at the same time."""
_TIERED: Final = (3, 6)
"""The first release with tiered topics (KIP-405)."""


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
        racks, names = self.brokers(), _Names()
        found = []
        for some in _together(brokers):
            # A request keeps its version, so each broker gets its own.
            answers = self._answers({broker: DescribeLogDirsRequest(topics=wanted) for broker in some})
            for broker in some:
                answer = answers.pop(broker)
                if getattr(answer, "error_code", 0):
                    why = kafka_error(answer.error_code, None)
                    raise Refused(f"broker {broker} answered DescribeLogDirs with {why}")
                found += [_log_dir(broker, racks.get(broker), result, topics, names) for result in answer.results]
        return sorted(found, key=lambda log_dir: (log_dir.broker, log_dir.path))

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        held: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for log_dir in log_dirs:
            held[log_dir.broker] += [replica.partition for replica in log_dir.replicas if not replica.future]
        states = self._states({replica.partition.topic for log_dir in log_dirs for replica in log_dir.replicas})
        # Without tiered topics, the local log is the whole log.
        local = EARLIEST_LOCAL if self._wire.oldest() >= _TIERED else EARLIEST
        found = []
        for some in _together(sorted({log_dir.broker for log_dir in log_dirs})):
            of_some = {broker: held[broker] for broker in some}
            # Asked before the starts, because these offsets belong to the sizes, and the logs change.
            ends = self._list_offsets(of_some, LATEST, DEBUGGING_REPLICA)
            local_starts = self._list_offsets(of_some, local, DEBUGGING_REPLICA)
            led = {broker: [name for name in held[broker] if _leads(broker, states.get(name))] for broker in some}
            starts = self._list_offsets(led, EARLIEST, CONSUMER)
            found += [
                replace(
                    log_dir,
                    replicas=_with_details(
                        log_dir, states, starts[log_dir.broker], local_starts[log_dir.broker], ends[log_dir.broker]
                    ),
                )
                for log_dir in log_dirs
                if log_dir.broker in of_some
            ]
        return sorted(found, key=lambda log_dir: (log_dir.broker, log_dir.path))

    def pending(self, log_dirs: list[LogDir]) -> Mapping[TopicPartition, int]:
        led: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for log_dir in log_dirs:
            led[log_dir.broker] += [replica.partition for replica in log_dir.replicas if replica.leader]
        pending = self._list_offsets(led, PENDING, CONSUMER)
        return {partition: at for broker in led for partition, at in pending[broker].items()}

    def _states(self, topics: Collection[str]) -> dict[TopicPartition, _State]:
        if not topics:
            return {}
        return {
            TopicPartition(topic.name, state.partition_index): _State(state.leader_id, tuple(state.isr_nodes))
            for topic in self._wire.metadata(sorted(topics)).topics
            for state in topic.partitions or ()
        }

    def _list_offsets(
        self, held: Mapping[BrokerId, Collection[TopicPartition]], timestamp: int, replica_id: int
    ) -> dict[BrokerId, dict[TopicPartition, int]]:
        """Return the offsets of each broker. A partition without an offset is absent."""
        answers = self._answers(
            {
                broker: request(_by_topic(partitions), timestamp, replica_id)
                for broker, partitions in held.items()
                if partitions
            }
        )
        found: dict[BrokerId, dict[TopicPartition, int]] = {broker: {} for broker in held}
        for broker in list(answers):
            found[broker] = dict(offsets(answers.pop(broker)))
        return found

    def _answers(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        answers = self._wire.ask_each(requests)
        for answer in answers.values():
            if isinstance(answer, KquotaError):
                raise answer
        return answers


class _State(NamedTuple):
    """The leader of a partition, and the brokers that are in sync with it."""

    leader: int
    in_sync: tuple[int, ...]


def _leads(broker: BrokerId, state: _State | None) -> bool:
    return state is not None and state.leader == broker


class _Names(dict[TopicPartition, TopicPartition]):
    """Each partition once, because its replicas come from several brokers: a third of the memory."""

    def of(self, topic: str, partition: int) -> TopicPartition:
        """Return the only object of this partition."""
        name = TopicPartition(topic, partition)
        return self.setdefault(name, name)


def _together(brokers: Collection[BrokerId]) -> Iterator[Sequence[BrokerId]]:
    """Yield groups of brokers that are asked at the same time, because all answers together need too much memory."""
    each = list(brokers)
    for first in range(0, len(each), _AT_ONCE):
        yield each[first : first + _AT_ONCE]


def _log_dir(broker: BrokerId, rack: str | None, result: Any, topics: Collection[str] | None, names: _Names) -> LogDir:
    replicas = tuple(
        Replica(
            partition=names.of(topic.name, state.partition_index),
            size=state.partition_size,
            offset_lag=state.offset_lag,
            future=state.is_future_key,
        )
        for topic in sorted(result.topics, key=lambda topic: topic.name)
        if topics is None or topic.name in topics
        for state in sorted(topic.partitions, key=lambda state: (state.partition_index, state.is_future_key))
    )
    return LogDir(
        broker=broker,
        rack=rack,
        path=result.log_dir,
        error=kafka_error(result.error_code, None) if result.error_code else None,
        volume_total=_known_size(result.total_bytes),
        volume_usable=_known_size(result.usable_bytes),
        replicas=replicas,
        cordoned=bool(result.is_cordoned),
    )


def _by_topic(partitions: Collection[TopicPartition]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        found[topic].append(number)
    return found


def _known_size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


def _with_details(
    log_dir: LogDir,
    states: Mapping[TopicPartition, _State],
    starts: Mapping[TopicPartition, int],
    local_starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> tuple[Replica, ...]:
    return tuple(
        replica
        if replica.future or (state := states.get(name := replica.partition)) is None
        # Not `replace`, which takes four times as long.
        else Replica(
            partition=name,
            size=replica.size,
            offset_lag=replica.offset_lag,
            future=replica.future,
            start_offset=starts.get(name),
            local_start_offset=local_starts.get(name),
            end_offset=ends.get(name),
            leader=state.leader == log_dir.broker,
            in_sync=log_dir.broker in state.in_sync,
        )
        for replica in log_dir.replicas
    )
