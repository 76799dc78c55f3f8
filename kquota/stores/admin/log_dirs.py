"""The LogDirs port on the Admin API: DescribeLogDirs (KIP-113, KIP-827), metadata, and ListOffsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, TypeAlias

from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from kquota.errors import KquotaError
from kquota.reassign.moves import PartitionReplicas
from kquota.sizes.replica import LogDir, Replica
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.offsets import (
    CONSUMER,
    DEBUGGING_REPLICA,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    PENDING,
    TIERED,
    ListOffsetsRequest,
    Offsets,
    by_partition,
)
from kquota.stores.admin.partition_states import PartitionStatesRequest, topic_states
from kquota.stores.admin.replica_dirs import must_have_answered
from kquota.stores.admin.wire_format import numbers_by_topic
from kquota.terms import BrokerId, TopicPartition

_AT_ONCE: Final = 16
"""The maximum number of brokers that kquota asks at the same time."""


class WireLogDirs:
    """The log dirs of the live brokers. Implements `LogDirs`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def cluster_id(self) -> str:
        return self._wire.cluster_id

    def brokers(self) -> Mapping[BrokerId, str | None]:
        return {broker.id: broker.rack for broker in self._wire.brokers().values()}

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        """Request all topics and filter the answers, because a request for one topic must list its partitions."""
        wanted: list[Any] | None = None if topics is None or topics else []
        chosen = None if topics is None else frozenset(topics)
        racks = self.brokers()
        names: dict[TopicPartition, TopicPartition] = {}
        found = []
        for some in _together(brokers):
            answers = self._answers(dict.fromkeys(some, DescribeLogDirsRequest(topics=wanted)))
            for broker in some:
                answer = answers.pop(broker)
                must_have_answered(broker, answer)
                found += [_log_dir(broker, racks.get(broker), result, chosen, names) for result in answer.results]
        return sorted(found, key=lambda log_dir: (log_dir.broker, log_dir.path))

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        held = _by_broker(log_dirs, lambda replica: not replica.future)
        states = self._states({replica.partition.topic for log_dir in log_dirs for replica in log_dir.replicas})
        # Without tiered topics, the local log is the whole log.
        local = EARLIEST_LOCAL if self._wire.oldest() >= TIERED else EARLIEST
        found = []
        for some in _together(sorted({log_dir.broker for log_dir in log_dirs})):
            of_some = {broker: held[broker] for broker in some}
            # Read the end offsets first, soon after the sizes, because the logs keep growing.
            ends = self._list_offsets(of_some, LATEST, DEBUGGING_REPLICA)
            local_starts = self._list_offsets(of_some, local, DEBUGGING_REPLICA)
            starts = self._list_offsets(_led(some, states), EARLIEST, CONSUMER)
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
        pending = self._list_offsets(_by_broker(log_dirs, lambda replica: bool(replica.leader)), PENDING, CONSUMER)
        return {name: first for of_broker in pending.values() for name, first in by_partition(of_broker).items()}

    def _states(self, topics: Collection[str]) -> _States:
        if not topics:
            return {}
        answer = self._wire.partition_states(PartitionStatesRequest(sorted(topics), topic_states()))
        return {name: state for topic in answer.topics for name, state in topic.partitions.items()}

    def _list_offsets(self, held: _ByBroker, timestamp: int, replica_id: int) -> dict[BrokerId, Offsets]:
        asked = {
            broker: ListOffsetsRequest.of(numbers_by_topic(those), timestamp, replica_id)
            for broker, those in held.items()
            if those
        }
        found: dict[BrokerId, Offsets] = {broker: {} for broker in held}
        return found | {broker: answer.offsets for broker, answer in self._answers(asked).items()}

    def _answers(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        answers = self._wire.ask_each(requests)
        for answer in answers.values():
            if isinstance(answer, KquotaError):
                raise answer
        return answers


_States: TypeAlias = Mapping[TopicPartition, PartitionReplicas]
_ByBroker: TypeAlias = Mapping[BrokerId, Sequence[TopicPartition]]


def _by_broker(log_dirs: Iterable[LogDir], wanted: Callable[[Replica], bool]) -> _ByBroker:
    """Return the partitions of wanted replicas. Brokers without a wanted replica are included."""
    found: dict[BrokerId, list[TopicPartition]] = {}
    for log_dir in log_dirs:
        of_broker = found.setdefault(log_dir.broker, [])
        of_broker += [replica.partition for replica in log_dir.replicas if wanted(replica)]
    return found


def _led(brokers: Collection[BrokerId], states: _States) -> _ByBroker:
    found: dict[BrokerId, list[TopicPartition]] = {broker: [] for broker in brokers}
    for name, state in states.items():
        if state.leader in found:
            found[state.leader].append(name)
    return found


_order: Final = attrgetter("partition_index", "is_future_key")


def _together(brokers: Collection[BrokerId]) -> Iterator[Sequence[BrokerId]]:
    """Yield groups of brokers to ask at the same time, because the answers of all brokers would need too much
    memory.
    """
    each = list(brokers)
    for first in range(0, len(each), _AT_ONCE):
        yield each[first : first + _AT_ONCE]


def _log_dir(
    broker: BrokerId,
    rack: str | None,
    result: Any,
    topics: Set[str] | None,
    names: dict[TopicPartition, TopicPartition],
) -> LogDir:
    """All replicas of a partition share its object in `names`, which saves two thirds of the memory."""
    replicas = tuple(
        # Pass positional arguments, because keyword arguments take twice as long.
        Replica(names.setdefault(name, name), state.partition_size, state.offset_lag, state.is_future_key)
        for topic in sorted(result.topics, key=lambda topic: topic.name)
        if topics is None or topic.name in topics
        for state in sorted(topic.partitions, key=_order)
        for name in (TopicPartition(topic.name, state.partition_index),)
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


def _known_size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


def _with_details(
    log_dir: LogDir, states: _States, starts: Offsets, local_starts: Offsets, ends: Offsets
) -> tuple[Replica, ...]:
    broker = log_dir.broker
    found: list[Replica] = []
    for replica in log_dir.replicas:
        name, state = replica.partition, states.get(replica.partition)
        if replica.future or state is None:
            found.append(replica)
            continue
        offsets = (known.get(name.topic, {}).get(name.partition) for known in (ends, starts, local_starts))
        end, start, local_start = offsets
        flags = state.leader == broker, broker in state.isr
        # Pass positional arguments, because `_replace` takes four times as long.
        found.append(Replica(name, replica.size, replica.offset_lag, False, end, start, local_start, *flags))
    return tuple(found)
