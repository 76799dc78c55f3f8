"""The answer of `move plan`: the plan and its rollback. The JSON also has the values of the explanation on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli.move.cordons import CordonShown, cordons_shown
from kquota.cli.output import Answer, Part, key, spread
from kquota.cli.reassign_partitions.answer import plan_document
from kquota.placement.cluster import ClusterLayout
from kquota.placement.draft import Why
from kquota.placement.goal import Goal
from kquota.placement.planned import BrokerChange, Holding, PartitionChange, Planned
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastShown(Part):
    """The lower bound on the bytes that a plan must copy to reach the goal, and its terms (see `lower_bound.Least`)."""

    bytes: int
    forced: int
    lack: int
    excess: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BandShown(Part):
    """The smallest and the largest number of bytes that a broker or log dir should hold, and the mean."""

    low: int
    mean: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyShown(Part):
    """A new replica. `source` is the broker whose replica it replaces, or None for an additional replica."""

    source: BrokerId | None
    destination: BrokerId
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderShown(Part):
    """The leader of a partition before and after the move. `before` is None if the partition has no leader."""

    before: BrokerId | None
    after: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlanned(Part):
    """A partition of the plan. `size` is the number of bytes in each copy, and `bytes` is the total of all copies.

    If the size is unknown, both are None, but `bytes` is 0 if the partition has no copies.
    """

    partition: TopicPartition = spread()
    before: Replicas
    after: Replicas
    size: int | None
    bytes: int | None
    copies: tuple[CopyShown, ...]
    dropped: Replicas
    leader: LeaderShown


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingShown(Part):
    """The number of replicas and leaders on a broker, and the bytes that it stores."""

    replicas: int
    leaders: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskShown(Part):
    """The disk space of a broker or of one of its log dirs: bytes, and used fractions. A fraction is None if unknown.

    The worst case is the moment when all copies are done and no old replica is deleted yet.
    """

    total: int
    used: int
    share_before: float | None
    share_at_worst: float | None
    share_after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlanned(Part):
    """A broker before and after the move. `incoming` is the bytes to copy to it. `disk` is None if it is unknown."""

    broker: BrokerId
    rack: str | None
    alive: bool
    before: HoldingShown
    after: HoldingShown
    incoming: int
    disk: DiskShown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftShown(Part):
    """A partition that does not move, or does not reach the goal, and the reason."""

    partition: TopicPartition = spread()
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan(Answer):
    """The answer of `move plan`. `plan` and `rollback` are None if no partition changes.

    `sizes` is the source of the sizes. `ratio` is `bytes` divided by the lower bound, or None if this bound is 0.
    `band` is None if no goal needs a band.
    """

    sizes: str
    plan: Plan | None = key(form=plan_document)
    rollback: Plan | None = key(form=plan_document)
    bytes: int
    least: LeastShown
    ratio: float | None
    band: BandShown | None
    disk_limit: float
    moves: tuple[MovePlanned, ...]
    brokers: tuple[BrokerPlanned, ...]
    left: tuple[LeftShown, ...]
    cordoned: tuple[CordonShown, ...]

    def text(self) -> Iterator[str]:
        if self.plan is not None:
            yield self.plan.text()


def move_plan(cluster: ClusterLayout, goal: Goal, found: Planned, source: str) -> MovePlan:
    """Return the answer. `source` is the source of the sizes."""
    least, band = found.least, found.band
    return MovePlan(
        sizes=source,
        plan=found.plan if found.changes else None,
        rollback=found.rollback if found.changes else None,
        bytes=found.bytes,
        least=LeastShown(bytes=least.bytes, forced=least.forced, lack=least.lack, excess=least.excess),
        ratio=found.least.ratio(found.bytes),
        band=None if band is None else BandShown(low=band.low, mean=band.mean, high=band.high),
        disk_limit=float(goal.disk_limit),
        moves=tuple(_move(change, known=change.partition in cluster.sizes) for change in found.changes),
        brokers=tuple(_broker(broker, share) for broker, share in found.brokers.items()),
        left=tuple(LeftShown(partition=each.partition, why=each.why) for each in found.left),
        cordoned=cordons_shown(cluster.cordons),
    )


def _move(change: PartitionChange, *, known: bool) -> MovePlanned:
    return MovePlanned(
        partition=change.partition,
        before=change.before,
        after=change.after,
        size=change.size if known else None,
        bytes=change.bytes if known or not change.copies else None,
        copies=tuple(CopyShown(source=c.source, destination=c.destination, why=c.why) for c in change.copies),
        dropped=change.drops,
        leader=LeaderShown(before=change.leader_before, after=change.leader_after),
    )


def _broker(broker: BrokerId, share: BrokerChange) -> BrokerPlanned:
    disk = share.disk
    shown = None
    if disk is not None:
        shown = DiskShown(
            total=disk.total,
            used=disk.used,
            share_before=share.disk_before,
            share_at_worst=share.disk_worst,
            share_after=share.disk_after,
        )
    return BrokerPlanned(
        broker=broker,
        rack=share.rack,
        alive=share.alive,
        before=_holding(share.before),
        after=_holding(share.after),
        incoming=share.incoming,
        disk=shown,
    )


def _holding(held: Holding) -> HoldingShown:
    return HoldingShown(replicas=held.replicas, leaders=held.leaders, bytes=held.bytes)
