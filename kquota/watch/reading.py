"""One reading of running moves: the partitions, the logs of their replicas, and the throttle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Snapshot
from kquota.terms import BrokerId, ReplicaId, TopicPartition


class ReplicaLog(NamedTuple):
    """The log of one replica: its bytes on disk, its log end offset (None: unknown), and its log dir."""

    size: int
    end: int | None
    log_dir: str


class DirSpace(NamedTuple):
    """The usable bytes of a log dir's volume (None if unknown, as before Kafka 3.3), and the error of the log dir, if
    any.
    """

    usable: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLogs:
    """The logs that brokers reported. `futures` are copies between the log dirs of one broker (KIP-113).

    `silent` has the brokers whose sizes or log end offsets are unknown, with the reasons. On any other broker, a
    requested replica that is missing from `logs` has no log, unless a log dir of the broker has an error: the broker
    does not list the replicas of such a log dir.
    """

    logs: Mapping[ReplicaId, ReplicaLog] = field(default_factory=dict)
    futures: Mapping[ReplicaId, ReplicaLog] = field(default_factory=dict)
    dirs: Mapping[tuple[BrokerId, str], DirSpace] = field(default_factory=dict)
    silent: Mapping[BrokerId, str] = field(default_factory=dict)


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

    `leaders` and `followers` are the throttled replicas, with each `*` replaced by all replicas of its topic.
    """

    rates: Mapping[BrokerId, BrokerRates] = field(default_factory=dict)
    leaders: frozenset[ReplicaId] = frozenset()
    followers: frozenset[ReplicaId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading:
    """The values of one reading. `at` is in seconds of a monotonic clock, and `time` is the date and time.

    `logs` is None over ZooKeeper, which does not store sizes and offsets.
    """

    at: float
    time: datetime
    snapshot: Snapshot
    logs: ReplicaLogs | None
    throttle: ThrottleReading


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMove:
    """A move to watch. `run` is the id of its run, or None if no run is recorded here.

    `sources` are the replicas before the move, as far as they are known. `submitted` are the partitions that were
    submitted or refused, or that need no move. It is None if these are unknown. `expected_seconds` is the expected time
    left at the start of the watch, or None if it is unknown. It is negative if the run was late at that time. `open` is
    true if the run is open. `paused` is true while the run is paused. `log_dirs` are the log dirs that the plan names.
    """

    run: str | None
    targets: Mapping[TopicPartition, Replicas]
    sources: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    submitted: frozenset[TopicPartition] | None = None
    expected_seconds: float | None = None
    open: bool = False
    paused: bool = False
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)


def shrunk(before: Mapping[TopicPartition, Replicas], now: Mapping[TopicPartition, PartitionReplicas]) -> int:
    """Return the number of partitions with a current replica that was in sync `before` but is not in sync `now`."""
    known = ((now[name], isr) for name, isr in before.items() if name in now)
    return sum(bool(set(isr) & set(held.replicas) - set(held.isr)) for held, isr in known)


class CopyReading(NamedTuple):
    """One new replica of a watched move. The values are in bytes and offsets. None means unknown, never 0.

    `move` is the index of the move. `copied` are the bytes on the destination, `left` the missing bytes, `lag` the
    missing offsets, and `source` the bytes on the leader (None also if the copy is in sync). `leader` is None if there
    is no leader. `done` is true if the partition has its target replicas. `begun` is false if the destination has no
    log of the replica yet, or None if this is unknown. `submitted` is true if the partition is moving or done.
    """

    move: int
    replica: ReplicaId
    leader: BrokerId | None
    copied: int | None
    left: int | None
    lag: int | None
    source: int | None
    done: bool
    begun: bool | None
    submitted: bool

    @property
    def partition(self) -> TopicPartition:
        """The partition that moves."""
        return self.replica[0]

    @property
    def destination(self) -> BrokerId:
        """The broker of the new replica."""
        return self.replica[1]


def copies(
    moves: tuple[WatchedMove, ...],
    reading: WatchReading,
    known: Mapping[TopicPartition, Replicas],
) -> Iterator[CopyReading]:
    """Yield the new replicas of every move, in the order of the plans.

    `known` has the destinations of partitions that were seen to move, because a partition that is not moving does not
    show them. A copy is left out if its partition was deleted. It is also left out if the partition was submitted, but
    is not moving and has no such replica: the move was cancelled, or the topic was recreated.
    """
    partitions, running = reading.snapshot.partitions, reading.snapshot.running
    answering = answering_brokers(reading)
    logs: Mapping[ReplicaId, ReplicaLog] = {} if reading.logs is None else reading.logs.logs
    log = logs.get
    failed = set() if reading.logs is None else {b for (b, _), space in reading.logs.dirs.items() if space.error}
    for number, move in enumerate(moves):
        submitted = known if move.submitted is None else move.submitted
        for name, target in move.targets.items():
            now = partitions.get(name)
            if now is None:
                continue
            moving, leader = name in running, now.leader
            done = not moving and now.replicas == target
            source = None if leader is None else log((name, leader))
            cancelled = not moving and not done and name in submitted
            for destination in _destinations(move, name, target, now, moving, done, known):
                if cancelled and destination not in now.replicas:
                    continue
                replica = name, destination
                own = log(replica)
                if done or destination in now.isr:
                    size = None if own is None else own.size
                    yield CopyReading(number, replica, leader, size, 0, 0, None, done, True, done or moving)
                else:
                    is_known = destination in answering and (own is not None or destination not in failed)
                    begun = own is not None if is_known else None
                    copied, left, lag, size = _progress(own, source, begun)
                    yield CopyReading(number, replica, leader, copied, left, lag, size, False, begun, moving)


def answering_brokers(reading: WatchReading) -> frozenset[BrokerId]:
    """Return the live brokers that are not silent. Over ZooKeeper there are none."""
    if reading.logs is None:
        return frozenset()
    return reading.snapshot.alive - reading.logs.silent.keys()


def _destinations(
    move: WatchedMove,
    name: TopicPartition,
    target: Replicas,
    now: PartitionReplicas,
    moving: bool,
    done: bool,
    known: Mapping[TopicPartition, Replicas],
) -> Iterable[BrokerId]:
    sources = move.sources.get(name)
    if sources:
        return [broker for broker in target if broker not in sources]
    if moving and len(now.adding) < len(now.replicas):
        # Return the target replicas that are not in `now.before`, without calculating it, because that is slower.
        return [broker for broker in target if broker in now.adding or broker not in now.replicas]
    found = known.get(name, ())
    return found if found or done else [broker for broker in target if broker not in now.replicas]


def _progress(
    own: ReplicaLog | None, source: ReplicaLog | None, begun: bool | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return `copied`, `left`, `lag` and `source` of a copy that is not in sync, from its log and its leader's log."""
    copied = own.size if own is not None else 0 if begun is False else None
    if source is None:
        return copied, None, None, None
    lag = source.end if begun is False else offsets_behind(own, source)
    return copied, _left(copied, source, lag), lag, source.size


def offsets_behind(own: ReplicaLog | None, leader: ReplicaLog | None) -> int | None:
    """Return how many offsets a log is behind the log of its leader, or None if either log end offset is unknown."""
    if own is None or leader is None or own.end is None or leader.end is None:
        return None
    return max(0, leader.end - own.end)


def _left(copied: int | None, leader: ReplicaLog, lag: int | None) -> int | None:
    """Return the bytes that the copy lacks: the difference in log size, because a follower copies batches unchanged.
    None if a value that the calculation needs is unknown.

    Retention and compaction can make the log of the leader smaller than the copy. In this case, the result is the lag
    in offsets times the size of the leader's log, divided by the log end offset of the leader.
    """
    if lag == 0:
        return 0
    if copied is None:
        return None
    more = leader.size - copied
    if more > 0:
        return more
    if lag is None or not leader.end:
        return None
    return lag * leader.size // leader.end
