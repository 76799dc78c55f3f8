"""The order of reads and writes of `--verify`: read the state of a plan, and restore the throttle of ended moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.errors import KquotaError, Refused
from kquota.reassign import log_dirs
from kquota.reassign.moves import Move
from kquota.reassign.plan import Plan
from kquota.reassign.port import MoveCluster, MovePorts, ReplicaDirs, Runs, Snapshot
from kquota.reassign.progress import PartitionStatus, Progress, led_by_others, statuses, verdict
from kquota.reassign.restoring import held_by, may_stay_set, part_of, unrecorded_removals, without_topics
from kquota.reassign.run import Run, covers, others_than, recreated, still_waiting
from kquota.reassign.throttle_writes import (
    Unread,
    clear_dead,
    record,
    restore_ended,
    restore_run,
    write,
)
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import (
    EVERY_REPLICA,
    LEADER_RATE,
    REPLICATION_RATES,
    THROTTLE_LISTS,
    THROTTLE_RATES,
    BrokerId,
    TopicPartition,
)

_READINGS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of `--verify`."""

    statuses: tuple[PartitionStatus, ...]
    verdict: Progress
    """The state of all partitions and log dirs together."""
    log_dirs: tuple[log_dirs.LogDirStatus, ...] = ()
    restored: tuple[Change, ...] = ()
    pending: Mapping[Setting, KquotaError] = field(default_factory=dict)
    """The settings that kquota could not restore, clear or read, with the reasons."""
    waiting: tuple[TopicPartition, ...] = ()
    """The partitions that are not submitted yet, for example because kquota was interrupted."""
    run: Run | None = None
    """The run of this plan that was open when the verification began. None if there was none, or with `preserve`."""
    unknown: Mapping[Setting, str] = field(default_factory=dict)
    """Throttles that stay set, with their values. They may belong to a run of another host that is not visible on this
    host, or to a run in `unreadable`.
    """
    unreadable: tuple[str, ...] = ()
    """The ids of recorded runs that cannot be read. Empty if no throttle stays set."""
    gap: KquotaError | None = None
    """The reason why the run of a throttle in `unknown` may be missing from the shared record, or None."""
    lost: tuple[Setting, ...] = ()
    """The settings of the run that another client removed although the move needs them."""
    cleared_of: tuple[str, ...] = ()
    """The ids of the open runs whose settings `clear_all` cleared."""
    too_early: bool = False
    """True if `clear_all` cleared nothing, because moves are running."""
    unread: tuple[BrokerId, ...] | None = ()
    """The dead brokers that have replicas of the plan's topics, and whose rates are unknown. An unrecorded run may have
    set these rates. None if it is unknown which brokers are dead.
    """
    undone: Run | None = None
    """The run of this plan, if the replicas are elsewhere because this run was undone, or because a later move has
    moved partitions back.
    """
    unrecorded: bool = False
    """True if the replicas are elsewhere for an unknown reason, because no run of this plan is recorded here."""
    led_by_others: tuple[TopicPartition, ...] = ()
    """The partitions that need an election, because their preferred leader is able to lead, but another broker leads.
    The preferred leader is the first replica in the plan, or in the rollback plan if the run of this plan was undone or
    is being undone.
    """
    notes: tuple[str, ...] = ()


def verify(
    ports: MovePorts,
    plan: Plan,
    *,
    preserve: bool = False,
    clear_all: bool = False,
    cancelled: Iterable[Move] = (),
    fenced: Collection[BrokerId] = (),
) -> Verification:
    """Read the state of the plan, and restore values of its run: the list entries of partitions that are not moving,
    and the rates when no partition of the run is moving between brokers or log dirs.

    kquota restores the entries of a partition that is not moving even if the partition does not have the replicas of
    the plan. Without an open run of this plan, kquota removes only list entries that must come from the moves of the
    plan, or from the moves that were just `cancelled`. With `preserve`, nothing is written. To be certain of the state,
    kquota may wait and read it several times. Raises the errors of the ports.

    If no move is running anywhere, `clear_all` also removes every throttle rate of every live broker and the lists of
    the plan's topics, as Kafka's tool does. It also removes the throttle rates of dead brokers: `fenced`, and those
    that have replicas of any topic.
    """
    unfinished = () if preserve else ports.runs.unfinished()
    run = covers(plan, unfinished)
    cancelled = tuple(cancelled)
    expected = _submitted(run, plan) - {move.partition for move in cancelled}
    found, seen = _settled(ports, plan, expected)
    state = _state_of(seen, found, plan, ports.dirs)
    if preserve:
        return state
    if run is None:
        changes = _removals_without_record(ports.cluster, plan, state.statuses, unfinished, cancelled)
        written = write(ports, changes)
        done = replace(state, restored=written.restored, pending=written.pending)
    else:
        of_goal = state
        if plan.targets != run.goal.targets:  # the run is being undone
            of_goal = _state_of(seen, statuses(run.goal, seen.partitions, seen.running), run.goal, ports.dirs)
        try:
            done = _restored(ports, run, seen, of_goal, state)
        except Refused as error:
            raise may_stay_set(error, [run]) from error
    if clear_all:
        done = _cleared(ports, plan, fenced, done, unfinished)
    reported = _reported(ports, plan, seen, done, ports.runs.unfinished())
    return replace(reported, unread=()) if clear_all and not done.too_early else reported


def unless_it_writes(ports: MovePorts, plan: Plan) -> Verification | None:
    """Verify without the lock. Return None if `verify` would write, or if a reliable result needs the lock.

    A plan that is not done needs the lock, because the kquota that holds the lock may be executing this plan. Raises
    the errors of the ports.
    """
    unfinished = ports.runs.unfinished()
    if covers(plan, unfinished) is not None or not ports.runs.settled:
        return None
    seen = ports.cluster.snapshot(plan.topics)
    state = _state_of(seen, statuses(plan, seen.partitions, seen.running), plan, ports.dirs)
    if state.verdict is not Progress.DONE:
        return None
    if _removals_without_record(ports.cluster, plan, state.statuses, unfinished, ()):
        return None
    unfinished = ports.runs.unfinished()
    if covers(plan, unfinished) is not None:  # a run of this plan began after the first read
        return None
    return _reported(ports, plan, seen, state, unfinished)


def _state_of(seen: Snapshot, found: tuple[PartitionStatus, ...], plan: Plan, dirs: ReplicaDirs | None) -> Verification:
    """Return the state of the plan, before anything is restored. `found` are the statuses in `seen`."""
    wanted = log_dirs.of(plan)
    states: tuple[log_dirs.LogDirStatus, ...] = ()
    if dirs is not None and wanted:
        states = log_dirs.statuses(wanted, dirs.read(wanted.keys()), seen.partitions, seen.running)
    every = [*(status.progress for status in found), *(status.progress for status in states)]
    return Verification(statuses=found, verdict=verdict(every), log_dirs=states)


def _reported(
    ports: MovePorts, plan: Plan, seen: Snapshot, done: Verification, unfinished: Sequence[Run]
) -> Verification:
    """Add the throttles that stay set, and what is known about the run of the plan, to the result."""
    shared = ports.runs.shared and not ports.runs.hidden
    staying: Mapping[Setting, str] = {}
    known = done.run
    if known is None and shared:
        # Ended runs are read only if the result can depend on them, because there are many, with long plans.
        settings = _may_stay(plan, seen, None)
        staying = _staying(settings, ports.cluster.values(settings), None, unfinished)
        known = _ended(ports.runs, plan) if staying or unfinished else None
    elif not shared:
        known = known or _ended(ports.runs, plan)
        settings = _may_stay(plan, seen, known)
        now = ports.cluster.values(settings)
        staying = _staying(settings, now, known, unfinished)
        if known is None and done.verdict is not Progress.IN_PROGRESS:
            unknown = dict.fromkeys((s for s in settings if s not in now), Unread())
            done = replace(done, unread=_unread(ports.cluster, seen), pending={**unknown, **done.pending})
    goal = plan if known is None else known.goal
    if done.verdict is Progress.ELSEWHERE:
        last = known or _ended(ports.runs, plan)
        undone = last if last is not None and _was_undone(last, plan, done.statuses) else None
        done = replace(done, undone=undone, unrecorded=last is None)
        goal = goal if undone is None else undone.rollback
    done = replace(done, led_by_others=led_by_others(goal, seen.partitions, seen.alive))
    if done.verdict is not Progress.IN_PROGRESS:
        done = replace(done, notes=(*done.notes, *_held_by_others(known, unfinished)))
    if staying and ports.runs.unreadable:
        return replace(done, unknown=staying, unreadable=ports.runs.unreadable)
    if not shared and done.verdict is not Progress.IN_PROGRESS:
        return replace(done, unknown=staying, gap=ports.runs.unseen if ports.runs.shared else None)
    if not staying or known is not None:
        return done
    note = f"no recorded open run holds these throttles: {named(staying)}. kquota leaves them unchanged"
    return replace(done, notes=(*done.notes, note))


def _was_undone(run: Run, plan: Plan, found: Iterable[PartitionStatus]) -> bool:
    """Return whether `run` executed `plan` and was undone, or is being undone.

    A cancellation and an executed rollback plan also count, because the partitions then have their previous replicas.
    """
    if plan.targets != run.plan.targets:
        return False
    elsewhere = [status for status in found if status.progress is Progress.ELSEWHERE]
    before = run.rollback.targets
    return run.aborting or bool(elsewhere and all(s.replicas == before.get(s.partition) for s in elsewhere))


def _ended(runs: Runs, plan: Plan) -> Run | None:
    of_plan = [
        run for run in runs.every() if run.finished is not None and plan.targets in (run.plan.targets, run.goal.targets)
    ]
    return of_plan[-1] if of_plan else None


def _may_stay(plan: Plan, seen: Snapshot, run: Run | None) -> list[Setting]:
    if run is not None:
        return [s for s in run.taken if s.key in REPLICATION_RATES]
    return [
        *(Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS),
        *(Setting.of_broker(broker, key) for broker in sorted(seen.alive) for key in REPLICATION_RATES),
    ]


def _staying(
    settings: Sequence[Setting], now: Mapping[Setting, str | None], run: Run | None, unfinished: Sequence[Run]
) -> dict[Setting, str]:
    """Return the values that stay set and that no recorded open run holds, except prior values of `run`."""
    priors = {} if run is None or run.crowded else {s: taken.prior for s, taken in run.taken.items()}
    return {
        setting: value
        for setting in settings
        if (value := now.get(setting)) and value != priors.get(setting) and not held_by(unfinished, setting)
    }


def _unread(cluster: MoveCluster, seen: Snapshot) -> tuple[BrokerId, ...]:
    settings = {Setting.of_broker(broker, LEADER_RATE): broker for broker in _dead(seen)}
    known = cluster.values(list(settings)) if settings else {}
    return tuple(broker for setting, broker in settings.items() if setting not in known)


def _submitted(run: Run | None, plan: Plan) -> set[TopicPartition]:
    return set() if run is None or run.goal.targets != plan.targets else plan.targets.keys() - set(run.waiting)


def _settled(
    ports: MovePorts, plan: Plan, expected: Collection[TopicPartition]
) -> tuple[tuple[PartitionStatus, ...], Snapshot]:
    """Read the state of the plan, and read it again if a move may have begun or ended during the read.

    If the move of a partition in `expected` seems to have ended elsewhere, kquota reads up to `_READINGS` times. A
    broker on a busy machine may need more than `stale_seconds` to show the end of a move.
    """
    cluster, readings = ports.cluster, 0
    while True:
        seen = cluster.snapshot(plan.topics)
        found = statuses(plan, seen.partitions, seen.running)
        readings += 1
        stale = cluster.stale_seconds and verdict(s.progress for s in found) is Progress.ELSEWHERE
        elsewhere = {s.partition for s in found if s.progress is Progress.ELSEWHERE and s.replicas}
        if stale and elsewhere.intersection(expected):
            wanted = _READINGS
        else:
            wanted = 2 if stale or _may_have_begun(seen, found) else 1
        if readings >= wanted:
            return found, seen
        ports.clock.sleep(cluster.stale_seconds)


def _may_have_begun(seen: Snapshot, found: Iterable[PartitionStatus]) -> bool:
    """Return whether a partition without a running move has a replica that is not in sync. If a move begins between the
    two reads of a snapshot, its partition already has the new replicas, and can look as if the move had ended.
    """
    at_rest = [seen.partitions.get(s.partition) for s in found if s.progress is not Progress.IN_PROGRESS]
    return any(now is not None and now.isr and set(now.replicas) - set(now.isr) for now in at_rest)


def _restored(ports: MovePorts, run: Run, seen: Snapshot, of_goal: Verification, done: Verification) -> Verification:
    """Restore the values of the run that are no longer needed for its goal, and add them to `done`. Rates stay while
    partitions move, also between the log dirs of a broker.
    """
    moving = {status.partition for status in of_goal.statuses if status.progress is Progress.IN_PROGRESS}
    moving |= {status.partition for status in of_goal.log_dirs if status.progress is Progress.IN_PROGRESS}
    at_rest = {s.partition for s in of_goal.statuses if s.progress is Progress.ELSEWHERE and s.replicas}
    recreated_topics = recreated(run, seen.topic_ids)
    run = record(ports, run, without_topics(run, recreated_topics))
    waiting = tuple(name for name in still_waiting(run, seen.topic_ids) if name in at_rest)
    if moving:
        restoration, run = restore_ended(ports, run, run.plan.targets.keys() - moving)
        lost = _lost(ports, run, moving)
    else:
        restoration, lost = restore_run(ports, run, close=not waiting), ()
    notes = tuple(
        f"topic {topic} was deleted and created again after the run began. kquota leaves the new topic unchanged"
        for topic in recreated_topics
    )
    return replace(
        done,
        run=run,
        restored=restoration.restored,
        pending=restoration.pending,
        waiting=waiting,
        lost=lost,
        notes=(*notes, *restoration.notes),
    )


def _lost(ports: MovePorts, run: Run, moving: Collection[TopicPartition]) -> tuple[Setting, ...]:
    now = ports.cluster.values(list(run.taken))
    lost = [
        setting
        for setting, taken in part_of(run, moving).taken.items()
        if setting in now and not {*taken.ours, EVERY_REPLICA} & {*entries(now[setting])}
    ]
    lost += [setting for setting in run.held if not setting.is_list and setting in now and now[setting] is None]
    return tuple(lost)


def _removals_without_record(
    cluster: MoveCluster,
    plan: Plan,
    found: Iterable[PartitionStatus],
    unfinished: Sequence[Run],
    cancelled: Iterable[Move],
) -> tuple[Change, ...]:
    """Return the changes that remove the list entries of the plan's ended moves and of the `cancelled` moves.

    A topic is left out if an open run has entries in its lists, because these entries and entries of another tool can
    together look like a move. The partitions of open runs are also left out, because the records of these runs show the
    values that kquota set.
    """
    known = {name for run in unfinished for name in run.plan.targets}
    in_use = {setting.name for run in unfinished for setting in run.held if setting.is_list}
    settings = [Setting.of_topic(topic, key) for topic in plan.topics if topic not in in_use for key in THROTTLE_LISTS]
    now = cluster.values(settings)
    ended = [status for status in found if status.progress is Progress.DONE and status.partition not in known]
    done = {status.partition: status.target for status in ended}
    stopped = {move.partition: move for move in cancelled if move.partition not in known}
    return unrecorded_removals(done, now, stopped)


def _cleared(
    ports: MovePorts, plan: Plan, fenced: Collection[BrokerId], done: Verification, unfinished: Sequence[Run]
) -> Verification:
    seen = ports.cluster.snapshot(None)
    if seen.running:
        return replace(done, too_early=True)
    dead = {*_dead(seen), *fenced} - seen.alive
    lists = [Setting.of_topic(topic, key) for topic in plan.topics for key in THROTTLE_LISTS]
    rates = {Setting.of_broker(b, key): b for b in sorted(seen.alive | dead) for key in THROTTLE_RATES}
    settings = [*lists, *rates]
    now = ports.cluster.values(settings)
    changes = [Change(setting=s, before=now[s], after=None) for s in settings if now.get(s) is not None]
    restoration = write(ports, changes)
    unread = [s for s in settings if s not in now]
    overwritten = clear_dead(ports.cluster, sorted(dead.intersection(map(rates.get, unread))), THROTTLE_RATES)
    unknown = {s: Unread() for s in unread if rates.get(s) not in dead}
    cleared = {change.setting for change in restoration.restored}
    cleared.update(s for s in unread if rates.get(s) in dead and s not in overwritten.pending)
    cleared_of = {run.id for run in unfinished if not cleared.isdisjoint(run.held)}
    return replace(
        done,
        restored=(*done.restored, *restoration.restored),
        pending={**done.pending, **restoration.pending, **overwritten.pending, **unknown},
        cleared_of=tuple(sorted(cleared_of)),
        notes=(*done.notes, *overwritten.notes),
    )


def _dead(seen: Snapshot) -> tuple[BrokerId, ...]:
    return tuple(sorted({broker for now in seen.partitions.values() for broker in now.replicas} - seen.alive))


def _held_by_others(run: Run | None, unfinished: Sequence[Run]) -> tuple[str, ...]:
    if run is None:
        return ()
    lines = []
    for other in others_than(run, unfinished):
        rates = set(other.rates_held)
        both = [setting for setting in run.taken if setting in rates]
        if both:
            whose = "" if other.owner is None else f" of {other.owner}"
            lines.append(
                f"run {other.id}{whose} is open and also holds rates: {named(both)}. They stay set until that run ends"
            )
    return tuple(lines)


def named(settings: Iterable[Setting]) -> str:
    """Return settings on one line: each key with its brokers or topics."""
    names: dict[tuple[str, str], list[str]] = {}
    for setting in settings:
        names.setdefault((setting.key, setting.kind), []).append(setting.name)
    return "; ".join(
        f"{key} on {kind}{'' if len(those) == 1 else 's'} {','.join(those)}" for (key, kind), those in names.items()
    )
