"""The current state of a topic: its partitions, their leaders and in-sync replicas."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.terms import BrokerId

Brokers = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition. `leader` is None if it has none.

    `elr` is the eligible leader replicas (KIP-966), and `last_known_elr` those that were last in sync before; None
    before Kafka 4.0. During a reassignment, `replicas` has all old and new ones, including those in `adding` and
    `removing`.
    """

    number: int
    leader: BrokerId | None
    replicas: Brokers
    isr: Brokers
    elr: Brokers | None = None
    last_known_elr: Brokers | None = None
    adding: Brokers = ()
    removing: Brokers = ()

    @property
    def under_replicated(self) -> bool:
        """True if a replica is out of sync; a replica that is being added does not count (TopicCommand)."""
        return len(self.isr) < self.replication_factor

    @property
    def replication_factor(self) -> int:
        """Its replicas without those that are being added, as Kafka's tool counts them."""
        return len(self.replicas) - len(self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """`id` is None before Kafka 2.8 (KIP-516); partitions in ascending order."""

    name: str
    id: str | None
    internal: bool
    partitions: tuple[Partition, ...]

    @property
    def replication_factor(self) -> int:
        """The replication factor of the first partition, as in Kafka's tool."""
        return self.partitions[0].replication_factor if self.partitions else 0
