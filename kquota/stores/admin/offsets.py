"""ListOffsets for many partitions of one broker: a codec of its entries, which all have the same size.

A snapshot of 300,000 replicas asks for 700,000 offsets. kafka-python creates an object for each entry and encodes it
field by field, which would take half of the CPU time of the snapshot. Here, one `struct` encodes or decodes a whole
entry.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kafka.protocol import consumer
from kafka.protocol.api_header import RequestHeader

LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -4, -6
"""Special timestamps. A broker answers each of them with the offset that the name describes."""
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
_FLEXIBLE: Final = 6
_WITH_TIMEOUT: Final = 10
_TIMEOUT_MS: Final = 30_000
_REQUEST_ENTRY: Final = struct.Struct(">iiq")
"""An entry of the request: partition, leader epoch, timestamp."""
_ANSWER_ENTRY: Final = struct.Struct(">ihqqi")
"""An entry of the answer: partition, error code, timestamp, offset, leader epoch."""
_TAGGED_ENTRY: Final = struct.Struct(">ihqqix")
"""An entry of the answer in version 6 and newer. Its last byte is the number of its tagged fields."""
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_NO_TAGS: Final = b"\0"

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition. A partition without an offset is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsAnswer:
    """An answer to ListOffsets. `throttle_time_ms` has the same meaning as in KIP-219."""

    throttle_time_ms: int
    offsets: Offsets


class _Header(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    """The header of a request. `_Answered` decodes the answer to this request."""

    def get_response_class(self) -> Any:
        return _Answered(self.request_api_version)


class ListOffsetsRequest(consumer.ListOffsetsRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for one offset of each partition.

    Unlike kafka-python's class, it encodes its topics itself, and its answer is an `OffsetsAnswer`.
    """

    header_class = _Header

    def __init__(self, partitions: Mapping[str, Sequence[int]], timestamp: int, replica_id: int) -> None:
        oldest = _SINCE.get(timestamp)
        least, most = _PLAIN if oldest is None else (oldest, None)
        super().__init__(replica_id=replica_id, min_version=least, max_version=most)
        self.partitions = partitions
        self.timestamp = timestamp

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> bytes:
        assert version is None or version == self.API_VERSION
        head = self.encode_header(flexible=self.API_VERSION >= _FLEXIBLE) if header else b""
        body = head + self._body()
        return _INT32.pack(len(body)) + body if framed else body

    def _body(self) -> bytes:
        version: int = self.API_VERSION
        flexible = version >= _FLEXIBLE
        end = _NO_TAGS if flexible else b""
        numbers = {number for those in self.partitions.values() for number in those}
        entries = {number: _REQUEST_ENTRY.pack(number, -1, self.timestamp) + end for number in numbers}
        count = _compact_length if flexible else _INT32.pack
        pieces = [struct.pack(">ib", self.replica_id, 0), count(len(self.partitions))]
        for topic, those in self.partitions.items():
            name = topic.encode()
            pieces += [_compact_length(len(name)) if flexible else _INT16.pack(len(name)), name, count(len(those))]
            pieces += map(entries.__getitem__, those)
            pieces.append(end)
        if version >= _WITH_TIMEOUT:
            pieces.append(_INT32.pack(_TIMEOUT_MS))
        return b"".join([*pieces, end])


class _Answered:
    """The decoder of one answer. It replaces kafka-python's response class."""

    def __init__(self, version: int) -> None:
        self._class = consumer.ListOffsetsResponse[version]
        self._flexible = version >= _FLEXIBLE

    def parse_header(self, buffer: Any) -> Any:
        return self._class.parse_header(buffer)

    def decode(self, buffer: Any) -> OffsetsAnswer:
        """Decode the answer after its header. Raises ValueError or struct.error, as kafka-python's classes do."""
        data = buffer.read()
        try:
            return _decoded(data, flexible=self._flexible)
        except IndexError as error:
            raise ValueError("the answer is truncated") from error


def _decoded(data: bytes, *, flexible: bool) -> OffsetsAnswer:
    entry = _TAGGED_ENTRY if flexible else _ANSWER_ENTRY
    array, text = (_compact, _compact) if flexible else (_plain_array, _plain_text)
    (throttled,) = _INT32.unpack_from(data)
    topics, at = array(data, 4)
    found: dict[str, dict[int, int]] = {}
    for _ in range(topics):
        length, start = text(data, at)
        name = _exactly(data, start, start + length).decode()
        count, first = array(data, start + length)
        at = first + count * entry.size
        entries = entry.iter_unpack(_exactly(data, first, at))
        found[name] = {number: offset for number, error, _, offset, _ in entries if error == 0 and offset >= 0}
        if flexible:
            if data[at] or data[first + _ANSWER_ENTRY.size : at : entry.size].strip(_NO_TAGS):
                raise ValueError("the answer has tagged fields, but no version up to 11 has any")
            at += 1
    return OffsetsAnswer(throttle_time_ms=throttled, offsets=found)


def _exactly(data: bytes, start: int, end: int) -> bytes:
    """Return data[start:end]. Raises ValueError if the data is too short."""
    if not start <= end <= len(data):
        raise ValueError("the answer is truncated")
    return data[start:end]


def _compact_length(length: int) -> bytes:
    """Return the length of a compact string or array: an unsigned varint of the length plus 1."""
    left, out = length + 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def _plain_array(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of the array at this position, and the position after the length."""
    return _INT32.unpack_from(data, at)[0], at + 4


def _plain_text(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of the string at this position, and the position after the length."""
    return _INT16.unpack_from(data, at)[0], at + 2


def _compact(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of the compact string or array at this position, and the position after the length."""
    found = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            if found < 1:
                break
            return found - 1, at
    raise ValueError("the answer has an invalid length")
