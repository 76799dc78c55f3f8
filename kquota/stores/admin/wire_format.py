"""Kafka's wire format: requests and answers with many similar entries, which kquota encodes and decodes itself.

kafka-python creates an object for each entry and reads it field by field. For the 100,000 partitions of a large
cluster, this takes seconds. Here, one `struct` reads all fixed fields of an entry. A flexible version of a message
(KIP-482) has compact lengths and tagged fields, a plain version has neither.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

from kafka.protocol.api_header import RequestHeader

from kquota.terms import BrokerId

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")


class _Header(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    """The header of a request that decodes its own answer."""

    def __init__(self, request: OwnAnswer, **fields: Any) -> None:
        super().__init__(**fields)
        self._request = request

    def get_response_class(self) -> Any:
        return _Answered(self._request)


class OwnAnswer:
    """A request that decodes its own answer. A request class of kafka-python must follow it in the bases."""

    RESPONSE: ClassVar[Any]
    """kafka-python's class of the answer, which decodes its header."""
    API_VERSION: int

    def header_class(self, **fields: Any) -> _Header:
        """Return the header, from which kafka-python learns how to decode the answer."""
        return _Header(self, **fields)

    def decoded(self, data: bytes) -> Any:
        """Decode the answer after its header. Raises ValueError, IndexError or struct.error if it is malformed."""
        raise NotImplementedError


class OwnMessage(OwnAnswer):
    """A request that also encodes itself."""

    FLEXIBLE: ClassVar[int]
    """The first flexible version."""
    encode_header: Callable[..., bytes]

    @property
    def flexible(self) -> bool:
        """True if the negotiated version is flexible."""
        return self.API_VERSION >= self.FLEXIBLE

    @property
    def layout(self) -> Layout:
        """The layout of the negotiated version."""
        return FLEXIBLE if self.flexible else PLAIN

    def body(self) -> bytes:
        """Return the bytes of the request after its header."""
        raise NotImplementedError

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> bytes:
        """Return the bytes of the request, as kafka-python's method does."""
        assert version is None or version == self.API_VERSION
        body = self.body()
        if header:
            body = self.encode_header(flexible=self.flexible) + body
        return INT32.pack(len(body)) + body if framed else body


class _Answered:
    """The decoder of one answer. It replaces kafka-python's response class."""

    def __init__(self, request: OwnAnswer) -> None:
        self._request = request

    def parse_header(self, buffer: Any) -> Any:
        return self._request.RESPONSE[self._request.API_VERSION].parse_header(buffer)

    def decode(self, buffer: Any) -> Any:
        """Decode the answer. Raises ValueError or struct.error, as kafka-python's classes do."""
        try:
            return self._request.decoded(buffer.read())
        except IndexError as error:
            raise ValueError("the answer is truncated") from error


def exactly(data: bytes, start: int, end: int) -> bytes:
    """Return `data[start:end]`. Raises ValueError if the data is too short."""
    if not start <= end <= len(data):
        raise ValueError("the answer is truncated")
    return data[start:end]


def unsigned(value: int) -> bytes:
    """Encode a number as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compact_length(length: int) -> bytes:
    """Encode the length of a compact string or array: an unsigned varint of the length plus 1."""
    return _SHORT[length] if length < len(_SHORT) else unsigned(length + 1)


_SHORT: Final = [bytes([length + 1]) for length in range(0x7F)]
"""The compact lengths of one byte, because most lengths are short."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned varint at this position, and the position after it."""
    found = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return found, at
    raise ValueError("the answer has an invalid length")


def compact(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of the compact string or array at this position, and the position after the length.

    Raises ValueError for null.
    """
    if 0 < data[at] < 0x80:  # most lengths have one byte
        return data[at] - 1, at + 1
    found, at = varint(data, at)
    if not found:
        raise ValueError("the answer has no value where a value is required")
    return found - 1, at


def _plain_array(data: bytes, at: int) -> tuple[int, int]:
    return INT32.unpack_from(data, at)[0], at + INT32.size


def _plain_text(data: bytes, at: int) -> tuple[int, int]:
    return INT16.unpack_from(data, at)[0], at + INT16.size


def after_tags(data: bytes, at: int) -> int:
    """Return the position after the tagged fields at this position. Their values are ignored."""
    if data[at] == 0:
        return at + 1
    count, at = varint(data, at)
    for _ in range(count):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
    exactly(data, at, at)
    return at


class Layout(NamedTuple):
    """How the versions of a message write the length of an array and of a text, and the end of a structure.

    `array_length` and `text_length` return the length at a position, and the position after it. `after` returns the
    position after the end of a structure.
    """

    array: Callable[[int], bytes]
    text: Callable[[int], bytes]
    array_length: Callable[[bytes, int], tuple[int, int]]
    text_length: Callable[[bytes, int], tuple[int, int]]
    end: bytes
    after: Callable[[bytes, int], int]

    def read_text(self, data: bytes, at: int) -> tuple[str, int]:
        """Return the text at this position, and the position after it."""
        length, start = self.text_length(data, at)
        at = start + length
        if length < 0 or at > len(data):
            raise ValueError("the answer is truncated")
        return data[start:at].decode(), at

    def written_text(self, value: str) -> bytes:
        """Return the bytes of a text."""
        encoded = value.encode()
        return self.text(len(encoded)) + encoded


PLAIN: Final = Layout(INT32.pack, INT16.pack, _plain_array, _plain_text, b"", lambda _, at: at)
FLEXIBLE: Final = Layout(compact_length, compact_length, compact, compact, b"\0", after_tags)
"""The end of a structure is the number of its tagged fields."""


class Entries:
    """The entries of an array, if all fields of an entry have a fixed size."""

    def __init__(self, fields: str) -> None:
        """`fields` are the fields of an entry, in the format of `struct`."""
        self._plain = struct.Struct(fields)
        self._flexible = struct.Struct(f"{fields}x")  # the last byte is the number of tagged fields

    def read(self, data: bytes, at: int, layout: Layout) -> tuple[Iterator[tuple[Any, ...]], int]:
        """Return the entries of the array at this position, and the position after it. Raises ValueError for an entry
        with tagged fields.
        """
        entry = self._flexible if layout is FLEXIBLE else self._plain
        count, first = layout.array_length(data, at)
        at = first + count * entry.size
        entries = exactly(data, first, at)
        if layout is FLEXIBLE and entries[self._plain.size :: entry.size].strip(FLEXIBLE.end):
            raise ValueError("an entry of the answer has tagged fields")
        return entry.iter_unpack(entries), at


def optional_text(data: bytes, at: int) -> tuple[str | None, int]:
    """Return the compact string or null at this position, and the position after it."""
    return (None, at + 1) if data[at] == 0 else FLEXIBLE.read_text(data, at)


def broker_ids(data: bytes, at: int) -> tuple[tuple[BrokerId, ...], int]:
    """Return the compact array of broker ids at this position, and the position after it."""
    count, at = compact(data, at)
    end = at + INT32.size * count
    encoded = exactly(data, at, end)
    return (_shared_ids if count <= _MOST_REPLICAS else _ids)(encoded), end


def _ids(encoded: bytes) -> tuple[BrokerId, ...]:
    return struct.unpack(f">{len(encoded) // INT32.size}i", encoded)


_shared_ids: Final = functools.lru_cache(maxsize=16_384)(_ids)
"""Partitions on the same brokers share one object, which saves half of their memory."""
_MOST_REPLICAS: Final = 16
"""Longer arrays are not shared, so that the shared ones take a limited amount of memory."""
