"""One log dir of one broker and its replicas, as in DescribeLogDirs (KIP-113, KIP-827)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The log of one replica. Sizes in bytes; None always means that the cluster did not report it, never zero.

    Only leaders report where their log starts.
    """

    partition: TopicPartition
    size: int
    offset_lag: int
    future: bool
    end_offset: int | None = None
    start_offset: int | None = None
    leader: bool | None = None
    in_sync: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDir:
    """One log dir: its volume's total and usable bytes (None below Kafka 3.3), or the error that hides its replicas."""

    broker: BrokerId
    rack: str | None
    path: str
    error: str | None
    volume_total: int | None
    volume_usable: int | None
    replicas: tuple[Replica, ...]


def hidden(log_dirs: Iterable[LogDir]) -> Iterator[str]:
    """A warning for each log dir that its broker cannot read, because its replicas are missing in all sums."""
    for log_dir in log_dirs:
        if log_dir.error is not None:
            yield f"broker {log_dir.broker} cannot read {log_dir.path}, so its replicas are missing: {log_dir.error}"
