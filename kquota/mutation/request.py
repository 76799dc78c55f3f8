"""What is asked of the controller: one topic each, and what it counts against controller_mutation_rate (KIP-599)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.terms import BrokerId

Assignment = Mapping[int, tuple[BrokerId, ...]]
"""Of each partition its replicas, the preferred leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A topic to be. Partitions and replication factor None: as the broker's default has it (Kafka 2.4).

    `default_partitions` is how many that probably are; it is not sent.
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
    """A topic that is to have `partitions` in all; it has `now` so many. `assignment` is of the new ones."""

    topic: str
    partitions: int
    now: int
    assignment: Assignment | None = None

    @property
    def mutations(self) -> int:
        """The partitions that are new."""
        return max(1, self.partitions - self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A topic that is to go, with its partitions."""

    topic: str
    partitions: int

    @property
    def mutations(self) -> int:
        """Its partitions."""
        return max(1, self.partitions)


Mutation = Creation | Growth | Deletion
