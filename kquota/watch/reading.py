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
    """The logs that brokers reported: the bytes of each log in each log dir, and the known log end offsets (`ends`).

    `futures` are copies between the log dirs of one broker (KIP-113). `silent` has the brokers whose sizes or log end
    offsets are unknown, with the reasons. On any other broker, a requested replica that is missing from `sizes` has no
    log, unless a log dir of the broker has an error: the broker does not list the replicas of such a log dir.
    """

    by_dir: Mapping[tuple[BrokerId, str], Mapping[str, Mapping[int, int]]] = field(default_factory=dict)
    ends: LogNumbers = field(default_factory=dict)
    futures: Mapping[ReplicaId, FutureLog] = field(default_factory=dict)
    dirs: Mapping[tuple[BrokerId, str], DirSpace] = field(default_factory=dict)
    silent: Mapping[BrokerId, str] = field(default_factory=dict)
    sizes: LogNumbers = field(init=False)
    """The bytes of each log, whatever its log dir."""

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
    """The throttle of the watched topics. If a broker is missing from `rates`, its rates are unknown.

    `log_dir_rates` are the known rates of brokers that copy between their log dirs, in bytes per second. `leaders` and
    `followers` are the throttled replicas, with each `*` replaced by all replicas of its topic.
    """

    rates: Mapping[BrokerId, BrokerRates] = field(default_factory=dict)
    leaders: frozenset[ReplicaId] = frozenset()
    followers: frozenset[ReplicaId] = frozenset()
    log_dir_rates: Mapping[BrokerId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WatchedTopic:
    """The partitions of one topic, and those of them that are moving.

    `out_of_sync` are the out-of-sync replicas that are not copies of a running move. `ends` has the destinations and
    the leader of each moving partition, without repetitions.
    """

    name: str
    partitions: Mapping[TopicPartition, PartitionReplicas]
    running: frozenset[TopicPartition]
    out_of_sync: tuple[ReplicaId, ...]
    ends: frozenset[tuple[Replicas, BrokerId | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading:
    """The values of one reading. `at` is in seconds of a monotonic clock, and `time` is the date and time.

    `topics` has the partitions of `snapshot` by topic. `logs` is None over ZooKeeper, which does not store sizes and
    offsets.
    """

    at: float
    time: datetime
    snapshot: Snapshot
    topics: Mapping[str, WatchedTopic]
    logs: ReplicaLogs | None
    throttle: ThrottleReading


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMove:
    """A move to watch. `run` is the id of its run, or None if no run is recorded here.

    `sources` are the replicas before the move, as far as they are known. `submitted` are the partitions that were
    submitted or refused, or that need no move. It is None if these are unknown. `expected_seconds` is the expected time
    left at the start of the watch, or None if it is unknown. It is negative if the run was late at that time. `open` is
    true if the run is open, and `throttled` if it also has settings to restore. `paused` is true while the run is
    paused. `log_dirs` are the log dirs that the plan names. `limits` restrict the moves that run at the same time.
    `rates` are the throttle rates that the run sets, also on the brokers of later waves.
    """

    run: str | None
    targets: Mapping[TopicPartition, Replicas]
    sources: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    submitted: frozenset[TopicPartition] | None = None
    expected_seconds: float | None = None
    open: bool = False
    throttled: bool = False
    paused: bool = False
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    limits: MoveLimits = UNLIMITED
    rates: Mapping[BrokerId, BrokerRates] = field(default_factory=dict)


def same_moves(one: Sequence[WatchedMove], other: Sequence[WatchedMove]) -> bool:
    """True if both have the same objects in the same order. It does not compare the contents, which can be large."""
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

    The result is empty over ZooKeeper, because only brokers know these copies.
    """
    if reading.logs is None or not move.log_dirs:
        return []
    futures, answering, known = reading.logs.futures, answering_brokers(reading), reading.snapshot.partitions
    return [r for r in move.log_dirs if r in futures or (r[1] not in answering and r[0] in known)]


def out_of_sync(reading: WatchReading) -> list[ReplicaId]:
    """Return the out-of-sync replicas that are not copies of a running move."""
    return [replica for topic in reading.topics.values() for replica in topic.out_of_sync]
