"""A topic as it stands: its partitions, who leads them and who is in sync."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.terms import BrokerId

Brokers = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition. `leader` None: it has none. `elr` is the eligible leader replicas (KIP-966), and `last_known_elr`
    whoever was last in sync before; None before Kafka 4.0. While it moves `replicas` has all that are old or new, of
    which some are `adding` and some `removing`.
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
        """Whether a replica is out of sync; one that a move adds has yet to become one (TopicCommand)."""
        return len(self.isr) < self.replication_factor

    @property
    def replication_factor(self) -> int:
        """Its replicas without those that a move adds, as Kafka's tool counts them."""
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
        """The first partition's, as Kafka's tool says it."""
        return self.partitions[0].replication_factor if self.partitions else 0
