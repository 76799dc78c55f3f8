"""A log in memory with the broker's compare-and-append, and with the faults that a broker can have."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from kquota.errors import KquotaError, Refused, Unknown, Unreachable
from kquota.stores.state.log import Item, KeyAndValue, Stale


class Fault(Enum):
    """The fault of the next append."""

    NOT_SENT = "nothing is written, Unreachable is raised"
    ANSWER_LOST = "it is written, Unknown is raised"
    NOT_WRITTEN = "nothing is written, Unknown is raised"
    RESOLVED = "it is written, the answer is lost, and the log finds out: nothing is raised"


@dataclass
class MemoryTopic:
    """The state that all handles share. docs/reliability.md lists its gaps."""

    identity: str = field(default_factory=lambda: str(uuid.uuid4()))
    items: list[tuple[int, Item]] = field(default_factory=list)
    """The items, each with the number of its batch."""
    batches: int = 0
    end: int = 0
    unreachable: bool = False
    """True if every call raises Unreachable."""
    truncated: bool = False
    """True if records were deleted other than by compaction."""
    fault: Fault | None = None
    """The fault of the next append that is not stale."""

    def handle(self) -> MemoryLog:
        """Return the same topic as another host sees it."""
        return MemoryLog(self)

    def compact(self) -> None:
        """Keep only the newest item of each key, including deletions."""
        last = {item.key: item.offset for _, item in self.items}
        self.items = [(batch, item) for batch, item in self.items if last[item.key] == item.offset]

    def recreate(self) -> None:
        """Delete the topic, and create it again with the same name."""
        self.identity = str(uuid.uuid4())
        self.items, self.batches, self.end = [], 0, 0
        self.truncated = False

    def truncate(self) -> None:
        """Delete all items except those of the last batch, like retention."""
        self.items = [(batch, item) for batch, item in self.items if batch == self.batches]
        self.truncated = True

    def write(self, entries: Sequence[KeyAndValue]) -> None:
        """Append one batch of any client."""
        self.batches += 1
        for key, value in entries:
            item = Item(offset=self.end, key=key, value=value)
            self.items.append((self.batches, item))
            self.end += 1


class MemoryLog:
    """Implements `Log`."""

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic = topic
        self._identity = topic.identity
        self._offset = 0
        """The offset up to which `read` has returned records."""
        self._fetched = 0
        """The offset up to which this host has received records, including those that an append has found."""
        self._batch = 0
        """The newest batch that the caller has read or appended."""

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def truncated(self) -> bool:
        return self._topic.truncated

    def read(self) -> Sequence[Item]:
        self._check()
        items = [item for _, item in self._topic.items if item.offset >= self._offset]
        self._offset = self._fetched = self._topic.end
        self._batch = self._topic.batches
        return items

    def seen(self) -> Sequence[Item]:
        items = [item for _, item in self._topic.items if self._offset <= item.offset < self._fetched]
        self._offset = self._fetched
        return items

    def append(self, entries: Sequence[KeyAndValue]) -> None:
        self._check()
        if self._batch != self._topic.batches:
            raise Stale("topic fake: another kquota appended first. Nothing was appended")
        if not entries:
            return
        fault, self._topic.fault = self._topic.fault, None
        if fault is Fault.NOT_SENT:
            raise Unreachable("topic fake: no answer. Nothing was appended")
        if fault is not Fault.NOT_WRITTEN:
            self._topic.write(entries)
        if fault in (Fault.ANSWER_LOST, Fault.NOT_WRITTEN):
            raise Unknown("topic fake: no answer. It is unknown whether the record was written")
        self._batch, self._fetched = self._topic.batches, self._topic.end

    def offer(self, entries: Sequence[KeyAndValue]) -> None:
        with suppress(KquotaError):
            self.append(entries)

    def _check(self) -> None:
        if self._topic.unreachable:
            raise Unreachable("topic fake: no answer")
        if self._topic.identity != self._identity:
            raise Refused("topic fake: it was deleted and created again")
