"""The order of reads and writes of --verify: what has become of a plan, and restoring what has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.reassign import log_dirs
from kquota.reassign.moves import Move
from kquota.reassign.ownership import proven_removals
from kquota.reassign.plan import Plan
from kquota.reassign.port import Clock, MoveCluster, ReplicaDirs, Runs, Snapshot
from kquota.reassign.progress import PartitionStatus, Progress, overall, statuses, verdict
from kquota.reassign.run import Run, covers, held, others_than, part_of, recreated, without_topics
from kquota.reassign.throttle_writes import Released, World, record, release, release_ended, wait_until, written
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import EVERY_REPLICA, REPLICATION_RATES, THROTTLE_LISTS, THROTTLE_RATES, TopicPartition

SETTLED: Final = 3.0
"""Seconds after which a partition that is somewhere else is there to stay: reads on KRaft were stale for 0.27 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What --verify found and restored; `pending` are settings still to be restored, and why not now.

    `waiting` are partitions that no kquota has handed over yet, because the one that was to do it died. `unknown` are
    throttles that stay, each with its value: another host may have set them, whose runs cannot be seen from here.
    `lost` is what somebody else has removed of the run's throttle while it is needed. With `clear_all`, `cleared_of`
    are the ids of the open runs that had set what was cleared; nothing was cleared while moves run (`too_early`).
    """

    statuses: tuple[PartitionStatus, ...]
    verdict: Progress
    log_dirs: tuple[log_dirs.LogDirStatus, ...] = ()
    restored: tuple[Change, ...] = ()
    pending: Mapping[Setting, str] = field(default_factory=dict)
    waiting: tuple[TopicPartition, ...] = ()
    run: Run | None = None
    unknown: Mapping[Setting, str] = field(default_factory=dict)
    lost: tuple[Setting, ...] = ()
    cleared_of: tuple[str, ...] = ()
    too_early: bool = False
    notes: tuple[str, ...] = ()


def verify(
    cluster: MoveCluster,
    runs: Runs,
    clock: Clock,
    plan: Plan,
    dirs: ReplicaDirs | None = None,
    *,
    preserve: bool = False,
    clear_all: bool = False,
    cancelled: Iterable[Move] = (),
) -> Verification:
    """What has become of the plan. What its run took is restored: per partition at once, the rates with the last.

    So is what ended elsewhere. Without a run of this plan on record, list entries go that the plan alone proves to
    be its own, or the plan and the moves that were `cancelled` just now. With `preserve` nothing is written; with
    `clear_all` what Kafka's own tool takes away goes as well: once no move runs anywhere, every rate of every live
    broker, and the lists of the plan's topics. Raises Unreachable.
    """
    found, seen = _settled(cluster, clock, plan)
    look = _looked(seen, found, plan, dirs)
    if preserve:
        return look.verification
    unfinished = runs.unfinished()
    run = covers(plan, unfinished)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(run, unfinished))
    if run is not None:
        done = _of_a_run(world, run, look)
    else:
        done = _without_a_record(world, _provable(world, plan, look, cancelled))
    if clear_all:
        done = _cleared(world, plan, look.seen, done, unfinished)
    return _reported(world, plan, look, done, runs.unfinished())


def unless_it_writes(
    cluster: MoveCluster, runs: Runs, clock: Clock, plan: Plan, dirs: ReplicaDirs | None = None
) -> Verification | None:
    """As `verify`, for a caller that does not hold the lock: None where `verify` would write, or may see more.

    A plan that is not done may be under way in another kquota, which holds the lock.
    """
    unfinished = runs.unfinished()
    if covers(plan, unfinished) is not None or not runs.settled:
        return None
    seen = cluster.snapshot(plan.topics)
    look = _looked(seen, statuses(plan, seen.partitions, seen.running), plan, dirs)
    world = World(cluster=cluster, runs=runs, clock=clock, others=unfinished)
    if look.verdict is not Progress.DONE or _provable(world, plan, look, ()):
        return None
    unfinished = runs.unfinished()
    if covers(plan, unfinished) is not None:  # it began after the first look, and has arrived
        return None
    return _reported(world, plan, look, _of_released(Released(restored=())), unfinished)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What the cluster says of a plan."""

    statuses: tuple[PartitionStatus, ...]
    seen: Snapshot
    log_dirs: tuple[log_dirs.LogDirStatus, ...]

    @property
    def verdict(self) -> Progress:
        return overall([verdict(self.statuses), *(status.progress for status in self.log_dirs)])

    @property
    def verification(self) -> Verification:
        return Verification(statuses=self.statuses, verdict=self.verdict, log_dirs=self.log_dirs)


def _looked(seen: Snapshot, found: Sequence[PartitionStatus], plan: Plan, dirs: ReplicaDirs | None) -> _Look:
    return _Look(statuses=tuple(found), seen=seen, log_dirs=_log_dirs(dirs, plan, seen))


def _reported(world: World, plan: Plan, look: _Look, done: Verification, unfinished: Sequence[Run]) -> Verification:
    """What was done, with what has become of the plan, and with the throttles that stay. `unfinished`: the runs now."""
    shared = world.runs.shared
    staying: Mapping[Setting, str] = {}
    known = done.run
    if known is None and shared:
        # Ended runs are many, and their plans long: they are read only if something is left to explain.
        staying = _staying(world.cluster, plan, look.seen, None, unfinished)
        known = _ended(world.runs, plan) if staying or unfinished else None
    elif not shared:
        known = known or _ended(world.runs, plan)
        staying = _staying(world.cluster, plan, look.seen, known, unfinished)
    done = replace(done, statuses=look.statuses, verdict=look.verdict, log_dirs=look.log_dirs)
    if look.verdict is not Progress.IN_PROGRESS:
        done = replace(done, notes=(*done.notes, *_kept(known, unfinished)))
    if shared or look.verdict is Progress.IN_PROGRESS:
        return replace(done, notes=(*done.notes, *_foreign(staying, known)))
    return replace(done, unknown=staying)


def _ended(runs: Runs, plan: Plan) -> Run | None:
    """The last run of this plan that is on record and has ended."""
    of_plan = [
        run for run in runs.every() if run.finished is not None and plan.targets in (run.plan.targets, run.goal.targets)
    ]
    return of_plan[-1] if of_plan else None


def _staying(
    cluster: MoveCluster, plan: Plan, seen: Snapshot, run: Run | None, unfinished: Sequence[Run]
) -> dict[Setting, str]:
    """The throttles that stay and that no open run on record holds.

    Of a run on record these are its rates, unless they are again what was set before it. Without one they are every
    rate of the live brokers, and every list of the plan's topics.
    """
    if run is None:
        settings = [
            *(Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS),
            *(Setting.of_broker(broker, key) for broker in sorted(seen.alive) for key in REPLICATION_RATES),
        ]
    else:
        settings = [s for s, taken in run.taken.items() if s.key in REPLICATION_RATES]
    priors = {} if run is None or run.crowded else {s: taken.prior for s, taken in run.taken.items()}
    now = cluster.values(settings)
    return {
        setting: value
        for setting in settings
        if (value := now.get(setting)) and value != priors.get(setting) and not held(unfinished, setting)
    }


def _log_dirs(dirs: ReplicaDirs | None, plan: Plan, seen: Snapshot) -> tuple[log_dirs.LogDirStatus, ...]:
    wanted = log_dirs.of(plan)
    if dirs is None or not wanted:
        return ()
    return tuple(log_dirs.statuses(wanted, dirs.read(wanted.keys()), seen.partitions, seen.running))


def _settled(cluster: MoveCluster, clock: Clock, plan: Plan) -> tuple[tuple[PartitionStatus, ...], Snapshot]:
    """Statuses in which "elsewhere" is no stale read: a KRaft broker may still show what was before the move's end."""
    found: tuple[PartitionStatus, ...] = ()
    seen: Snapshot | None = None

    def certain() -> bool:
        nonlocal found, seen
        seen = cluster.snapshot(plan.topics)
        found = statuses(plan, seen.partitions, seen.running)
        return verdict(found) is not Progress.ELSEWHERE

    wait_until(certain, clock, SETTLED)
    assert seen is not None
    return found, seen


def _of_a_run(world: World, run: Run, look: _Look) -> Verification:
    """The rates of a run serve also the partitions that a broker still copies between its log dirs."""
    moving = {status.partition for status in look.statuses if status.progress is Progress.IN_PROGRESS}
    moving |= {status.partition for status in look.log_dirs if status.progress is Progress.IN_PROGRESS}
    at_rest = {s.partition for s in look.statuses if s.progress is Progress.ELSEWHERE and s.replicas}
    gone = recreated(run, look.seen.topic_ids)
    run = record(world, run, without_topics(run, gone))
    waiting = tuple(name for name in run.waiting if name in at_rest and name.topic not in gone)
    if moving:
        released, run = release_ended(world, run, run.plan.targets.keys() - moving)
        lost = _lost(world, run, moving)
    else:
        released, lost = release(world, run, close=not waiting), ()
    notes = tuple(
        f"topic {topic} was deleted and created again after the run began: kquota leaves it unchanged" for topic in gone
    )
    return replace(_of_released(released, run=run, waiting=waiting, notes=notes), lost=lost)


def _lost(world: World, run: Run, moving: Collection[TopicPartition]) -> tuple[Setting, ...]:
    """What somebody else has taken away of a throttle that is still needed. It comes back only when it is asked for."""
    now = world.cluster.values(list(run.taken))
    lost = [
        setting
        for setting, taken in part_of(run, moving).taken.items()
        if setting in now and not {*taken.ours, EVERY_REPLICA} & {*entries(now[setting])}
    ]
    lost += [s for s, taken in run.taken.items() if not s.is_list and taken.ours and s in now and now[s] is None]
    return tuple(lost)


def _provable(world: World, plan: Plan, look: _Look, cancelled: Iterable[Move]) -> list[Change]:
    """What takes away the list entries that the plan alone proves to be its own. All runs are of others."""
    settings = [Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS]
    now = world.cluster.values(settings)
    done = {status.partition: status.target for status in look.statuses if status.progress is Progress.DONE}
    return [
        change
        for change in proven_removals(done, now, {move.partition: move for move in cancelled})
        if not any(taken.ours for taken in held(world.others, change.setting))
    ]


def _without_a_record(world: World, changes: Sequence[Change]) -> Verification:
    errors = written(world, changes)
    given = tuple(change for change in changes if change.setting not in errors)
    pending = {setting: str(error) for setting, error in errors.items()}
    return _of_released(Released(restored=given, pending=pending))


def _cleared(world: World, plan: Plan, seen: Snapshot, done: Verification, unfinished: Sequence[Run]) -> Verification:
    """As Kafka's own --verify: whoever set it, once no move runs anywhere."""
    if seen.running:
        return replace(done, too_early=True)
    settings = [
        *(Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS),
        *(Setting.of_broker(broker, key) for broker in sorted(seen.alive) for key in THROTTLE_RATES),
    ]
    now = world.cluster.values(settings)
    changes = [Change(setting=s, before=now[s], after=None) for s in settings if now.get(s) is not None]
    errors = written(world, changes)
    given = tuple(change for change in changes if change.setting not in errors)
    cleared_of = {run.id for change in given for run in unfinished if held([run], change.setting)}
    return replace(
        done,
        restored=(*done.restored, *given),
        pending={**done.pending, **{setting: str(error) for setting, error in errors.items()}},
        cleared_of=tuple(sorted(cleared_of)),
    )


def _of_released(
    released: Released,
    *,
    run: Run | None = None,
    waiting: tuple[TopicPartition, ...] = (),
    notes: tuple[str, ...] = (),
) -> Verification:
    return Verification(
        statuses=(),
        verdict=Progress.DONE,
        restored=released.restored,
        pending=released.pending,
        waiting=waiting,
        run=run,
        notes=(*notes, *released.notes),
    )


def _foreign(staying: Mapping[Setting, str], run: Run | None) -> tuple[str, ...]:
    """One line for throttles that stay while a move runs, or that no host has set with kquota."""
    if not staying or run is not None:
        return ()
    return (f"a throttle is set that no recorded open run holds: {named(staying)}; kquota leaves it unchanged",)


def _kept(run: Run | None, unfinished: Sequence[Run]) -> tuple[str, ...]:
    """A line for each other run that still holds rates which this run took."""
    if run is None:
        return ()
    lines = []
    for other in others_than(run, unfinished):
        both = [s for s in run.taken if s.key in REPLICATION_RATES and s in other.taken and other.taken[s].ours]
        if both:
            whose = "" if other.owner is None else f" of {other.owner}"
            lines.append(
                f"run {other.id}{whose} is open and also holds rates: {named(both)}; they stay set until it ends"
            )
    return tuple(lines)


def named(settings: Iterable[Setting]) -> str:
    """Settings in a line: each key with the brokers or topics that have it."""
    names: dict[tuple[str, str], list[str]] = {}
    for setting in settings:
        names.setdefault((setting.key, setting.kind), []).append(setting.name)
    return "; ".join(f"{key} on {kind} {','.join(those)}" for (key, kind), those in names.items())
