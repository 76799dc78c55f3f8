"""DescribeLogDirs for many replicas of one broker: a codec of its entries, which all have the same size."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from kafka.protocol.admin import cluster

from kquota.stores.admin.wire_format import INT16, INT32, Entries, Layout, OwnMessage

_NEWEST: Final = 4
"""Version 5 adds only whether a log dir is cordoned."""
_WITH_ERROR: Final = 3
_WITH_SPACE: Final = 4
_ENTRIES: Final = Entries(">iqqB")
_SPACE: Final = struct.Struct(">qq")
"""The bytes of a log dir's volume: total, usable."""

LogEntry: TypeAlias = tuple[int, int, int, int]
"""The partition, the size in bytes, the offset lag, and 1 for a copy between log dirs (a future log), otherwise 0."""


class LogDirSizes(NamedTuple):
    """The logs in one log dir, with the name of each topic.

    `usable` are the usable bytes of its volume, or -1 if the broker does not know them. None before Kafka 3.3.
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
    FLEXIBLE = 2

    def __init__(self, partitions: Mapping[str, Collection[int]]) -> None:
        super().__init__(max_version=_NEWEST)
        self.partitions = partitions

    def body(self) -> bytes:
        layout = self.layout
        pieces = [layout.array(len(self.partitions))]
        for topic, numbers in self.partitions.items():
            count = len(numbers)
            pieces += [layout.written_text(topic), layout.array(count), struct.pack(f">{count}i", *numbers), layout.end]
        return b"".join([*pieces, layout.end])

    def decoded(self, data: bytes) -> LogSizes:
        layout, version = self.layout, self.API_VERSION
        (throttled,) = INT32.unpack_from(data)
        error, at = 0, INT32.size
        if version >= _WITH_ERROR:
            (error,), at = INT16.unpack_from(data, at), at + INT16.size
        count, at = layout.array_length(data, at)
        results = []
        for _ in range(count):
            found, at = _result(data, at, layout, with_space=version >= _WITH_SPACE)
            results.append(found)
        return LogSizes(throttle_time_ms=throttled, error_code=error, results=results)


def _result(data: bytes, at: int, layout: Layout, *, with_space: bool) -> tuple[LogDirSizes, int]:
    """Return the log dir at this position, and the position after it."""
    (error,) = INT16.unpack_from(data, at)
    path, at = layout.read_text(data, at + INT16.size)
    count, at = layout.array_length(data, at)
    topics: list[tuple[str, Iterator[LogEntry]]] = []
    for _ in range(count):
        name, at = layout.read_text(data, at)
        entries, at = _ENTRIES.read(data, at, layout)
        at = layout.after(data, at)
        topics.append((name, entries))
    usable = None
    if with_space:
        (_, usable), at = _SPACE.unpack_from(data, at), at + _SPACE.size
    return LogDirSizes(path, error, usable, topics), layout.after(data, at)
