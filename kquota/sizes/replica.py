"""One log dir of one broker and the replicas in it, as DescribeLogDirs tells them (KIP-113, KIP-827)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica's log. Sizes in bytes; None is always "the cluster did not tell", never zero.

    Only a leader tells where its log starts.
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
    """A warning for each log dir of which its broker tells nothing: to whoever counts, its replicas are nowhere."""
    for log_dir in log_dirs:
        if log_dir.error is not None:
            yield f"broker {log_dir.broker} cannot read {log_dir.path}, so its replicas are missing: {log_dir.error}"
