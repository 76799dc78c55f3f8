"""The ReplicaDirs port on the Admin API: DescribeLogDirs and AlterReplicaLogDirs (KIP-113), since Kafka 1.1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from kafka.protocol.admin.cluster import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from kquota.errors import KquotaError, Refused, Unknown, Unreachable
from kquota.reassign.log_dirs import LogDirReading, ReplicaLogDirs
from kquota.stores.admin.connection import ALTER, DESCRIBE, Wire, advice_on_rights, kafka_error
from kquota.stores.admin.requests import CLUSTER_DENIED
from kquota.stores.admin.wire_format import numbers_by_topic
from kquota.terms import MAYBE_WRITTEN, BrokerId, ReplicaId, TopicPartition

_ABSENT: Final = (3, 9)
"""Error codes for a replica that the broker does not have yet: UNKNOWN_TOPIC_OR_PARTITION and REPLICA_NOT_AVAILABLE."""

_Dir = AlterReplicaLogDirsRequest.AlterReplicaLogDir


class WireReplicaDirs:
    """The log dirs of replicas. Implements `ReplicaDirs`."""

    def __init__(self, wire: Wire, must_hold: Callable[[], None] = lambda: None) -> None:
        """`must_hold` is called just before each write, and raises Busy if another kquota has taken over the lock."""
        self._wire = wire
        self._must_hold = must_hold

    def read(self, replicas: Collection[ReplicaId]) -> LogDirReading:
        asked = _by_broker(replicas)
        alive = self._wire.brokers().keys()
        answers = self._wire.ask_each({b: _describe(those) for b, those in asked.items() if b in alive})
        dirs: dict[BrokerId, dict[str, str | None]] = {}
        places: dict[ReplicaId, ReplicaLogDirs] = {}
        silent = dict.fromkeys(sorted(asked.keys() - alive), "it is dead")
        for broker, answer in answers.items():
            if isinstance(answer, KquotaError):
                silent[broker] = str(answer)
                continue
            must_have_answered(broker, answer)
            dirs[broker] = {found.log_dir: _closed(found) for found in answer.results}
            places |= {replica: place for replica, place in _places(broker, answer) if replica[0] in asked[broker]}
        return LogDirReading(dirs=dirs, places=places, silent=silent)

    def alter(self, moves: Mapping[ReplicaId, str]) -> Mapping[ReplicaId, KquotaError]:
        alive = self._wire.brokers().keys()
        errors: dict[ReplicaId, KquotaError] = {
            (name, broker): Unreachable(f"broker {broker} is dead") for name, broker in moves if broker not in alive
        }
        asked = _by_broker(moves.keys() - errors.keys())
        self._must_hold()
        answers = self._wire.ask_each(
            {broker: _alter({name: moves[name, broker] for name in those}) for broker, those in asked.items()}
        )
        for broker, answer in answers.items():
            if isinstance(answer, KquotaError):
                lost = Unknown(f"{answer}. It is unknown whether this broker moves its replicas")
                errors |= {(name, broker): lost for name in asked[broker]}
                continue
            codes = {
                TopicPartition(topic.topic_name, state.partition_index): state.error_code
                for topic in answer.results
                for state in topic.partitions
            }
            errors |= {
                (name, broker): error
                for name in asked[broker]
                if (error := _error(broker, moves[name, broker], codes.get(name))) is not None
            }
        return dict(sorted(errors.items()))


def _by_broker(replicas: Collection[ReplicaId]) -> dict[BrokerId, list[TopicPartition]]:
    found: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for name, broker in sorted(replicas):
        found[broker].append(name)
    return dict(found)


def _describe(partitions: Collection[TopicPartition]) -> Any:
    topic_data = DescribeLogDirsRequest.DescribableLogDirTopic
    topics = [topic_data(topic=topic, partitions=numbers) for topic, numbers in numbers_by_topic(partitions).items()]
    return DescribeLogDirsRequest(topics=topics)


def _alter(moves: Mapping[TopicPartition, str]) -> Any:
    into: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for name, path in moves.items():
        into[path].append(name)
    topic_data = _Dir.AlterReplicaLogDirTopic
    return AlterReplicaLogDirsRequest(
        dirs=[
            _Dir(
                path=path,
                topics=[
                    topic_data(name=topic, partitions=numbers) for topic, numbers in numbers_by_topic(those).items()
                ],
            )
            for path, those in into.items()
        ]
    )


def must_have_answered(broker: BrokerId, answer: Any) -> None:
    """Raise Refused for an error in the answer, and for an answer without log dirs.

    Before version 3 of DescribeLogDirs, an answer without log dirs means that the user lacks a permission.
    """
    if answer.error_code or not answer.results:
        code = answer.error_code or CLUSTER_DENIED
        hint = advice_on_rights(code, DESCRIBE)
        raise Refused(f"broker {broker} answered DescribeLogDirs with {kafka_error(code, None)}{hint}")


def _closed(found: Any) -> str | None:
    """Return why the log dir accepts no new replicas (it can be cordoned, KIP-1066), or None if it accepts them."""
    if found.error_code:
        return kafka_error(found.error_code, None)
    return "it is cordoned" if found.is_cordoned else None


def _places(broker: BrokerId, answer: Any) -> Iterator[tuple[ReplicaId, ReplicaLogDirs]]:
    current: dict[TopicPartition, str] = {}
    future: dict[TopicPartition, tuple[str, int]] = {}
    for found in answer.results:
        for topic in found.topics:
            for state in topic.partitions:
                name = TopicPartition(topic.name, state.partition_index)
                if state.is_future_key:
                    future[name] = (found.log_dir, state.offset_lag)
                else:
                    current[name] = found.log_dir
    for name in sorted(current.keys() | future.keys()):
        path, lag = future.get(name, (None, None))
        yield (name, broker), ReplicaLogDirs(current=current.get(name), future=path, lag=lag)


def _error(broker: BrokerId, path: str, code: int | None) -> KquotaError | None:
    if code == 0 or code in _ABSENT:
        return None
    if code is None:
        return Unknown(f"broker {broker} did not report whether it moves the replica")
    words = f"broker {broker} answered {kafka_error(code, None)} for log dir {path}{advice_on_rights(code, ALTER)}"
    return Unknown(words) if code in MAYBE_WRITTEN else Refused(words)
