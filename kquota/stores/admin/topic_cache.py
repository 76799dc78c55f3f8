"""The topics of repeated answers. A topic is decoded again only if its bytes have changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from kquota.stores.admin.wire_format import compact

_Topic = TypeVar("_Topic")


class TopicCache(Generic[_Topic]):
    """The topics of the last answers to one kind of request, with their bytes.

    The bytes of a topic show where the topic ends. So if an answer continues with all bytes of a known topic, the topic
    has not changed, and `read` returns the known topic without decoding.
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
        """Return the topics of the array at this position. With `complete`, the cache forgets all other topics.

        Raises ValueError, IndexError or struct.error if the array is malformed.
        """
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
