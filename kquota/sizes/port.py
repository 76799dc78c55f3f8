"""The cluster as this room needs it. `tests/sizes/contract.py` defines it, and the fake and the real store pass it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition


class LogDirs(Protocol):
    """The log dirs of one cluster's live brokers."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""
        ...

    def brokers(self) -> Mapping[BrokerId, str | None]:
        """Return the live brokers, each with its rack."""
        ...

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        """The log dirs of `brokers` with the replicas of `topics` (None: of all), sorted, without leaders and offsets.

        Without any topic in `topics`, brokers report only their log dirs, which is much faster.
        Raises Unreachable if one of the brokers does not answer.
        """
        ...

    def detailed(self, log_dirs: list[LogDir]) -> list[LogDir]:
        """Add the details that brokers report: end, start and local start offsets, leaders and in-sync replicas.

        Followers report their end and their local start, but not the start.
        """
        ...

    def pending(self, log_dirs: list[LogDir]) -> Mapping[TopicPartition, int]:
        """The first offset of each tiered partition that remote storage does not have yet, by its leader (KIP-1023).

        `log_dirs` are in detail. Partitions that are not tiered are absent. Needs Kafka 4.3.
        """
        ...
