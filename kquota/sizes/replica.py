"""One log dir of one broker and its replicas, as in DescribeLogDirs (KIP-113, KIP-827).

`Moved` is the effect of a move: the bytes on each broker before and after it, and the bytes to copy for each topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kquota.terms import BrokerId, TopicPartition


class Replica(NamedTuple):
    """The log of one replica. None means that the cluster did not report the value, never zero.

    The class is a tuple to save memory, because a large cluster has 300,000 replicas.
    """

    partition: TopicPartition
    size: int
    """The size in bytes. On a tiered topic (KIP-405), this counts only the segments on the broker's disk."""
    offset_lag: int
    future: bool
    """True if the log is a copy that will replace the replica's log in another log dir of the same broker."""
    end_offset: int | None = None
    start_offset: int | None = None
    """The first offset that consumers can read. Only leaders report this offset."""
    local_start_offset: int | None = None
    """The first offset on the broker's disk."""
    leader: bool | None = None
    in_sync: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """One log dir of one broker, with its replicas."""

    broker: BrokerId
    rack: str | None
    """The broker's rack, or None without a rack."""
    path: str
    error: str | None
    """The reason why the broker cannot read the log dir, or None. With a reason, the replicas are missing."""
    volume_total: int | None
    """The size of the volume in bytes, or None if it is unknown, as before Kafka 3.3."""
    volume_usable: int | None
    """The usable bytes of the volume, or None if they are unknown, as before Kafka 3.3."""
    replicas: tuple[Replica, ...]
    cordoned: bool = False
    """True if the broker places no new replica in the log dir (KIP-1066, from Kafka 4.3). Snapshots do not contain this
    value.
    """

    @property
    def volume(self) -> tuple[int | None, int | None]:
        """The total and the usable bytes of the volume. Log dirs with the same values may share one volume."""
        return self.volume_total, self.volume_usable


def without_remote(log_dirs: Iterable[LogDir], pending: Mapping[TopicPartition, int]) -> list[LogDir]:
    """Return the log dirs with the size of each tiered replica reduced to the bytes that are not in remote storage yet.

    A new replica copies only these bytes if its broker sets `follower.fetch.last.tiered.offset.enable` (KIP-1023).
    `pending` has, for each tiered partition, the first offset that is not in remote storage. A replica with unknown
    offsets keeps its whole size.
    """
    return [
        replace(log_dir, replicas=tuple(_pending_only(one, pending.get(one.partition)) for one in log_dir.replicas))
        for log_dir in log_dirs
    ]


def _pending_only(replica: Replica, first: int | None) -> Replica:
    start, end = replica.local_start_offset, replica.end_offset
    if first is None or start is None or end is None or first <= start:
        return replica
    return replica._replace(size=replica.size * max(0, end - first) // (end - start) if end > start else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """The cordoned log dirs of one broker, sorted. `whole` is true if no log dir of the broker accepts new replicas."""

    broker: BrokerId
    log_dirs: tuple[str, ...]
    whole: bool


def cordons(log_dirs: Iterable[LogDir]) -> tuple[Cordon, ...]:
    """Return a Cordon for each broker that has cordoned log dirs, sorted by broker id.

    For `whole`, an offline log dir counts as cordoned, because it does not accept a replica either.
    """
    held: dict[BrokerId, list[LogDir]] = {}
    for log_dir in log_dirs:
        held.setdefault(log_dir.broker, []).append(log_dir)
    return tuple(
        Cordon(
            broker=broker,
            log_dirs=cordoned,
            whole=all(log_dir.cordoned or log_dir.error is not None for log_dir in held[broker]),
        )
        for broker in sorted(held)
        if (cordoned := tuple(sorted(log_dir.path for log_dir in held[broker] if log_dir.cordoned)))
    )


def hidden(log_dirs: Iterable[LogDir]) -> Iterator[str]:
    """Yield a warning for each log dir that its broker cannot read. The replicas in it are missing from every sum."""
    for log_dir in log_dirs:
        if log_dir.error is not None:
            yield (
                f"broker {log_dir.broker} cannot read log dir {log_dir.path} ({log_dir.error}), so the replicas in it "
                "are unknown"
            )


def topics(log_dirs: Iterable[LogDir]) -> frozenset[str]:
    """Return the topics that have a replica in these log dirs."""
    return frozenset(replica.partition.topic for log_dir in log_dirs for replica in log_dir.replicas)


def partition_sizes(log_dirs: Iterable[LogDir]) -> dict[TopicPartition, int]:
    """Return the bytes of the largest replica of each partition. Copies between log dirs do not count."""
    found: dict[TopicPartition, int] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            if not replica.future:
                found[replica.partition] = max(replica.size, found.get(replica.partition, 0))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerBytes:
    """The bytes of all replicas on one broker, before and after a move."""

    broker: int
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingTopic:
    """One topic with moving partitions."""

    topic: str
    partitions: int
    """The number of moving partitions."""
    copies: int
    """The number of replicas to create."""
    bytes: int
    """The total bytes of the replicas to create."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The effect of a move."""

    held: tuple[BrokerBytes, ...]
    """The bytes on each broker, sorted by broker id."""
    topics: tuple[MovingTopic, ...]
    """The topics with the most bytes to copy, the largest first."""
    topics_in_all: int
    """The number of all moving topics."""
