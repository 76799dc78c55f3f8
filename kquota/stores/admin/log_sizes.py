"""DescribeLogDirs for many replicas of one broker: a codec for entries that all have the same size."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import kafka.protocol.admin.cluster as cluster

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

_OLDEST, _NEWEST = 2, 4
"""Version 5 adds only whether a log dir is cordoned."""
_WITH_ERROR: Final = 3
_WITH_SPACE: Final = 4
_ENTRIES: Final = TopicEntries(">iq8xB")
_SPACE: Final = struct.Struct(">qq")
"""The bytes of a log dir's volume: total and usable."""

LogEntry: TypeAlias = tuple[int, int, int]
"""The partition, the size in bytes, and a flag: 1 for a future log (a copy between log dirs), or 0. The offset lag in
between is not read.
"""


class LogDirSizes(NamedTuple):
    """The logs in one log dir, with the name of each topic.

    `usable` is the number of usable bytes on the volume of the log dir, or -1 if the broker does not know it. It is
    None before Kafka 3.3.
    """

    path: str
    error_code: int
    usable: int | None
    topics: Sequence[tuple[str, Iterator[LogEntry]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSizes:
    """An answer to DescribeLogDirs. `throttle_time_ms` has the same meaning as in KIP-219."""

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
            found, at = _result(data, at, with_space=version >= _WITH_SPACE)
            results.append(found)
        return LogSizes(throttle_time_ms=throttled, error_code=error, results=results)


def sizes_of(topic: str, partitions: Sequence[int]) -> bytes:
    """Return one topic of a request, with these partitions."""
    count = len(partitions)
    return written_text(topic) + compact_length(count) + struct.pack(f">{count}i", *partitions) + NO_TAGS


def _result(data: bytes, at: int, *, with_space: bool) -> tuple[LogDirSizes, int]:
    """Return the log dir at this position, and the position after it."""
    (error,) = INT16.unpack_from(data, at)
    path, at = read_text(data, at + INT16.size)
    topics, at = _ENTRIES.read(data, at)
    usable = None
    if with_space:
        (_, usable), at = _SPACE.unpack_from(data, at), at + _SPACE.size
    return LogDirSizes(path, error, usable, topics), after_tags(data, at)
