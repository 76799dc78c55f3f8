"""The LogReader port on the Admin API. `read` sends each broker at most one DescribeLogDirs (KIP-113, KIP-827) and one
ListOffsets. `starts` sends one more ListOffsets, but only for a few logs.

The answers to DescribeLogDirs have entries of one size, so one `struct` decodes a whole entry.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import kafka.protocol.admin.cluster as cluster

from kquota.errors import KquotaError
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.offsets import (
    DEBUGGING_REPLICA,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    TIERED,
    ListOffsetsRequest,
    Offsets,
    offsets_of,
)
from kquota.stores.admin.requests import CLUSTER_DENIED
from kquota.stores.admin.wire_format import (
    INT16,
    INT32,
    NO_TAGS,
    OwnMessage,
    TopicEntries,
    after_tags,
    compact,
    compact_length,
    read_text,
    written_text,
)
from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.reading import DirSpace, FutureLog, ReplicaLogs, WantedLogs

_SECONDS: Final = 6.0
"""The time limit of each request in seconds. It is short, so that a watch with its usual interval of 5 s needs at most
15 s to report that a broker does not answer.
"""
_OLDEST, _NEWEST = 2, 4
"""The first and the last version that kquota sends. Version 5 only adds whether a log dir is cordoned."""
_WITH_ERROR: Final = 3
_WITH_SPACE: Final = 4
_ENTRIES: Final = TopicEntries(">iq8xB")
_SPACE: Final = struct.Struct(">qq")
"""The bytes of a log dir's volume: total and usable."""


class WireReplicaLogs:
    """The logs of replicas. Implements `LogReader`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._sizes = _Requests(attrgetter("sizes"), sizes_of)
        self._ends = _Requests(attrgetter("ends"), lambda topic, those: offsets_of(topic, those, LATEST))

    def read(self, wanted: Sequence[WantedLogs], brokers: Collection[BrokerId]) -> ReplicaLogs:
        asked = {b: LogSizesRequest(those) for b, those in self._sizes.encoded(wanted).items() if b in brokers}
        sizes = self._wire.ask_each(asked, _SECONDS)
        silent = {broker: str(answer) for broker, answer in sizes.items() if isinstance(answer, KquotaError)}
        by_dir: dict[tuple[BrokerId, str], dict[str, dict[int, int]]] = {}
        futures: dict[ReplicaId, FutureLog] = {}
        dirs: dict[tuple[BrokerId, str], DirSpace] = {}
        for broker, answer in sizes.items():
            if isinstance(answer, KquotaError):
                continue
            if answer.error_code or not answer.results:
                # Before version 3, an answer without log dirs means that the user lacks a permission.
                silent[broker] = f"DescribeLogDirs failed: {kafka_error(answer.error_code or CLUSTER_DENIED, None)}"
                continue
            for found in answer.results:
                dirs[broker, found.path] = _space(found)
                by_dir[broker, found.path] = _logs(broker, found, futures)
        return ReplicaLogs(
            by_dir=by_dir, ends=self._read_ends(wanted, brokers, silent), futures=futures, dirs=dirs, silent=silent
        )

    def starts(self, wanted: Mapping[BrokerId, Collection[TopicPartition]]) -> dict[BrokerId, Offsets]:
        timestamp = EARLIEST_LOCAL if self._wire.oldest() >= TIERED else EARLIEST
        asked = {}
        for broker, names in wanted.items():
            topics: defaultdict[str, list[int]] = defaultdict(list)
            for topic, number in sorted(names):
                topics[topic].append(number)
            asked[broker] = ListOffsetsRequest.of(topics, timestamp, DEBUGGING_REPLICA)
        answers = self._wire.ask_each(asked, _SECONDS)
        return {broker: one.offsets for broker, one in answers.items() if not isinstance(one, KquotaError)}

    def _read_ends(
        self, wanted: Sequence[WantedLogs], brokers: Collection[BrokerId], silent: dict[BrokerId, str]
    ) -> dict[BrokerId, Offsets]:
        """Return the end offsets of the logs by broker. Also add to `silent` each broker that does not answer, with the
        reason.
        """
        asked = {
            broker: ListOffsetsRequest(topics, LATEST, DEBUGGING_REPLICA)
            for broker, topics in self._ends.encoded(wanted).items()
            if broker in brokers and broker not in silent
        }
        ends: dict[BrokerId, Offsets] = {}
        for broker, answer in (self._wire.ask_each(asked, _SECONDS) if asked else {}).items():
            if isinstance(answer, KquotaError):
                silent[broker] = str(answer)
            else:
                ends[broker] = answer.offsets
        return ends


class _Requests:
    """The encoded topics of one kind of request to each broker. A topic is encoded again only if it has changed."""

    def __init__(
        self,
        partitions: Callable[[WantedLogs], Mapping[BrokerId, Sequence[int]]],
        encode: Callable[[str, Sequence[int]], bytes],
    ) -> None:
        self._partitions = partitions
        self._encode = encode
        self._known: dict[str, tuple[WantedLogs, Mapping[BrokerId, bytes]]] = {}

    def encoded(self, wanted: Sequence[WantedLogs]) -> dict[BrokerId, list[bytes]]:
        before, self._known = self._known, {}
        found: defaultdict[BrokerId, list[bytes]] = defaultdict(list)
        for one in wanted:
            known = before.get(one.topic)
            if known is None or known[0] is not one:
                known = one, {b: self._encode(one.topic, those) for b, those in self._partitions(one).items()}
            self._known[one.topic] = known
            for broker, topic in known[1].items():
                found[broker].append(topic)
        return dict(sorted(found.items()))


def _logs(broker: BrokerId, found: LogDirSizes, futures: dict[ReplicaId, FutureLog]) -> dict[str, dict[int, int]]:
    """Return the bytes of the logs in a log dir by topic and partition, and add its future logs to `futures`."""
    sizes: dict[str, dict[int, int]] = {}
    for topic, entries in found.topics:
        those = sizes[topic] = {}
        for number, size, future in entries:
            if future:
                futures[TopicPartition(topic, number), broker] = FutureLog(size, found.path)
            else:
                those[number] = size
    return sizes


def _space(found: LogDirSizes) -> DirSpace:
    usable = found.usable
    error = kafka_error(found.error_code, None) if found.error_code else None
    return DirSpace(None if usable is None or usable < 0 else usable, error)


LogEntry: TypeAlias = tuple[int, int, int]
"""The partition, the size in bytes, and a flag: 1 for a future log (a copy between log dirs), or 0. The offset lag of
the log is not read.
"""


class LogDirSizes(NamedTuple):
    """The logs in one log dir."""

    path: str
    error_code: int
    usable: int | None
    """The number of usable bytes on the volume: -1 if the broker does not know it, or None before Kafka 3.3."""
    topics: Sequence[tuple[str, Iterator[LogEntry]]]
    """The name and the entries of each topic. The entries can be read only once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSizes:
    """An answer to DescribeLogDirs. `throttle_time_ms` is the time that the client must wait (KIP-219)."""

    throttle_time_ms: int
    error_code: int
    results: Sequence[LogDirSizes]


class LogSizesRequest(OwnMessage, cluster.DescribeLogDirsRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for the sizes of some replicas of one broker. Its answer is `LogSizes`."""

    RESPONSE = cluster.DescribeLogDirsResponse

    def __init__(self, topics: Sequence[bytes]) -> None:
        """`topics` are encoded by `sizes_of`."""
        super().__init__(min_version=_OLDEST, max_version=_NEWEST)
        self._topics = topics

    def body(self) -> bytes:
        return b"".join([compact_length(len(self._topics)), *self._topics, NO_TAGS])

    def decoded(self, data: bytes) -> LogSizes:
        version = self.API_VERSION
        (throttled,) = INT32.unpack_from(data)
        error, at = 0, INT32.size
        if version >= _WITH_ERROR:
            (error,), at = INT16.unpack_from(data, at), at + INT16.size
        count, at = compact(data, at)
        results = []
        for _ in range(count):
            found, at = _log_dir(data, at, with_space=version >= _WITH_SPACE)
            results.append(found)
        return LogSizes(throttle_time_ms=throttled, error_code=error, results=results)


def sizes_of(topic: str, partitions: Sequence[int]) -> bytes:
    """Encode one topic of a request, with these partitions."""
    count = len(partitions)
    return written_text(topic) + compact_length(count) + struct.pack(f">{count}i", *partitions) + NO_TAGS


def _log_dir(data: bytes, at: int, *, with_space: bool) -> tuple[LogDirSizes, int]:
    (error,) = INT16.unpack_from(data, at)
    path, at = read_text(data, at + INT16.size)
    topics, at = _ENTRIES.read(data, at)
    usable = None
    if with_space:
        (_, usable), at = _SPACE.unpack_from(data, at), at + _SPACE.size
    return LogDirSizes(path, error, usable, topics), after_tags(data, at)
