"""The LogDirs port on the Admin API: DescribeLogDirs (KIP-113, KIP-827), metadata, and ListOffsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from kquota.errors import KquotaError
from kquota.sizes.replica import LogDir, Replica
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.offsets import (
    CONSUMER,
    DEBUGGING_REPLICA,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    PENDING,
    ListOffsetsRequest,
    Offsets,
    by_partition,
)
from kquota.stores.admin.replica_dirs import must_have_answered
from kquota.terms import BrokerId, TopicPartition

_AT_ONCE: Final = 16
"""The maximum number of brokers that kquota asks at the same time."""
_TIERED: Final = (3, 6)
"""The first release with tiered topics (KIP-405)."""


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
        racks, names = self.brokers(), _Names()
        found = []
        for some in _together(brokers):
            answers = self._answers(dict.fromkeys(some, DescribeLogDirsRequest(topics=wanted)))
            for broker in some:
                answer = answers.pop(broker)
                must_have_answered(broker, answer)
                found += [_log_dir(broker, racks.get(broker), result, topics, names) for result in answer.results]
        return sorted(found, key=lambda log_dir: (log_dir.broker, log_dir.path))

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        held = _by_broker(log_dirs, lambda replica: not replica.future)
        states = self._states({replica.partition.topic for log_dir in log_dirs for replica in log_dir.replicas})
        # Without tiered topics, the local log is the whole log.
        local = EARLIEST_LOCAL if self._wire.oldest() >= _TIERED else EARLIEST
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
        return {
            topic.name: {
                state.partition_index: _State(BrokerId(state.leader_id), state.isr_nodes)
                for state in topic.partitions or ()
            }
            for topic in self._wire.metadata(sorted(topics)).topics
        }

    def _list_offsets(
        self, held: Mapping[BrokerId, Mapping[str, Sequence[int]]], timestamp: int, replica_id: int
    ) -> dict[BrokerId, Offsets]:
        asked = {broker: ListOffsetsRequest.of(those, timestamp, replica_id) for broker, those in held.items() if those}
        found: dict[BrokerId, Offsets] = {broker: {} for broker in held}
        return found | {broker: answer.offsets for broker, answer in self._answers(asked).items()}

    def _answers(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        answers = self._wire.ask_each(requests)
        for answer in answers.values():
            if isinstance(answer, KquotaError):
                raise answer
        return answers


class _State(NamedTuple):
    """The leader of a partition (-1 if it has none), and the brokers of its in-sync replicas."""

    leader: BrokerId
    in_sync: Sequence[int]


_States: TypeAlias = Mapping[str, Mapping[int, _State]]


def _by_broker(
    log_dirs: Iterable[LogDir], wanted: Callable[[Replica], bool]
) -> Mapping[BrokerId, Mapping[str, Sequence[int]]]:
    """Return the partitions of wanted replicas, by broker and topic. Brokers without a wanted replica are included."""
    found: dict[BrokerId, defaultdict[str, list[int]]] = {}
    for log_dir in log_dirs:
        of_broker = found.setdefault(log_dir.broker, defaultdict(list))
        for replica in log_dir.replicas:
            if wanted(replica):
                of_broker[replica.partition.topic].append(replica.partition.partition)
    return found


def _led(brokers: Collection[BrokerId], states: _States) -> Mapping[BrokerId, Mapping[str, Sequence[int]]]:
    found: dict[BrokerId, defaultdict[str, list[int]]] = {broker: defaultdict(list) for broker in brokers}
    for topic, of_topic in states.items():
        for number, state in of_topic.items():
            if (of_broker := found.get(state.leader)) is not None:
                of_broker[topic].append(number)
    return found


class _Names(defaultdict[str, dict[int, TopicPartition]]):
    """One object for each partition, shared by its replicas on all brokers. Sharing saves two thirds of the memory."""

    def __init__(self) -> None:
        super().__init__(dict)

    def of(self, topic: str, number: int) -> TopicPartition:
        of_topic = self[topic]
        found = of_topic.get(number)
        if found is None:
            found = of_topic[number] = TopicPartition(topic, number)
        return found


_order: Final = attrgetter("partition_index", "is_future_key")


def _together(brokers: Collection[BrokerId]) -> Iterator[Sequence[BrokerId]]:
    """Yield groups of brokers to ask at the same time, because the answers of all brokers would need too much
    memory.
    """
    each = list(brokers)
    for first in range(0, len(each), _AT_ONCE):
        yield each[first : first + _AT_ONCE]


def _log_dir(broker: BrokerId, rack: str | None, result: Any, topics: Collection[str] | None, names: _Names) -> LogDir:
    replicas = tuple(
        # Pass positional arguments, because keyword arguments take twice as long.
        Replica(
            names.of(topic.name, state.partition_index), state.partition_size, state.offset_lag, state.is_future_key
        )
        for topic in sorted(result.topics, key=lambda topic: topic.name)
        if topics is None or topic.name in topics
        for state in sorted(topic.partitions, key=_order)
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
    topic = None
    for replica in log_dir.replicas:  # the replicas are sorted by topic
        name, future = replica.partition, replica.future
        number = name.partition
        if name.topic != topic:
            topic = name.topic
            of_topic, first = states.get(topic, {}), starts.get(topic, {})
            local, last = local_starts.get(topic, {}), ends.get(topic, {})
        state = of_topic.get(number)
        if future or state is None:
            found.append(replica)
            continue
        # Pass positional arguments, because `_replace` takes four times as long.
        start, local_start, end = first.get(number), local.get(number), last.get(number)
        flags = state.leader == broker, broker in state.in_sync
        found.append(Replica(name, replica.size, replica.offset_lag, future, end, start, local_start, *flags))
    return tuple(found)
