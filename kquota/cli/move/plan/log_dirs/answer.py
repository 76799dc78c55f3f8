"""The answer of `move plan --balance-log-dirs`: the plan and its rollback.

The JSON also has the values of the explanation on stderr.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli.move.cordons import CordonShown, cordons_shown
from kquota.cli.move.log_dir_time import LogDirTimeShown, shown
from kquota.cli.move.plan.answer import BandShown, DiskShown, LeastShown, LeftShown
from kquota.cli.output import Answer, Part, key, spread
from kquota.cli.reassign_partitions.answer import plan_document
from kquota.pace.log_dir_copy import LogDirPace
from kquota.placement.log_dir_balance import LogDirChange, LogDirGoal, LogDirsPlanned
from kquota.reassign.plan import Plan
from kquota.sizes.replica import Cordon
from kquota.terms import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirMoveShown(Part):
    """A replica that moves to another log dir of its broker. `size` is the bytes to copy."""

    partition: TopicPartition = spread()
    size: int
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicasShown(Part):
    """The number of replicas in a log dir, and their bytes."""

    replicas: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirPlanned(Part):
    """A log dir before and after the moves of the plan and the copies that are already under way.

    `incoming` is the number of bytes that both together still copy into the log dir. `closed` is the reason why the
    plan ignores the log dir, or None. `disk` is None if it is unknown.
    """

    log_dir: str
    closed: str | None
    before: ReplicasShown
    after: ReplicasShown
    incoming: int
    disk: DiskShown | None


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
    least: LeastShown
    ratio: float | None
    band: BandShown
    disk_limit: float
    moves: tuple[LogDirMoveShown, ...]
    log_dirs: tuple[LogDirPlanned, ...]
    left: tuple[LeftShown, ...]
    cordoned: tuple[CordonShown, ...]
    time: LogDirTimeShown | None

    def text(self) -> Iterator[str]:
        if self.plan is not None:
            yield self.plan.text()


def log_dir_plan(goal: LogDirGoal, found: LogDirsPlanned, pace: LogDirPace, cordons: tuple[Cordon, ...]) -> LogDirPlan:
    """Return the answer. `pace` is the pace of the plan's copies."""
    least, band = found.least, found.band
    return LogDirPlan(
        sizes="the live cluster",
        broker=found.broker,
        plan=found.plan if found.moves else None,
        rollback=found.rollback if found.moves else None,
        bytes=found.bytes,
        least=LeastShown(bytes=least.bytes, forced=least.forced, lack=least.lack, excess=least.excess),
        ratio=found.least.ratio(found.bytes),
        band=BandShown(low=band.low, mean=band.mean, high=band.high),
        disk_limit=float(goal.disk_limit),
        moves=tuple(
            LogDirMoveShown(partition=move.partition, size=move.size, source=move.source, destination=move.destination)
            for move in found.moves
        ),
        log_dirs=tuple(map(_log_dir, found.dirs)),
        left=tuple(LeftShown(partition=each.partition, why=each.why) for each in found.left),
        cordoned=cordons_shown(cordons),
        time=shown(pace) if found.moves else None,
    )


def _log_dir(change: LogDirChange) -> LogDirPlanned:
    disk = change.disk
    return LogDirPlanned(
        log_dir=change.path,
        closed=change.closed,
        before=ReplicasShown(replicas=change.replicas_before, bytes=change.before),
        after=ReplicasShown(replicas=change.replicas_after, bytes=change.after),
        incoming=change.incoming,
        disk=None
        if disk is None
        else DiskShown(
            total=disk.total,
            used=disk.used,
            share_before=change.share(0),
            share_at_worst=change.share(change.incoming),
            share_after=change.share(change.after - change.before),
        ),
    )
