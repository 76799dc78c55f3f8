"""The answer of `move plan` as one JSON document: the plan, the way back, and everything that the person is told."""

from __future__ import annotations

import json
from typing import Final

from kquota.cli import fields
from kquota.placement.cluster import Cluster
from kquota.placement.goal import Goal
from kquota.placement.planned import Change, Holding, Left, Planned, Share
from kquota.terms import BrokerId

VERSION: Final = 1


def document(cluster: Cluster, goal: Goal, found: Planned, source: str) -> str:
    """One line; bytes, shares of 1, null where nobody told. `plan` is null when there is nothing to do."""
    return json.dumps(
        {
            "version": VERSION,
            "sizes": source,
            "plan": json.loads(found.plan.text()) if found.changes else None,
            "rollback": json.loads(found.rollback.text()) if found.changes else None,
            "bytes": found.bytes,
            "least": {
                "bytes": found.least.bytes,
                "forced": found.least.forced,
                "lack": found.least.lack,
                "excess": found.least.excess,
            },
            "ratio": found.ratio,
            "band": None
            if found.band is None
            else {"low": found.band.low, "mean": found.band.mean, "high": found.band.high},
            "disk_limit": float(goal.disk_limit),
            "moves": [_move(change, cluster) for change in found.changes],
            "brokers": [_broker(broker, share) for broker, share in found.brokers.items()],
            "left": [_left(left) for left in found.left],
        }
    )


def _move(change: Change, cluster: Cluster) -> dict[str, object]:
    known = change.partition in cluster.sizes
    return {
        **fields.partition(change.partition),
        "before": change.before,
        "after": change.after,
        "size": change.size if known else None,
        "bytes": change.bytes if known or not change.copies else None,
        "copies": [
            {"source": copy.source, "destination": copy.destination, "why": copy.why.value} for copy in change.copies
        ],
        "dropped": change.drops,
        "leader": {"before": change.leader_before, "after": change.leader_after},
    }


def _broker(broker: BrokerId, share: Share) -> dict[str, object]:
    disk = share.disk
    return {
        "broker": broker,
        "rack": share.rack,
        "alive": share.alive,
        "before": _holding(share.before),
        "after": _holding(share.after),
        "incoming": share.incoming,
        "disk": None
        if disk is None
        else {
            "total": disk.total,
            "used": disk.used,
            "share_before": share.disk_before,
            "share_at_worst": share.disk_worst,
            "share_after": share.disk_after,
        },
    }


def _holding(held: Holding) -> dict[str, int]:
    return {"replicas": held.replicas, "leaders": held.leaders, "bytes": held.bytes}


def _left(left: Left) -> dict[str, object]:
    return {**fields.partition(left.partition), "why": left.why}
