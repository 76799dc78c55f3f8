"""The interface to the logs of replicas. `tests/watch/contract.py` defines it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kquota.terms import BrokerId, TopicPartition
from kquota.watch.reading import LogNumbers, ReplicaLogs, WantedLogs


class LogReader(Protocol):
    """The logs of replicas on one cluster's brokers. ZooKeeper does not store them."""

    def read(self, wanted: Sequence[WantedLogs], brokers: Collection[BrokerId]) -> ReplicaLogs:
        """Return the wanted logs of these brokers. Each topic is in `wanted` at most once.

        A broker whose sizes or log end offsets are unknown is in `silent`, with the reason. `dirs` has all log dirs of
        each broker that reported sizes, including log dirs that contain none of these replicas.
        """

    def starts(self, wanted: Mapping[BrokerId, Collection[TopicPartition]]) -> LogNumbers:
        """Return the first offset on the disks of each broker for these partitions. Unknown offsets are left out."""
