"""ListOffsets for many partitions of one broker: a codec for entries that all have the same size.

A snapshot of 300,000 replicas asks for 700,000 offsets. kafka-python would need half of the CPU time of the snapshot
for them. Here, one `struct` encodes or decodes a whole entry.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from kafka.protocol import consumer

from kquota.stores.admin.wire_format import INT32, NO_TAGS, OwnMessage, TopicEntries, compact_length, written_text
from kquota.terms import TopicPartition

LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -4, -6
"""Special timestamps. `LATEST` is for the end of the log, `EARLIEST` for its start, and `EARLIEST_LOCAL` for the start
of the local log. `PENDING` is for the first offset that is not yet in remote storage.
"""
TIERED: Final = (3, 6)
"""The first release with tiered topics (KIP-405) and `EARLIEST_LOCAL`."""
CONSUMER: Final = -1
"""The replica id of a consumer. Only the leader answers a consumer."""
DEBUGGING_REPLICA: Final = -2
"""The replica id for requests that a follower also answers, with the offsets of its own log."""
_OLDEST: Final = 6
_SINCE: Final = {EARLIEST_LOCAL: 8, PENDING: 11}
"""The version of ListOffsets that added each of these timestamps (KIP-405, KIP-1023)."""
_WITH_TIMEOUT: Final = 10
_TIMEOUT_MS: Final = 30_000
_REQUEST_ENTRY: Final = struct.Struct(">iiqB")
"""An entry of the request: partition, leader epoch, timestamp, and the number of tagged fields."""
_ANSWER_ENTRIES: Final = TopicEntries(">ih8xq4x")
"""The entries of the answer: partition, error code and offset. The timestamp and the leader epoch are not read."""

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition. A partition without an offset, for example after an error, is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsAnswer:
    """An answer to ListOffsets. `throttle_time_ms` is the time that the client must wait (KIP-219)."""

    throttle_time_ms: int
    offsets: Offsets


class ListOffsetsRequest(OwnMessage, consumer.ListOffsetsRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for one offset of each partition. Its answer is an `OffsetsAnswer`."""

    RESPONSE = consumer.ListOffsetsResponse

    def __init__(self, topics: Sequence[bytes], timestamp: int, replica_id: int, *, committed: bool = False) -> None:
        """`topics` are encoded by `offsets_of` with the same timestamp. `replica_id` is `CONSUMER` or
        `DEBUGGING_REPLICA`.

        For `CONSUMER`, `LATEST` means the high watermark or, with `committed`, the last stable offset (KIP-98). The
        last stable offset is the offset at which the first open transaction begins, or the high watermark if no
        transaction is open.
        """
        super().__init__(replica_id=replica_id, min_version=_SINCE.get(timestamp, _OLDEST))
        self._topics = topics
        self._committed = committed

    @classmethod
    def of(
        cls, partitions: Mapping[str, Sequence[int]], timestamp: int, replica_id: int, *, committed: bool = False
    ) -> Self:
        """Return a request for these partitions of each topic."""
        topics = [offsets_of(topic, those, timestamp) for topic, those in partitions.items()]
        return cls(topics, timestamp, replica_id, committed=committed)

    def body(self) -> bytes:
        head = struct.pack(">ib", self.replica_id, self._committed) + compact_length(len(self._topics))
        limit = INT32.pack(_TIMEOUT_MS) if self.API_VERSION >= _WITH_TIMEOUT else b""
        return b"".join([head, *self._topics, limit, NO_TAGS])

    def decoded(self, data: bytes) -> OffsetsAnswer:
        (throttled,) = INT32.unpack_from(data)
        topics, _ = _ANSWER_ENTRIES.read(data, INT32.size)
        offsets = {
            name: {number: offset for number, error, offset in entries if error == 0 and offset >= 0}
            for name, entries in topics
        }
        return OffsetsAnswer(throttle_time_ms=throttled, offsets=offsets)


def offsets_of(topic: str, partitions: Sequence[int], timestamp: int) -> bytes:
    """Encode one topic of a request, with these partitions and this timestamp."""
    entries = b"".join([_REQUEST_ENTRY.pack(number, -1, timestamp, 0) for number in partitions])
    return written_text(topic) + compact_length(len(partitions)) + entries + NO_TAGS


def by_partition(offsets: Offsets) -> dict[TopicPartition, int]:
    """Return the same offsets by partition."""
    return {
        TopicPartition(topic, number): offset for topic, those in offsets.items() for number, offset in those.items()
    }
