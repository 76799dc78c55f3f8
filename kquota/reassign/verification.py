"""The order of reads and writes of --verify: what has become of a plan, and everything that has ended given back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.reassign import log_dirs
from kquota.reassign.hold import Released, World, record, release, release_ended, wait_until, written
from kquota.reassign.moves import Move
from kquota.reassign.plan import Plan
from kquota.reassign.port import Clock, Cluster, ReplicaDirs, Runs, Snapshot
from kquota.reassign.progress import Progress, Status, overall, statuses, verdict
from kquota.reassign.proof import proven
from kquota.reassign.run import Run, covers, held, others_than, part_of, recreated, without_topics
from kquota.reassign.throttle import Change, Setting, entries
from kquota.terms import EVERY_REPLICA, REPLICATION_RATES, THROTTLE_LISTS, THROTTLE_RATES, TopicPartition

SETTLED: Final = 3.0
"""Seconds after which a partition that is somewhere else is there to stay: reads on KRaft were stale for 0.27 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What --verify found and gave back; `pending` are settings still to be given back, and why not now.

    `waiting` are partitions that no kquota has handed over yet, because the one that was to do it died.
    """

    statuses: tuple[Status, ...]
    verdict: Progress
    log_dirs: tuple[log_dirs.Status, ...] = ()
    given_back: tuple[Change, ...] = ()
    pending: Mapping[Setting, str] = field(default_factory=dict)
    waiting: tuple[TopicPartition, ...] = ()
    run: Run | None = None
    notes: tuple[str, ...] = ()


def verify(
    cluster: Cluster,
    runs: Runs,
    clock: Clock,
    plan: Plan,
    dirs: ReplicaDirs | None = None,
    *,
    preserve: bool = False,
    clear_all: bool = False,
    cancelled: Iterable[Move] = (),
) -> Verification:
    """What has become of the plan. What its run took is given back: per partition at once, the rates with the last.

    Ended elsewhere gives back, too. Without a run of this plan on record, list entries go that the plan alone proves to
    be its own, or the plan and the moves that were `cancelled` just now. With `preserve` nothing is written; with
    `clear_all` what Kafka's own tool takes away goes as well: once no move runs anywhere, every rate of every live
    broker, and the lists of the plan's topics. Raises Unreachable.
    """
    found, seen = _settled(cluster, clock, plan)
    in_dirs = _log_dirs(dirs, plan, seen)
    outcome = overall([verdict(found), *(status.progress for status in in_dirs)])
    if preserve:
        return Verification(statuses=found, verdict=outcome, log_dirs=in_dirs)
    unfinished = runs.unfinished()
    run = covers(plan, unfinished)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(run, unfinished))
    if run is not None:
        copying = {status.partition for status in in_dirs if status.progress is Progress.IN_PROGRESS}
        done = _of_a_run(world, run, found, seen, copying)
    else:
        done = _without_a_record(world, plan, found, seen, {move.partition: move for move in cancelled})
    if clear_all:
        done = _cleared(world, plan, seen, done, unfinished)
    return replace(done, statuses=found, verdict=outcome, log_dirs=in_dirs)


def _log_dirs(dirs: ReplicaDirs | None, plan: Plan, seen: Snapshot) -> tuple[log_dirs.Status, ...]:
    wanted = log_dirs.of(plan)
    if dirs is None or not wanted:
        return ()
    return tuple(log_dirs.statuses(wanted, dirs.read(wanted.keys()), seen.partitions, seen.running))


def _settled(cluster: Cluster, clock: Clock, plan: Plan) -> tuple[tuple[Status, ...], Snapshot]:
    """Statuses in which "elsewhere" is no stale read: a KRaft broker may still show what was before the move's end."""
    found: tuple[Status, ...] = ()
    seen: Snapshot | None = None

    def certain() -> bool:
        nonlocal found, seen
        seen = cluster.snapshot(plan.topics)
        found = statuses(plan, seen.partitions, seen.running)
        return verdict(found) is not Progress.ELSEWHERE

    wait_until(certain, clock, SETTLED)
    assert seen is not None
    return found, seen


def _of_a_run(
    world: World, run: Run, found: Sequence[Status], seen: Snapshot, copying: Collection[TopicPartition]
) -> Verification:
    """`copying` are partitions that a broker still copies between its log dirs: their run's rates serve them."""
    moving = {*copying} | {status.partition for status in found if status.progress is Progress.IN_PROGRESS}
    at_rest = {status.partition for status in found if status.progress is Progress.ELSEWHERE and status.replicas}
    gone = recreated(run, seen.topic_ids)
    run = record(world, run, without_topics(run, gone))
    waiting = tuple(name for name in run.waiting if name in at_rest and name.topic not in gone)
    if moving:
        released, run = release_ended(world, run, run.plan.targets.keys() - moving)
        lost = _lost(world, run, moving)
    else:
        released, lost = release(world, run, close=not waiting), ()
    notes = (*(f"topic {topic} was deleted and made again since: it is left alone" for topic in gone), *lost)
    return _told(released, run=run, waiting=waiting, notes=notes)


def _lost(world: World, run: Run, moving: Collection[TopicPartition]) -> tuple[str, ...]:
    """What somebody else has taken away of a throttle that is still needed. It comes back only when it is asked for."""
    now = world.cluster.values(list(run.taken))
    lost = [
        setting
        for setting, taken in part_of(run, moving).taken.items()
        if setting in now and not {*taken.ours, EVERY_REPLICA} & {*entries(now[setting])}
    ]
    lost += [s for s, taken in run.taken.items() if not s.is_list and taken.ours and s in now and now[s] is None]
    if not lost:
        return ()
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return (
        f"warning: somebody took away {lost[0]}{more}, which run {run.id} had set: the move goes on without; "
        "--execute the same plan again to set it again",
    )


def _without_a_record(
    world: World, plan: Plan, found: Sequence[Status], seen: Snapshot, cancelled: Mapping[TopicPartition, Move]
) -> Verification:
    """What the plan alone proves goes; of everything else that stands there is only word. All runs are others'."""
    unfinished = world.others
    settings = [Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS]
    now = world.cluster.values(settings)
    done = {status.partition: status.target for status in found if status.progress is Progress.DONE}
    changes = [
        change
        for change in proven(done, now, cancelled)
        if not any(taken.ours for taken in held(unfinished, change.setting))
    ]
    errors = written(world, changes)
    given = tuple(change for change in changes if change.setting not in errors)
    standing = _standing(world.cluster, plan, seen, unfinished)
    pending = {setting: str(error) for setting, error in errors.items()}
    return _told(Released(given_back=given, pending=pending), notes=standing)


def _cleared(world: World, plan: Plan, seen: Snapshot, done: Verification, unfinished: Sequence[Run]) -> Verification:
    """As Kafka's own --verify: whoever set it, once no move runs anywhere."""
    if seen.running:
        return replace(done, notes=(*done.notes, "moves are running, so --clear-all took nothing else away, as Kafka"))
    settings = [
        *(Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS),
        *(Setting.of_broker(broker, key) for broker in sorted(seen.alive) for key in THROTTLE_RATES),
    ]
    now = world.cluster.values(settings)
    changes = [Change(setting=s, before=now[s], after=None) for s in settings if now.get(s) is not None]
    errors = written(world, changes)
    given = tuple(change for change in changes if change.setting not in errors)
    robbed = {run.id for change in given for run in unfinished if held([run], change.setting)}
    return replace(
        done,
        given_back=(*done.given_back, *given),
        pending={**done.pending, **{setting: str(error) for setting, error in errors.items()}},
        notes=(*done.notes, *(f"--clear-all took away what run {run} had set" for run in sorted(robbed))),
    )


def _told(
    released: Released,
    *,
    run: Run | None = None,
    waiting: tuple[TopicPartition, ...] = (),
    notes: tuple[str, ...] = (),
) -> Verification:
    return Verification(
        statuses=(),
        verdict=Progress.DONE,
        given_back=released.given_back,
        pending=released.pending,
        waiting=waiting,
        run=run,
        notes=(*notes, *released.notes),
    )


def _standing(cluster: Cluster, plan: Plan, seen: Snapshot, unfinished: Sequence[Run]) -> tuple[str, ...]:
    """A throttle on the plan's topics and the live brokers that no unfinished run holds."""
    settings = [
        *(Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS),
        *(Setting.of_broker(broker, key) for broker in sorted(seen.alive) for key in REPLICATION_RATES),
    ]
    now = cluster.values(settings)
    names: dict[tuple[str, str], list[str]] = {}
    for setting in settings:
        if now.get(setting) and not held(unfinished, setting):
            names.setdefault((setting.key, setting.kind), []).append(setting.name)
    if not names:
        return ()
    what = "; ".join(f"{key} on {kind} {','.join(those)}" for (key, kind), those in names.items())
    return (
        f"a throttle stands that no unfinished run of kquota here set: {what}; left as it is "
        "(kquota throttle doctor says whether anybody needs it)",
    )
