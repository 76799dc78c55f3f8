"""The port of a log that several hosts append to, one at a time: compare-and-append on a compacted topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from kquota.errors import KquotaError, Refused

Entry: TypeAlias = tuple[str, bytes | None]
"""A key and its value. None deletes the key: compaction then removes both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One record of the log. `at` is the broker's append time in UTC: for display, never for a decision."""

    offset: int
    key: str
    value: bytes | None
    at: datetime


class Stale(KquotaError):
    """Another host appended first. Nothing of ours was appended. The next `read` returns what it appended."""


class Forbidden(Refused):
    """The broker does not let this user see the topic (error 29). It may exist: it never counts as absent."""


class Log(Protocol):
    """The log of one cluster. A reader sees, for each key, at least the newest item."""

    @property
    def identity(self) -> str:
        """The topic's id as Kafka prints it. A log that was deleted and made again has another one."""

    def read(self) -> Sequence[Item]:
        """The items appended since the last `read`, our own included, in order; every item that is kept at first.

        Raises Unreachable after a deadline, Refused when the topic is not what it was (deleted, made again, forbidden).
        """

    def seen(self) -> Sequence[Item]:
        """The items that an `append` has come across since the last `read` or `seen`, our own included. Asks nobody."""

    def append(self, entries: Sequence[Entry]) -> None:
        """Append the entries as one batch, only if nothing was appended since the last `read` or `append`.

        When this returns, the entries are in the log and survive the loss of a broker. Raises Stale, with nothing
        appended; Unknown when the outcome cannot be learnt before a deadline; Unreachable when no broker took it in
        time, and nothing was appended; Refused like `read`, and for a batch that is larger than the topic takes. A
        batch of about 900 kB is accepted.
        """

    def offer(self, entries: Sequence[Entry]) -> None:
        """As `append`, but return with the leader's answer, whatever it is: nothing is read back, nothing is repeated.

        For what others can do without. The log is not used afterwards.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTopic:
    """How the record's topic is set up. `configs` holds the values of the keys that matter, None when unreadable."""

    name: str
    identity: str
    partitions: int
    replicas: int
    configs: Mapping[str, str] | None = None
