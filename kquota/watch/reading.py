"""One reading of running moves: the partitions, the logs of their replicas, and the throttle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.reassign.wave import UNLIMITED, MoveLimits
from kquota.terms import BrokerId, ReplicaId, TopicPartition

LogNumbers: TypeAlias = Mapping[BrokerId, Mapping[str, Mapping[int, int]]]
"""One number for each replica, for example its size in bytes, by broker, topic and partition."""


class WantedLogs(NamedTuple):
    """The partitions of one topic whose logs a reading requests, by broker: sizes, and for some also log end offsets.

    As long as the topic and the watched moves do not change, every reading uses the same object, so that its request
    is encoded only once.
    """

    topic: str
    sizes: Mapping[BrokerId, Sequence[int]]
    ends: Mapping[BrokerId, Sequence[int]]


class FutureLog(NamedTuple):
    """The log of a copy between the log dirs of one broker: its bytes on disk, and its new log dir."""

    size: int
    log_dir: str


class DirSpace(NamedTuple):
    """The usable bytes of a log dir's volume (None if unknown, as before Kafka 3.3), and the error of the log dir, if
    any.
    """

    usable: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogs:
    """The logs that brokers reported."""

    by_dir: Mapping[tuple[BrokerId, str], Mapping[str, Mapping[int, int]]] = field(default_factory=dict)
    """The bytes of each log in each log dir of a broker, by topic and partition."""
    ends: LogNumbers = field(default_factory=dict)
    """The known log end offsets."""
    starts: LogNumbers = field(default_factory=dict)
    """The first offsets on disk, only for the leaders that `copies.outgrown` names."""
    futures: Mapping[ReplicaId, FutureLog] = field(default_factory=dict)
    """The copies between the log dirs of one broker (KIP-113)."""
    dirs: Mapping[tuple[BrokerId, str], DirSpace] = field(default_factory=dict)
    """The space and the error of each log dir, by broker and path."""
    silent: Mapping[BrokerId, str] = field(default_factory=dict)
    """The brokers whose sizes or log end offsets are unknown, with the reasons."""
    sizes: LogNumbers = field(init=False)
    """The bytes of each log, in any log dir. If a broker is not in `silent`, a requested replica without a size has no
    log there. An exception is a broker with a failed log dir, because it does not list the replicas of this log dir.
    """

    def __post_init__(self) -> None:
        sizes: dict[BrokerId, Mapping[str, Mapping[int, int]]] = {}
        for (broker, _), topics in self.by_dir.items():
            known = sizes.get(broker)
            sizes[broker] = topics if known is None else _joined(known, topics)
        object.__setattr__(self, "sizes", sizes)

    def end(self, replica: ReplicaId) -> int | None:
        """Return the log end offset of a replica, or None if it is unknown."""
        (topic, number), broker = replica
        return self.ends.get(broker, {}).get(topic, {}).get(number)


def _joined(one: Mapping[str, Mapping[int, int]], other: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    return {topic: {**one.get(topic, {}), **other.get(topic, {})} for topic in (*one, *other)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRates:
    """The throttle rates of a broker in bytes per second. None means that a rate is not set, or is not a number (only
    in ZooKeeper).
    """

    leader: int | None = None
    follower: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleReading:
    """The throttle of the watched topics."""

    rates: Mapping[BrokerId, BrokerRates] = field(default_factory=dict)
    """The throttle rates of each broker. The rates of a broker that is not included are unknown."""
    leaders: frozenset[ReplicaId] = frozenset()
    """The replicas in the leaders' throttled replica lists. `*` means all replicas of its topic."""
    followers: frozenset[ReplicaId] = frozenset()
    """The replicas in the followers' throttled replica lists, with the same meaning of `*`."""
    log_dir_rates: Mapping[BrokerId, int] = field(default_factory=dict)
    """The known rates of brokers that copy between their log dirs, in bytes per second."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchedTopic:
    """The partitions of one topic, and their moves."""

    name: str
    partitions: Mapping[TopicPartition, PartitionReplicas]
    running: frozenset[TopicPartition]
    """The partitions that are moving."""
    out_of_sync: tuple[ReplicaId, ...]
    """The out-of-sync replicas that are not copies of a running move."""
    ends: frozenset[tuple[Replicas, BrokerId | None]]
    """The destinations and the leader (None if there is none) of each moving partition, without repetitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading:
    """The values of one reading."""

    at: float
    """The time of the reading, in seconds of a monotonic clock."""
    time: datetime
    """The date and time of the reading."""
    snapshot: Snapshot
    topics: Mapping[str, WatchedTopic]
    """The partitions of `snapshot`, by topic."""
    logs: ReplicaLogs | None
    """The logs, or None over ZooKeeper, which does not store sizes and offsets."""
    throttle: ThrottleReading


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMove:
    """A move to watch."""

    run: str | None
    """The id of the move's run, or None if no run is recorded here."""
    targets: Mapping[TopicPartition, Replicas]
    sources: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    """The replicas before the move, as far as they are known."""
    submitted: frozenset[TopicPartition] | None = None
    """The partitions that need no further submission (see `Run.handed_over`), or that kquota never submits, because
    their topic was created again. None if they are unknown.
    """
    expected_seconds: float | None = None
    """The expected time left at the start of the watch, or None if it is unknown. Negative if the run was late then."""
    open: bool = False
    throttled: bool = False
    """True if the run has settings to restore. It has no meaning if `open` is False."""
    paused: bool = False
    undoing: bool = False
    """True if the run is being undone. `targets` are then those of the rollback plan."""
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    """The log dirs that the plan names."""
    limits: MoveLimits = UNLIMITED
    """The limits for the moves that run at the same time."""
    rates: Mapping[BrokerId, BrokerRates] = field(default_factory=dict)
    """The throttle rates that the run sets, also on the brokers of later waves."""


def same_moves(one: Sequence[WatchedMove], other: Sequence[WatchedMove]) -> bool:
    """Return True if both sequences have the same objects in the same order. The function does not compare the contents
    of the objects, because they can be large.
    """
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def shrunk(before: Mapping[TopicPartition, Replicas], now: Mapping[TopicPartition, PartitionReplicas]) -> int:
    """Return the number of partitions with a current replica that was in sync `before` but is not in sync `now`."""
    known = ((now[name], isr) for name, isr in before.items() if name in now)
    return sum(bool(set(isr) & set(held.replicas) - set(held.isr)) for held, isr in known)


def answering_brokers(reading: WatchReading) -> frozenset[BrokerId]:
    """Return the live brokers that are not silent. The result is empty over ZooKeeper."""
    if reading.logs is None:
        return frozenset()
    return reading.snapshot.alive - reading.logs.silent.keys()


def between_log_dirs(move: WatchedMove, reading: WatchReading) -> list[ReplicaId]:
    """Return the replicas in `move.log_dirs` that are being copied between log dirs, or whose broker does not answer.

    A replica of a deleted partition is left out. The result is empty over ZooKeeper, because only brokers report these
    copies.
    """
    if reading.logs is None or not move.log_dirs:
        return []
    futures, answering, known = reading.logs.futures, answering_brokers(reading), reading.snapshot.partitions
    return [r for r in move.log_dirs if r in futures or (r[1] not in answering and r[0] in known)]


def out_of_sync(reading: WatchReading) -> list[ReplicaId]:
    """Return the out-of-sync replicas that are not copies of a running move."""
    return [replica for topic in reading.topics.values() for replica in topic.out_of_sync]
