"""Decodes each value of a round only once, because several processes read the same bytes.

These functions of kquota depend on their arguments alone. Each 100th use decodes again and compares the results, which
would show a process that changes a value that others see.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Generic, TypeVar
from unittest.mock import patch

from kquota.stores.record import sheet
from kquota.stores.record import topic as topic_record
from kquota.stores.record.lease import Lock, lock_of
from kquota.stores.record.sheet import Sheet
from kquota.stores.zookeeper import moves, topics
from kquota.stores.zookeeper.znode import Node

T = TypeVar("T")
_CHECKED: Final = 100
"""The number of uses of a remembered value, of which one decodes again."""


class Remembered(Generic[T]):
    """Decoded values, by the bytes from which they were decoded. Errors are not remembered."""

    def __init__(self) -> None:
        self._values: dict[Hashable, T] = {}
        self._uses = 0

    def of(self, key: Hashable, decode: Callable[[], T]) -> T:
        """Return the value of this key, which `decode` returns."""
        if key not in self._values:
            self._values[key] = decode()
            return self._values[key]
        found = self._values[key]
        self._uses += 1
        if self._uses % _CHECKED == 0 and (again := decode()) != found:
            raise AssertionError(f"a process changed {found}, which was decoded as {again}")
        return found


@contextmanager
def decoded_once() -> Iterator[Remembered[Any]]:
    """Decode each sheet, lock and znode only once in the block. A block has one round, so that no round depends on
    another.
    """
    remembered: Remembered[Any] = Remembered()
    decode_sheet, topic_in, leader_and_isr = sheet.decode, topics.topic_in, topics.leader_and_isr

    def decode(data: bytes, run_id: str, cluster_id: str, part: Callable[[str], bytes | None], *, whole: bool) -> Sheet:
        def read() -> Sheet:
            return decode_sheet(data, run_id, cluster_id, part, whole=whole)

        # A sheet with parts depends on more than its arguments.
        return read() if b'"part"' in data else remembered.of(("sheet", data, run_id, cluster_id, whole), read)

    def lock(data: bytes, cluster_id: str) -> Lock:
        found: Lock = remembered.of(("lock", data, cluster_id), lambda: lock_of(data, cluster_id))
        return found

    def of_node(what: str, read: Callable[[Node | None, str], T]) -> Callable[[Node | None, str], T]:
        return lambda node, path: remembered.of((what, node and node.data, path), lambda: read(node, path))

    with ExitStack() as stack:
        stack.enter_context(patch.object(sheet, "decode", decode))
        stack.enter_context(patch.object(topic_record, "lock_of", lock))
        stack.enter_context(patch.object(moves, "topic_in", of_node("topic", topic_in)))
        stack.enter_context(patch.object(moves, "leader_and_isr", of_node("leader", leader_and_isr)))
        yield remembered
