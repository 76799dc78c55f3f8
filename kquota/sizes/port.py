"""The interface to log dirs. `tests/sizes/contract.py` defines its behavior for the fake and for the real store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition


class LogDirs(Protocol):
    """The log dirs of one cluster's live brokers."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, as its brokers report it."""

    def brokers(self) -> Mapping[BrokerId, str | None]:
        """Return the live brokers, each with its rack, or None without a rack."""

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        """Return the log dirs of `brokers`, sorted by broker and path. The leaders and offsets of the replicas are
        unknown.

        The log dirs contain only the replicas of `topics`. None means all topics. If `topics` is empty, brokers report
        only log dirs, which is much faster. Raises Unreachable if one of the brokers does not answer, and Refused if
        one of them answers with an error.
        """

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        """Return `log_dirs` with end, start and local start offsets, leaders and in-sync replicas, as far as brokers
        report them.

        Followers report their end and local start offsets, but not their start offset. Copies between log dirs
        (`future`) are unchanged. Raises Unreachable if one of the brokers does not answer, and Refused if one of them
        does not support a request.
        """

    def pending(self, log_dirs: list[LogDir]) -> Mapping[TopicPartition, int]:
        """Return for each tiered partition the first offset that remote storage does not have yet (KIP-1023).

        Leaders of Kafka 4.3 and newer report these offsets. `log_dirs` come from `detailed`. Partitions that are not
        tiered are absent. Raises the same errors as `detailed`.
        """
