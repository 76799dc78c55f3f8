"""The answer of `move plan --balance-log-dirs`: the plan and its rollback.

The JSON also has the values of the explanation on stderr.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli.move.cordons import cordons_shown
from kquota.cli.move.log_dir_time import time_shown
from kquota.cli.move.plan.answer import band_shown, disk_shown, least_shown, left_shown
from kquota.cli.output import Answer, JsonObject, each, key, plain
from kquota.cli.reassign_partitions.answer import plan_document
from kquota.pace.log_dir_copy import LogDirPace
from kquota.placement.balance import BalanceBand
from kquota.placement.log_dir_balance import LogDirChange, LogDirGoal, LogDirMove, LogDirsPlanned
from kquota.placement.lower_bound import Least
from kquota.placement.planned import Left
from kquota.reassign.plan import Plan
from kquota.sizes.replica import Cordon
from kquota.terms import BrokerId


def _move(move: LogDirMove) -> JsonObject:
    return {**plain(move.partition), "size": move.size, "source": move.source, "destination": move.destination}


def _log_dir(change: LogDirChange) -> JsonObject:
    shares = [change.share(grown) for grown in (0, change.incoming, change.after - change.before)]
    return {
        "log_dir": change.path,
        "closed": change.closed,
        "before": {"replicas": change.replicas_before, "bytes": change.before},
        "after": {"replicas": change.replicas_after, "bytes": change.after},
        "incoming": change.incoming,
        "disk": disk_shown(change.disk, *shares),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirPlan(Answer):
    """The answer for one broker. `plan`, `rollback` and `time` are None if no replica moves.

    `sizes` is the source of the sizes. `ratio` is `bytes` divided by the lower bound, or None if this bound is 0.
    """

    sizes: str
    broker: BrokerId
    plan: Plan | None = key(form=plan_document)
    rollback: Plan | None = key(form=plan_document)
    bytes: int
    least: Least = key(form=least_shown)
    ratio: float | None
    band: BalanceBand = key(form=band_shown)
    disk_limit: float
    moves: tuple[LogDirMove, ...] = key(form=each(_move))
    log_dirs: tuple[LogDirChange, ...] = key(form=each(_log_dir))
    left: tuple[Left, ...] = key(form=each(left_shown))
    cordoned: tuple[Cordon, ...] = key(form=cordons_shown)
    time: LogDirPace | None = key(form=time_shown)

    def text(self) -> Iterator[str]:
        if self.plan is not None:
            yield self.plan.text()


def log_dir_plan(goal: LogDirGoal, found: LogDirsPlanned, pace: LogDirPace, cordons: tuple[Cordon, ...]) -> LogDirPlan:
    """Return the answer. `pace` is the pace of the plan's copies."""
    return LogDirPlan(
        sizes="the live cluster",
        broker=found.broker,
        plan=found.plan if found.moves else None,
        rollback=found.rollback if found.moves else None,
        bytes=found.bytes,
        least=found.least,
        ratio=found.least.ratio(found.bytes),
        band=found.band,
        disk_limit=float(goal.disk_limit),
        moves=found.moves,
        log_dirs=found.dirs,
        left=found.left,
        cordoned=cordons,
        time=pace if found.moves else None,
    )
