"""Kafka's wire format: requests and answers with many similar entries, which kquota encodes and decodes itself.

kafka-python creates an object for each entry and reads it field by field. For the 100,000 partitions of a large
cluster, this takes seconds. Here, one `struct` reads all fixed fields of an entry. kquota uses only flexible versions
of these messages (KIP-482), with compact lengths and tagged fields. Since Kafka 2.8, each of them has such a version.

Every function and method that reads an answer raises ValueError, IndexError or struct.error if the answer is malformed.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar
from uuid import UUID

from kafka.protocol.api_header import RequestHeader

from kquota.terms import BrokerId, TopicPartition

_Topic = TypeVar("_Topic")

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
NO_TAGS: Final = b"\0"
"""The number of tagged fields (none) at the end of each structure that kquota writes."""


class _Header(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    """The header of a request that decodes its own answer."""

    def __init__(self, request: OwnAnswer, **fields: Any) -> None:
        super().__init__(**fields)
        self._request = request

    def get_response_class(self) -> Any:
        return _Answered(self._request)


class OwnAnswer:
    """A request that decodes its own answer. The next base of a subclass must be a request class of kafka-python."""

    RESPONSE: ClassVar[Any]
    """kafka-python's class of the answer. kquota uses it only to decode the header of the answer."""
    API_VERSION: int

    def header_class(self, **fields: Any) -> _Header:
        """Return the header of the request. It also gives kafka-python the decoder of the answer."""
        return _Header(self, **fields)

    def decoded(self, data: bytes) -> Any:
        """Decode the answer after its header."""
        raise NotImplementedError


class OwnMessage(OwnAnswer):
    """A request that encodes itself and decodes its own answer."""

    encode_header: Callable[..., bytes]

    def body(self) -> bytes:
        """Return the bytes of the request after its header."""
        raise NotImplementedError

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> bytes:
        """Return the bytes of the request, as kafka-python's method does.

        `version` is None or `API_VERSION`. With `header`, the header is included. With `framed`, the bytes begin with
        the length of the rest.
        """
        assert version is None or version == self.API_VERSION
        body = self.body()
        if header:
            body = self.encode_header(flexible=True) + body
        return INT32.pack(len(body)) + body if framed else body


class _Answered:
    """The decoder of one answer. It replaces kafka-python's response class."""

    def __init__(self, request: OwnAnswer) -> None:
        self._request = request

    def parse_header(self, buffer: Any) -> Any:
        return self._request.RESPONSE[self._request.API_VERSION].parse_header(buffer)

    def decode(self, buffer: Any) -> Any:
        """Decode the answer. Raises ValueError or struct.error if it is malformed, as kafka-python's classes do."""
        try:
            return self._request.decoded(buffer.read())
        except IndexError as error:
            raise ValueError("the answer is truncated") from error


def exactly(data: bytes, start: int, end: int) -> bytes:
    """Return `data[start:end]`, which must be complete."""
    if not start <= end <= len(data):
        raise ValueError("the answer is truncated")
    return data[start:end]


def compact_length(length: int) -> bytes:
    """Encode the length of a compact string or array: an unsigned varint of the length plus 1."""
    if length < len(_SHORT):
        return _SHORT[length]
    value, encoded = length + 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


_SHORT: Final = [bytes([length + 1]) for length in range(0x7F)]
"""All compact lengths of one byte. They are encoded in advance, because most lengths are short."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return found, at
    raise ValueError("the answer has an invalid length")


def compact(data: bytes, at: int) -> tuple[int, int]:
    """Return the length of the compact string or array at this position, and the position after the length. Raises
    ValueError for null.
    """
    if 0 < data[at] < 0x80:  # most lengths have one byte
        return data[at] - 1, at + 1
    found, at = _varint(data, at)
    if not found:
        raise ValueError("the answer has no value where a value is required")
    return found - 1, at


def after_tags(data: bytes, at: int) -> int:
    """Return the position after the tagged fields at this position. Their values are ignored."""
    if data[at] == 0:
        return at + 1
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
    exactly(data, at, at)
    return at


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """Return the compact string at this position, and the position after it. Raises ValueError for null."""
    length, start = compact(data, at)
    at = start + length
    return exactly(data, start, at).decode(), at


def written_text(value: str) -> bytes:
    """Encode a text as a compact string."""
    encoded = value.encode()
    return compact_length(len(encoded)) + encoded


class TopicEntries:
    """A reader for an array of topics, each with its name and an array of entries. All fields of an entry have a fixed
    size.
    """

    def __init__(self, fields: str) -> None:
        """`fields` are the fields of an entry, in the format of `struct`."""
        self._entry = struct.Struct(f"{fields}x")  # the last byte is the number of tagged fields

    def read(self, data: bytes, at: int) -> tuple[list[tuple[str, Iterator[tuple[Any, ...]]]], int]:
        """Return the name and entries of each topic in the array at this position, and the position after the array.

        The entries of a topic can be read only once, and must not have tagged fields. For speed, the loop calls almost
        no function, because a broker may have replicas of very many topics.
        """
        size, entries_of, end = self._entry.size, self._entry.iter_unpack, len(data)
        topics: list[tuple[str, Iterator[tuple[Any, ...]]]] = []
        count, at = compact(data, at)
        for _ in range(count):
            length = data[at]
            if 0 < length < 0x80:
                start, at = at + 1, at + length
            else:
                length, start = compact(data, at)
                at = start + length
            name = data[start:at].decode()
            entries = data[at]
            if 0 < entries < 0x80:
                first, at = at + 1, at + 1 + (entries - 1) * size
            else:
                entries, first = compact(data, at)
                at = first + entries * size
            if at > end:
                raise ValueError("the answer is truncated")
            if data[first + size - 1 : at : size].strip(NO_TAGS):
                raise ValueError("an entry of the answer has tagged fields")
            topics.append((name, entries_of(data[first:at])))
            at = at + 1 if data[at] == 0 else after_tags(data, at)
        return topics, at


class TopicCache(Generic[_Topic]):
    """The topics of repeated answers to one kind of request. A topic is decoded again only if its bytes or the version
    of the answer have changed.

    An encoded topic shows where it ends, so the same bytes are the same topic.
    """

    def __init__(self, decode: Callable[[bytes, int, int], tuple[_Topic, int]], *, name_at: int) -> None:
        """`decode` gets an answer, a position and the version. It returns the topic there, and the position after it.

        `name_at` is the number of bytes in a topic before its name.
        """
        self._decode = decode
        self._name_at = name_at
        self._version: int | None = None
        self._known: dict[bytes, tuple[bytes, _Topic]] = {}

    def read(self, data: bytes, at: int, version: int, *, complete: bool) -> list[_Topic]:
        """Return the topics of the array at this position. With `complete`, the cache forgets all other topics."""
        known = self._known if version == self._version else {}
        found: dict[bytes, tuple[bytes, _Topic]] = {}
        topics: list[_Topic] = []
        count, at = compact(data, at)
        for _ in range(count):
            length, start = compact(data, at + self._name_at)
            name = data[start : start + length]
            same = known.get(name)
            if same is None or not data.startswith(same[0], at):
                topic, end = self._decode(data, at, version)
                same = data[at:end], topic
            found[name] = same
            topics.append(same[1])
            at += len(same[0])
        self._known = found if complete else known | found
        self._version = version
        return topics


def optional_text(data: bytes, at: int) -> tuple[str | None, int]:
    """Return the compact string at this position (None for null), and the position after it."""
    return (None, at + 1) if data[at] == 0 else read_text(data, at)


def broker_ids(data: bytes, at: int) -> tuple[tuple[BrokerId, ...], int]:
    """Return the compact array of broker ids at this position, and the position after it.

    Raises ValueError for null.
    """
    count, at = compact(data, at)
    end = at + INT32.size * count
    encoded = exactly(data, at, end)
    return (_shared_ids if count <= _MOST_REPLICAS else _ids)(encoded), end


def _ids(encoded: bytes) -> tuple[BrokerId, ...]:
    return struct.unpack(f">{len(encoded) // INT32.size}i", encoded)


_shared_ids: Final = functools.lru_cache(maxsize=16_384)(_ids)
"""`_ids` with a cache. Partitions with the same list of brokers share one tuple, which saves half of their memory."""
_MOST_REPLICAS: Final = 16
"""The largest number of broker ids in a shared array. The limit keeps the memory of the cache small."""


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of the partitions of each topic, in the given order."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for name in partitions:
        found[name.topic].append(name.partition)
    return dict(found)


def printed_id(topic_id: UUID | None) -> str | None:
    """Return a topic id as Kafka prints it, in URL-safe base64. None and all zeros, which mean no id (for example
    before Kafka 2.8), give None.

    >>> printed_id(UUID("69b28804-fcac-4fac-b2eb-0da8b64e2ada"))
    'abKIBPysT6yy6w2otk4q2g'
    """
    if topic_id is None or not topic_id.int:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
