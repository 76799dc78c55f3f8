"""The answer of `move plan`: the plan. The JSON also has the rollback plan and the values that `move plan` explains on
stderr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from kquota.cli.move.cordons import cordons_shown
from kquota.cli.output import Answer, JsonObject, hidden, plain, spread
from kquota.cli.reassign_partitions.answer import plan_or_null
from kquota.placement.cluster import ClusterLayout, Disk
from kquota.placement.goal import Goal
from kquota.placement.log_dir_balance import LogDirsPlanned
from kquota.placement.planned import BrokerChange, BrokerContents, LeftPartition, PartitionChange, Planned
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId


def plan_values(found: Planned | LogDirsPlanned, disk_limit: Fraction) -> JsonObject:
    """Return the JSON keys that plans for brokers and for log dirs share. `plan` and `rollback` are null if no replica
    moves.

    `least` is the lower bound on the bytes of every plan that reaches the goal, with its terms, in bytes. `ratio` is
    `bytes` divided by this bound, or null if the bound is 0. `band` has the smallest and the largest number of bytes
    that a broker or log dir should hold, and the mean. It is null if no goal needs a band.
    """
    least, band = found.least, found.band
    return {
        "plan": plan_or_null(found.plan),
        "rollback": plan_or_null(found.rollback),
        "bytes": found.bytes,
        "least": {"bytes": least.bytes, "forced": least.forced, "lack": least.lack, "excess": least.excess},
        "ratio": least.ratio(found.bytes),
        "band": None if band is None else {"low": band.low, "mean": band.mean, "high": band.high},
        "disk_limit": float(disk_limit),
    }


def disk_shown(disk: Disk | None, before: float | None, worst: float | None, after: float | None) -> JsonObject | None:
    """Return the JSON of the disk space of a broker or log dir, or None if the space is unknown.

    `total` and `used` are in bytes. The shares are the used fractions before the move, in the worst case, and after the
    move. None means unknown. In the worst case, all copies are done and no old replica is deleted yet.
    """
    if disk is None:
        return None
    shares = {"share_before": before, "share_at_worst": worst, "share_after": after}
    return {"total": disk.total, "used": disk.used, **shares}


def left_shown(left: LeftPartition) -> JsonObject:
    """Return the JSON of a partition that does not move, or does not reach the goal, with the reason."""
    return {**plain(left.partition), "why": left.why}


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan(Answer):
    """The answer of `move plan`."""

    plan: Plan = hidden()
    """The plan. It is empty if no replica moves."""
    values: Callable[[], JsonObject] = spread(lambda values: values())
    """Returns the keys of the JSON document. It is called only for JSON, because a large plan has many values."""

    def text(self) -> Iterator[str]:
        if self.plan.targets:
            yield self.plan.text()


def plan_document(cluster: ClusterLayout, goal: Goal, found: Planned, source: str) -> JsonObject:
    """Return the JSON of a plan for brokers. `source` is the source of the sizes."""
    return {
        "sizes": source,
        **plan_values(found, goal.disk_limit),
        "moves": [_move(change, known=change.partition in cluster.sizes) for change in found.changes],
        "brokers": [_broker(broker, share) for broker, share in found.brokers.items()],
        "left": list(map(left_shown, found.left)),
        "cordoned": cordons_shown(cluster.cordons),
    }


def _move(change: PartitionChange, *, known: bool) -> JsonObject:
    """Return the JSON of the moves of one partition. `size` and `bytes` are null if the size is unknown, but `bytes` is
    0 without copies.
    """
    copies = [{"source": copy.source, "destination": copy.destination, "why": copy.why} for copy in change.copies]
    return {
        **plain(change.partition),
        "before": change.before,
        "after": change.after,
        "size": change.size if known else None,
        "bytes": change.bytes if known or not copies else None,
        "copies": copies,
        "dropped": change.drops,
        "leader": {"before": change.leader_before, "after": change.leader_after},
    }


def _broker(broker: BrokerId, share: BrokerChange) -> JsonObject:
    return {
        "broker": broker,
        "rack": share.rack,
        "alive": share.alive,
        "before": _holding(share.before),
        "after": _holding(share.after),
        "incoming": share.incoming,
        "disk": disk_shown(share.disk, share.disk_before, share.disk_worst, share.disk_after),
    }


def _holding(held: BrokerContents) -> JsonObject:
    return {"replicas": held.replicas, "leaders": held.leaders, "bytes": held.bytes}
