"""A topic: its current state, and the requests to create, grow and delete it with their cost (KIP-599)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.terms import BrokerId

Brokers = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The current state of one partition of a topic."""

    number: int
    leader: BrokerId | None
    """None if the partition has no leader."""
    replicas: Brokers
    """The replicas, the preferred leader first. During a reassignment, these include the replicas in `adding` and
    `removing`.
    """
    isr: Brokers
    elr: Brokers | None = None
    """The eligible leader replicas (KIP-966). None if they were not read, as before Kafka 4.0."""
    last_known_elr: Brokers | None = None
    """The last known eligible leader replicas. None if they were not read, as before Kafka 4.0."""
    adding: Brokers = ()
    """The replicas that a running reassignment adds."""
    removing: Brokers = ()
    """The replicas that a running reassignment removes."""

    @property
    def under_replicated(self) -> bool:
        """True if fewer replicas are in sync than `replication_factor`, as in Kafka's TopicCommand."""
        return len(self.isr) < self.replication_factor

    @property
    def replication_factor(self) -> int:
        """The number of replicas, without replicas that are being added, as in Kafka's tool."""
        return len(self.replicas) - len(self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic with its partitions in ascending order. `id` is None before Kafka 2.8 (KIP-516)."""

    name: str
    id: str | None
    internal: bool
    partitions: tuple[Partition, ...]

    @property
    def replication_factor(self) -> int:
        """The replication factor of the first partition, as in Kafka's tool, or 0 without partitions."""
        return self.partitions[0].replication_factor if self.partitions else 0


Assignment = Mapping[int, Brokers]
"""The replicas of each partition, the preferred leader first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A topic to create.

    `partitions` and `replication_factor` are None if `assignment` is set. Without an assignment, None means the
    broker's default (from Kafka 2.4).
    """

    topic: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Assignment | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    default_partitions: int = 1
    """The number of partitions that the broker's default will probably give. kquota does not send this number."""

    @property
    def mutations(self) -> int:
        """The number of mutations: one for each partition."""
        return len(self.assignment) if self.assignment else self.partitions or self.default_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A topic that has `now` partitions and gets `partitions` in total. `assignment` covers only the new partitions.

    `now` is 0 if the topic does not exist.
    """

    topic: str
    partitions: int
    now: int
    assignment: Assignment | None = None

    @property
    def mutations(self) -> int:
        """The number of mutations: one for each new partition, and at least one."""
        return max(1, self.partitions - self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A topic to delete, with its number of partitions, or 0 if the topic does not exist."""

    topic: str
    partitions: int

    @property
    def mutations(self) -> int:
        """The number of mutations: one for each partition, and at least one."""
        return max(1, self.partitions)


Mutation = Creation | Growth | Deletion
