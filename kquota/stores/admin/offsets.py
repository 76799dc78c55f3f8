"""ListOffsets for many partitions of one broker: a codec of its entries, which all have the same size.

A snapshot of 300,000 replicas asks for 700,000 offsets. kafka-python would need half of the CPU time of the snapshot
for them. Here, one `struct` encodes or decodes a whole entry.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kafka.protocol import consumer

from kquota.stores.admin.wire_format import INT32, Entries, Layout, OwnMessage

LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -4, -6
"""Special timestamps. A broker answers with the end of the log, its start, the start of the local log, or the first
offset that is not yet in remote storage.
"""
CONSUMER: Final = -1
"""The replica id of a consumer. Only the leader answers a consumer."""
DEBUGGING_REPLICA: Final = -2
"""The replica id for requests that a follower also answers, with the offsets of its own log."""
_SINCE: Final = {EARLIEST_LOCAL: 8, PENDING: 11}
"""The version of ListOffsets that added each of these timestamps (KIP-405, KIP-1023)."""
_PLAIN: Final = (4, 5)
"""The versions for all other timestamps. Their entries are like those of later versions, but have no tagged fields.
Every supported broker accepts at least one of these versions.
"""
_WITH_TIMEOUT: Final = 10
_TIMEOUT_MS: Final = 30_000
_REQUEST_ENTRY: Final = struct.Struct(">iiq")
"""An entry of the request: partition, leader epoch, timestamp."""
_ANSWER_ENTRIES: Final = Entries(">ihqqi")
"""The entries of the answer: partition, error code, timestamp, offset, leader epoch."""

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition. A partition without an offset, for example after an error, is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsAnswer:
    """An answer to ListOffsets. `throttle_time_ms` has the same meaning as in KIP-219."""

    throttle_time_ms: int
    offsets: Offsets


class ListOffsetsRequest(OwnMessage, consumer.ListOffsetsRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for one offset of each partition. Its answer is an `OffsetsAnswer`."""

    RESPONSE = consumer.ListOffsetsResponse
    FLEXIBLE = 6

    def __init__(self, partitions: Mapping[str, Collection[int]], timestamp: int, replica_id: int) -> None:
        oldest = _SINCE.get(timestamp)
        least, most = _PLAIN if oldest is None else (oldest, None)
        super().__init__(replica_id=replica_id, min_version=least, max_version=most)
        self.partitions = partitions
        self.timestamp = timestamp

    def body(self) -> bytes:
        layout = self.layout
        numbers = {number for those in self.partitions.values() for number in those}
        entries = {number: _REQUEST_ENTRY.pack(number, -1, self.timestamp) + layout.end for number in numbers}
        pieces = [struct.pack(">ib", self.replica_id, 0), layout.array(len(self.partitions))]
        for topic, those in self.partitions.items():
            pieces += [layout.written_text(topic), layout.array(len(those))]
            pieces += map(entries.__getitem__, those)
            pieces.append(layout.end)
        if self.API_VERSION >= _WITH_TIMEOUT:
            pieces.append(INT32.pack(_TIMEOUT_MS))
        return b"".join([*pieces, layout.end])

    def decoded(self, data: bytes) -> OffsetsAnswer:
        return _decoded(data, self.layout)


def _decoded(data: bytes, layout: Layout) -> OffsetsAnswer:
    (throttled,) = INT32.unpack_from(data)
    topics, at = layout.array_length(data, INT32.size)
    found: dict[str, dict[int, int]] = {}
    for _ in range(topics):
        name, at = layout.read_text(data, at)
        entries, at = _ANSWER_ENTRIES.read(data, at, layout)
        found[name] = {number: offset for number, error, _, offset, _ in entries if error == 0 and offset >= 0}
        at = layout.after(data, at)
    return OffsetsAnswer(throttle_time_ms=throttled, offsets=found)
