"""The result of the planner: each change and its reason, each broker before and after the move, and unreached goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kquota.placement.balance import BalanceBand
from kquota.placement.cluster import ClusterLayout, Disk
from kquota.placement.draft import MoveReason, PlacementDraft, leader_after
from kquota.placement.lower_bound import LowerBound
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A new replica. `source` is the broker whose replica it replaces, or None for an additional replica."""

    source: BrokerId | None
    destination: BrokerId
    why: MoveReason


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """One partition in the plan."""

    partition: TopicPartition
    before: Replicas
    after: Replicas
    copies: tuple[Copy, ...]
    drops: Replicas
    """The brokers whose replicas are removed without a replacement."""
    size: int
    """The size of each copy in bytes, or 0 if it is unknown."""
    leader_before: BrokerId | None
    """None if there is no leader."""
    leader_after: BrokerId

    @property
    def bytes(self) -> int:
        """The bytes to copy."""
        return self.size * len(self.copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPartition:
    """A partition that must stay although a goal applies to it, or that does not reach a goal. `why` is the reason."""

    partition: TopicPartition
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContents:
    """The contents of a broker: its replicas, the partitions that it leads, and the bytes of its replicas."""

    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """One broker before and after the move.

    `incoming` is the number of bytes that the plan copies to the broker before old replicas are deleted. `disk` is None
    if its size is unknown.
    """

    rack: str | None
    alive: bool
    before: BrokerContents
    after: BrokerContents
    incoming: int
    disk: Disk | None

    @property
    def disk_before(self) -> float | None:
        """The used fraction of the disk before the move, or None if the size of the disk is unknown or 0."""
        return None if self.disk is None else self.disk.share(0)

    @property
    def disk_worst(self) -> float | None:
        """The used fraction of the disk with all copies complete and no old replica deleted. None as in `disk_before`.

        The copies include those of running moves.
        """
        return None if self.disk is None else self.disk.share(self.disk.pending + self.incoming)

    @property
    def disk_after(self) -> float | None:
        """The used fraction of the disk after the plan's old replicas are deleted. None as in `disk_before`.

        It includes the copies of running moves.
        """
        grown = self.after.bytes - self.before.bytes
        return None if self.disk is None else self.disk.share(self.disk.pending + grown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The result of the planner. `changes` are sorted by topic and partition, `brokers` by id."""

    changes: tuple[PartitionChange, ...]
    left: tuple[LeftPartition, ...]
    brokers: Mapping[BrokerId, BrokerChange]
    least: LowerBound
    band: BalanceBand | None
    """The band that the brokers should reach. None if the goals are neither to add brokers nor to balance."""

    @property
    def bytes(self) -> int:
        """The total bytes to copy."""
        return sum(change.bytes for change in self.changes)

    @property
    def plan(self) -> Plan:
        """The plan in the format of kafka-reassign-partitions."""
        return Plan(targets={change.partition: change.after for change in self.changes})

    @property
    def rollback(self) -> Plan:
        """The plan that restores the previous replicas."""
        return Plan(targets={change.partition: change.before for change in self.changes})


def changes(draft: PlacementDraft, ordered: Mapping[int, Replicas]) -> tuple[PartitionChange, ...]:
    """Return every partition whose replicas change, even if only their order changes, in the order of `ordered`."""
    return tuple(
        PartitionChange(
            partition=draft.names[p],
            before=draft.now[p].replicas,
            after=after,
            copies=tuple(
                Copy(source=source, destination=destination, why=why)
                for destination, (source, why) in sorted(draft.copies.get(p, {}).items())
            ),
            drops=tuple(sorted(draft.drops.get(p, ()))),
            size=draft.sizes[p],
            leader_before=draft.now[p].leader,
            leader_after=leader_after(draft, p, after),
        )
        for p, after in ordered.items()
    )


def shares(
    cluster: ClusterLayout, draft: PlacementDraft, changed: tuple[PartitionChange, ...]
) -> dict[BrokerId, BrokerChange]:
    """Return the state of every broker before and after the move, in the order of the cluster."""
    replicas: Counter[BrokerId] = Counter()
    leaders: Counter[BrokerId] = Counter()
    held: Counter[BrokerId] = Counter()
    for now, size in zip(draft.now, draft.sizes, strict=True):
        replicas.update(now.replicas)
        for broker in now.replicas:
            held[broker] += size
        if now.leader is not None:
            leaders[now.leader] += 1
    replicas_after, leaders_after = replicas.copy(), leaders.copy()
    for change in changed:
        replicas_after.subtract(change.before)
        replicas_after.update(change.after)
        if change.leader_before is not None:
            leaders_after[change.leader_before] -= 1
            leaders_after[change.leader_after] += 1
    return {
        broker: BrokerChange(
            rack=found.rack,
            alive=found.alive,
            before=BrokerContents(replicas=replicas[broker], leaders=leaders[broker], bytes=held[broker]),
            after=BrokerContents(
                replicas=replicas_after[broker], leaders=leaders_after[broker], bytes=draft.bytes[broker]
            ),
            incoming=draft.incoming[broker],
            disk=found.disk,
        )
        for broker, found in cluster.brokers.items()
    }
