"""The port of a log to which several hosts append, one at a time, and the clock of its lock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kquota.errors import KquotaError, Refused

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that also counts while the machine is suspended.

On Linux, `CLOCK_MONOTONIC` stops during that time. On macOS, which has no `CLOCK_BOOTTIME`, it does not stop.
"""


def now() -> float:
    """Return the seconds since a fixed moment. The value does not decrease until the machine restarts."""
    return time.clock_gettime(_CLOCK)


KeyAndValue: TypeAlias = tuple[str, bytes | None]
"""A key and its value. The value None deletes the key: compaction later removes the older items of this key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record of the log. `value` is None if the record deletes its key."""

    offset: int
    key: str
    value: bytes | None


class Stale(KquotaError):
    """Another kquota appended first, so nothing was appended. The next `read` returns the items of that kquota."""


class Forbidden(Refused):
    """The broker does not let this user see the topic (error 29). The topic may exist, so it never counts as absent."""


class Log(Protocol):
    """The log of one cluster. A reader sees at least the newest item of each key."""

    @property
    def identity(self) -> str:
        """The topic's id as Kafka prints it. A log that was deleted and created again has another id."""

    @property
    def truncated(self) -> bool:
        """True if a read showed that records were deleted from the log other than by compaction."""

    def read(self) -> Sequence[Item]:
        """Return the items appended since the last `read` or `seen`, including those of this process, in order.

        The first call returns all items.

        Raises Unreachable if the brokers do not answer before a deadline, and Forbidden if this user may not see the
        topic. Raises Refused if the topic was deleted or created again, or has a damaged batch.
        """

    def seen(self) -> Sequence[Item]:
        """Return the items that `append` has read since the last `read` or `seen`, including the appended ones.

        Sends no request.
        """

    def append(self, entries: Sequence[KeyAndValue]) -> None:
        """Append the entries as one batch, only if nothing was appended since the last `read`, `seen` or `append`.

        When this method returns, the entries are in the log on all in-sync replicas. By default, Kafka accepts a batch
        of up to about 1 MB. Raises:

        - Stale: another kquota appended first, and none of the entries was appended.
        - Unknown: no answer came before a deadline, or another kquota also appended, so the entries may have been
          appended.
        - Unreachable: no broker accepted the batch in time, and nothing was appended.
        - Forbidden: this user may not see the topic.
        - Refused: the topic was deleted or created again, its last records were deleted, it has a damaged batch, or the
          new batch is larger than the topic accepts.
        """

    def offer(self, entries: Sequence[KeyAndValue]) -> None:
        """Send the entries at most once, without reading them back. A failed write raises nothing.

        If the log has entries that the caller has not seen, nothing is sent. Use this only for entries that are not
        essential. Do not use the log afterwards, because it does not know whether the entries were appended.
        """
