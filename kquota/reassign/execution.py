"""The order of reads and writes of --execute, of resume and of abort: check, record, throttle, submit; wave by wave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.errors import Busy, Conflict, Incomplete, KquotaError, Refused, Unknown, Unreachable
from kquota.measure import ByteRate
from kquota.reassign import guard, words
from kquota.reassign.hold import SETTLE, Released, World, enforce, read, record, release, release_ended, wait_until
from kquota.reassign.moves import Move, Replicas, moves, rates, rollback, throttled_brokers
from kquota.reassign.plan import Plan, run_id
from kquota.reassign.port import Clock, Cluster, Runs, Snapshot
from kquota.reassign.run import Run, covers, recreated, taking, without_topics
from kquota.reassign.throttle import Change, Setting, needed
from kquota.reassign.wave import lists_of, too_long, wanted, wave
from kquota.terms import EVERY_REPLICA, LOG_DIR_RATE, BrokerId, TopicPartition

_BETWEEN_WAVES: Final = 2.0
"""Seconds between two looks at whether there is room for the next wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the operator wants besides the plan. Rates in bytes per second, None for no throttle.

    `whole_topics`: a topic whose list would be too long is throttled as a whole, by `*`. `force` overrides moves of the
    plan's partitions that are on their way to somewhere else.
    """

    throttle: ByteRate | None = None
    log_dir_throttle: ByteRate | None = None
    log_dir_brokers: tuple[BrokerId, ...] = ()
    additional: bool = False
    same_replication_factor: bool = False
    whole_topics: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan that every check let pass. Nothing is written yet; `changes` is what would be, first.

    `run` is None when there is nothing to do. `wave` are the moves to hand over first, those under way included.
    """

    world: World
    plan: Plan
    rollback: Plan
    found: Snapshot
    known: Run | None
    run: Run | None
    moving: tuple[Move, ...] = ()
    wave: tuple[Move, ...] = ()
    wanted: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    now: Mapping[Setting, str | None] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What --execute did. `run` is None and nothing was written when every partition is where the plan wants it.

    `started` are the moves submitted now, `running` those of the plan that were under way already.
    """

    run: Run | None
    rollback: Plan
    started: tuple[TopicPartition, ...] = ()
    running: tuple[TopicPartition, ...] = ()
    notes: tuple[str, ...] = ()


def prepare(cluster: Cluster, runs: Runs, clock: Clock, plan: Plan, asked: Asked) -> Prepared:
    """Check everything that can be checked. Raises Refused, or what the cluster answered; writes nothing."""
    found = cluster.snapshot(plan.topics)
    guard.check_names(plan, found)
    unfinished = runs.unfinished()
    known = covers(plan, unfinished)
    return _prepared(cluster, runs, clock, plan, asked, found=found, known=known, unfinished=unfinished)


def prepare_again(cluster: Cluster, runs: Runs, clock: Clock, run: Run, *, force: bool = False) -> Prepared:
    """The same for a run on record, on the way to its goal. A topic that was deleted since is left out."""
    found = cluster.snapshot(run.goal.topics)
    gone = {*recreated(run, found.topic_ids), *(set(run.goal.topics) - {name.topic for name in found.partitions})}
    targets = {
        name: target for name, target in run.goal.targets.items() if name.topic not in gone and name in found.partitions
    }
    whole = any(EVERY_REPLICA in taken.ours for taken in run.taken.values())
    asked = Asked(
        throttle=run.rate, log_dir_throttle=run.log_dir_rate, additional=True, whole_topics=whole, force=force
    )
    known = replace(without_topics(run, gone), handed_over=run.handed_over | (run.goal.targets.keys() - targets.keys()))
    prepared = _prepared(
        cluster, runs, clock, Plan(targets=targets), asked, found=found, known=known, unfinished=runs.unfinished()
    )
    notes = tuple(f"topic {topic} was deleted since: what is called so now is left alone" for topic in sorted(gone))
    return replace(prepared, notes=(*notes, *prepared.notes))


def carry_out(prepared: Prepared, told: Callable[[str], None] = lambda _: None) -> Execution:
    """Throttle and start what was prepared: on record before the first write; lists and rates, then the moves (KIP-73).

    Returns when all is handed over; `told` hears of every wave but the first. Raises Refused or the cluster's own error
    when a step failed and everything written was taken back; Incomplete when something still stands; Unknown when a
    write was not seen. Doing it again changes nothing but a rate that differs.
    """
    run, world = prepared.run, prepared.world
    if run is None:
        return Execution(run=None, rollback=prepared.rollback)
    if prepared.known is None:
        world.runs.begin(run)
    else:
        world.runs.update(run)
    run, started = _first(prepared, run)
    while todo := run.waiting:
        told(f"{len(todo):,} partitions wait for the next wave: until those under way make room")
        world.clock.sleep(_BETWEEN_WAVES)
        run, more = _next(world, run)
        started += more
    running = tuple(move.partition for move in prepared.moving if move.submitted)
    return Execution(run=run, rollback=run.rollback, started=started, running=running, notes=prepared.notes)


def _prepared(
    cluster: Cluster,
    runs: Runs,
    clock: Clock,
    plan: Plan,
    asked: Asked,
    *,
    found: Snapshot,
    known: Run | None,
    unfinished: Sequence[Run],
) -> Prepared:
    moving = moves(plan, found.partitions)
    back = rollback(plan, found.partitions)
    others = tuple(run for run in unfinished if known is None or run.id != known.id)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others)
    if not moving and not asked.log_dir_brokers:
        return Prepared(world=world, plan=plan, rollback=back, found=found, known=known, run=None)
    _check(cluster, plan, moving, found, asked, known)
    if known is not None and asked.throttle is None:
        asked = replace(asked, throttle=known.rate)
    limits, notes = _limits(moving, found, asked)
    lists = lists_of(moving) if asked.throttle else ()
    now = read(cluster, {**dict.fromkeys(lists, ()), **limits})
    first, entries = _first_wave(cluster, moving, {s: now[s] for s in lists}, asked)
    everything = {**entries, **limits}
    changes = needed(everything, now)
    there = plan.targets.keys() - {move.partition for move in moving if not move.submitted}
    run = known or Run(
        id=run_id(plan, clock.now()),
        begun=clock.now(),
        plan=plan,
        rollback=back,
        rate=None,
        taken={},
        topic_ids={topic: found.topic_ids[topic] for topic in plan.topics if topic in found.topic_ids},
    )
    run = replace(
        run,
        rate=asked.throttle or run.rate,
        log_dir_rate=asked.log_dir_throttle or run.log_dir_rate,
        handed_over=run.handed_over | there,
    )
    return Prepared(
        world=world,
        plan=plan,
        rollback=run.rollback,
        found=found,
        known=known,
        run=taking(run, everything, now, others),
        moving=moving,
        wave=first,
        wanted=everything,
        now=now,
        changes=changes,
        notes=notes,
    )


def _check(
    cluster: Cluster, plan: Plan, moving: Sequence[Move], found: Snapshot, asked: Asked, known: Run | None
) -> None:
    going_back = {
        move.partition: now
        for move in moving
        if not move.submitted and (now := found.partitions[move.partition]).moving and not move.destinations
    }
    if going_back and cluster.largest_submission is not None:
        raise Refused(
            f"{guard.named(going_back)}: Kafka takes nothing back through ZooKeeper while it moves (KIP-236): wait for "
            "its end, or use --bootstrap-server; nothing was written"
        )
    guard.check_brokers(plan, [move for move in moving if move.partition not in going_back], found)
    if going_back and not asked.force:
        topics = sorted({name.topic for name in going_back})
        guard.check_return(going_back, found, cluster.minimum_in_sync(topics))
    guard.check_running(moving, found, resumed=known is not None, additional=asked.additional)
    if not asked.force:
        own = {} if known is None else {**known.rollback.targets, **known.plan.targets}
        guard.check_overridden(moving, found, own)
    guard.check_leaders(moving, found)
    if asked.same_replication_factor:
        guard.check_replication_factor(plan, found)


def _limits(
    moving: Sequence[Move], found: Snapshot, asked: Asked
) -> tuple[dict[Setting, tuple[str, ...]], tuple[str, ...]]:
    """The rates to set, and what to say of brokers that get none."""
    limits: dict[Setting, tuple[str, ...]] = {}
    notes: tuple[str, ...] = ()
    if asked.throttle is not None:
        brokers = throttled_brokers(moving)
        limits |= rates([broker for broker in brokers if broker in found.alive], asked.throttle)
        notes = tuple(
            f"broker {broker} is not alive: it gets no rate, and sends unthrottled if it comes back during the move"
            for broker in brokers
            if broker not in found.alive
        )
    if asked.log_dir_throttle is not None:
        text = (str(asked.log_dir_throttle),)
        limits |= {Setting.of_broker(broker, LOG_DIR_RATE): text for broker in asked.log_dir_brokers}
    return limits, notes


def _first_wave(
    cluster: Cluster, moving: tuple[Move, ...], lists: Mapping[Setting, str | None], asked: Asked
) -> tuple[tuple[Move, ...], dict[Setting, tuple[str, ...]]]:
    """The moves to hand over first, and their list entries. Raises Refused where a list has no room at all."""
    whole = too_long(moving, lists) if asked.whole_topics and lists else frozenset()
    by_entries = {setting: text for setting, text in lists.items() if setting.name not in whole}
    chosen = wave(moving, by_entries, cluster.largest_submission)
    if cluster.largest_submission is not None and any(move.submitted for move in moving):
        chosen = tuple(move for move in chosen if move.submitted)
    if moving and not chosen:
        setting = next(iter(by_entries))
        raise Refused(
            f"{setting} has no room for another entry: take away what nobody needs (kquota throttle doctor), or give "
            "--throttle-whole-topics to throttle the whole topic; nothing was written"
        )
    return chosen, wanted(chosen, whole) if lists else {}


def _first(prepared: Prepared, run: Run) -> tuple[Run, tuple[TopicPartition, ...]]:
    """Throttle and submit the first wave; what went wrong is taken back as long as nothing of the run has started."""
    world, resumed = prepared.world, prepared.known is not None
    todo = {move.partition: move.target for move in prepared.wave if not move.submitted}
    try:
        run = enforce(world, run, prepared.wanted, prepared.now)
        refused = _submit(world, todo)
    except Unknown as error:
        raise Unknown(
            f"{error}; run {run.id} stays open ({world.runs.place(run)}): kquota move resume goes on, kquota move "
            "abort goes back"
        ) from error
    except Busy:  # another kquota has the run now, and what is to be taken back
        raise
    except KquotaError as error:
        raise _undone(world, run, error, resumed=resumed) from error
    started = tuple(name for name in todo if name not in refused)
    if refused and not started and not resumed:
        raise _undone(world, run, Refused(words.failed(refused)), resumed=False)
    return _handed_over(world, run, todo, refused), started


def _next(world: World, run: Run) -> tuple[Run, tuple[TopicPartition, ...]]:
    """Give back what has ended, and hand over what then has room."""
    found = world.cluster.snapshot(run.goal.topics)
    there = Plan(targets={name: target for name, target in run.goal.targets.items() if name in found.partitions})
    moving = moves(there, found.partitions)
    under_way = {name for name in run.handed_over if name in found.partitions and found.partitions[name].moving}
    _, run = release_ended(world, run, run.handed_over - under_way)
    if world.cluster.largest_submission is not None and under_way:
        return run, ()
    waiting = set(run.waiting)
    todo = [move for move in moving if move.partition in waiting or move.submitted]
    gone = waiting - {move.partition for move in todo}  # deleted, or there by another's hand
    run = record(world, run, replace(run, handed_over=run.handed_over | gone))
    lists = lists_of(todo) if run.rate else ()
    now = read(world.cluster, dict.fromkeys(lists, ()))
    chosen = wave(todo, now, world.cluster.largest_submission)
    entries = wanted(chosen) if lists else {}
    fresh = {move.partition: move.target for move in chosen if not move.submitted}
    if fresh:
        run = record(world, run, taking(run, entries, now, world.others))
        run = enforce(world, run, entries, now)
    return _handed_over(world, run, fresh, _submit(world, fresh)), tuple(fresh)


def _handed_over(
    world: World, run: Run, todo: Mapping[TopicPartition, Replicas], refused: Mapping[TopicPartition, str]
) -> Run:
    """The run with these on record. Raises Incomplete for those that the cluster refused."""
    run = record(world, run, replace(run, handed_over=run.handed_over | todo.keys()))
    if refused:
        started = [str(name) for name in todo if name not in refused]
        raise Incomplete(
            f"{words.failed(refused)}; started: {', '.join(started) or 'none'}; the throttle stays until --verify "
            "finds that all have ended",
            done=started,
            undone=[str(name) for name in refused],
        )
    return run


def _submit(world: World, todo: Mapping[TopicPartition, Replicas]) -> Mapping[TopicPartition, str]:
    """The cluster's refusals. Raises Unknown unless every other move is then seen to be under way, or done."""
    if not todo:
        return {}
    lost: KquotaError | None = None
    refused: Mapping[TopicPartition, str] = {}
    try:
        refused = world.cluster.submit(todo)
    except (Unknown, Unreachable) as error:
        lost = error
    sent = Plan(targets={name: target for name, target in todo.items() if name not in refused})

    def under_way() -> bool:
        found = world.cluster.snapshot(sent.topics).partitions
        there = Plan(targets={name: target for name, target in sent.targets.items() if name in found})
        return all(move.submitted for move in moves(there, found))

    why = f"the moves were submitted and not seen under way within {SETTLE:.0f} s"
    try:
        seen = wait_until(under_way, world.clock)
    except KquotaError as error:
        # After a submit nothing may be taken back on a guess: the moves may well run.
        raise Unknown(f"{error}; {why}") from error
    if not seen:
        raise Unknown(f"{lost}; {why}" if lost else why) from lost
    return refused


def _undone(world: World, run: Run, error: KquotaError, *, resumed: bool) -> KquotaError:
    """The error to raise once what a failed step wrote has been taken back, or cannot be."""
    place = world.runs.place(run)
    if resumed:
        return Incomplete(
            f"{error}; what run {run.id} had set before stands ({place}): kquota move resume goes on, "
            "kquota move abort goes back",
            done=[],
            undone=[str(error)],
        )
    try:
        # Merging again after a conflict may have put more on record than the run we began with.
        run = covers(run.plan, world.runs.unfinished()) or run
        released = release(world, run)
    except KquotaError as second:
        released = Released(given_back=(), pending=dict.fromkeys(run.taken, str(second)))
    if not released.pending:
        kind = type(error) if isinstance(error, (Conflict, Unreachable)) else Refused
        return kind(f"{error}; no move was started and everything written was taken back")
    standing = [f"{setting} ({why})" for setting, why in released.pending.items()]
    return Incomplete(
        f"{error}; no move was started, but this may still stand: {'; '.join(standing)}; "
        f"kquota move abort takes it back ({place})",
        done=[str(change.setting) for change in released.given_back],
        undone=standing,
    )
