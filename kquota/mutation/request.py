"""Requests to the controller: one topic each, and its cost for controller_mutation_rate (KIP-599)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.terms import BrokerId

Assignment = Mapping[int, tuple[BrokerId, ...]]
"""The replicas of each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A topic to create. Partitions and replication factor are None for the broker's default (Kafka 2.4).

    `default_partitions` is the probable number of partitions then; it is not sent.
    """

    topic: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Assignment | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    default_partitions: int = 1

    @property
    def mutations(self) -> int:
        """Its partitions."""
        return len(self.assignment) if self.assignment else self.partitions or self.default_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A topic that gets `partitions` in total and has `now`. `assignment` is that of the new partitions."""

    topic: str
    partitions: int
    now: int
    assignment: Assignment | None = None

    @property
    def mutations(self) -> int:
        """Its new partitions."""
        return max(1, self.partitions - self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A topic to delete, with its partitions."""

    topic: str
    partitions: int

    @property
    def mutations(self) -> int:
        """Its partitions."""
        return max(1, self.partitions)


Mutation = Creation | Growth | Deletion
