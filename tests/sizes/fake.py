"""Three brokers' log dirs in memory. Gaps: every replica is in sync, no log dir fails, logs only grow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kquota.sizes.replica import LogDir, Replica
from kquota.terms import BrokerId, TopicPartition


@dataclass
class Log:
    """A partition: its replicas, leader first, and what was written to it."""

    replicas: list[int]
    messages: int = 0
    bytes: int = 0
    local_start: int = 0
    pending: int | None = None


@dataclass
class FakeLogDirs:
    """The port and its stage in one."""

    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    cluster_id: str = "fake"

    @property
    def log_dirs(self) -> FakeLogDirs:
        return self

    def topic(self, name: str, assignment: list[list[int]]) -> None:
        for number, replicas in enumerate(assignment):
            self.logs[TopicPartition(name, number)] = Log(replicas)

    def write(self, partition: TopicPartition, messages: int, size: int) -> None:
        log = self.logs[partition]
        log.messages += messages
        log.bytes += messages * size

    def offload(self, partition: TopicPartition, messages: int) -> None:
        """Moves the oldest local messages to remote storage. All messages of the partition have the same size."""
        log = self.logs[partition]
        log.bytes -= messages * log.bytes // (log.messages - log.local_start)
        log.local_start += messages
        log.pending = max(log.pending or 0, log.local_start)

    def upload(self, partition: TopicPartition, messages: int) -> None:
        """Copies the oldest messages to remote storage, and keeps them."""
        self.logs[partition].pending = messages

    def brokers(self) -> Mapping[BrokerId, str | None]:
        return {BrokerId(number): f"rack-{number}" for number in (1, 2, 3)}

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        return [
            LogDir(
                broker=broker,
                rack=self.brokers()[broker],
                path=f"/{letter}",
                error=None,
                volume_total=10**9,
                volume_usable=10**8,
                replicas=tuple(
                    Replica(partition=partition, size=log.bytes, offset_lag=0, future=False)
                    for partition, log in sorted(self.logs.items())
                    if broker in log.replicas
                    and letter == "ab"[partition.partition % 2]
                    and (topics is None or partition.topic in topics)
                ),
            )
            for broker in sorted(brokers)
            for letter in "ab"
        ]

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        return [
            replace(
                log_dir,
                replicas=tuple(
                    replica._replace(
                        start_offset=0 if self.logs[replica.partition].replicas[0] == log_dir.broker else None,
                        local_start_offset=self.logs[replica.partition].local_start,
                        end_offset=self.logs[replica.partition].messages,
                        leader=self.logs[replica.partition].replicas[0] == log_dir.broker,
                        in_sync=True,
                    )
                    for replica in log_dir.replicas
                ),
            )
            for log_dir in log_dirs
        ]

    def pending(self, log_dirs: list[LogDir]) -> Mapping[TopicPartition, int]:
        return {name: log.pending for name, log in self.logs.items() if log.pending is not None}
