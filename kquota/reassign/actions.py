"""The order of reads and writes: execute a plan under a throttle, and verify it, which ends the throttle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kquota.errors import Conflict, Incomplete, KquotaError, Refused, Unknown, Unreachable
from kquota.measure import ByteRate
from kquota.reassign import guard, words
from kquota.reassign.hold import SETTLE, Released, Wanted, World, enforce, read, release, wait_until
from kquota.reassign.moves import Move, Replicas, list_entries, moves, rates, rollback, throttled_brokers
from kquota.reassign.plan import Plan, run_id
from kquota.reassign.port import Clock, Cluster, Runs, Snapshot
from kquota.reassign.progress import Progress, Status, statuses, verdict
from kquota.reassign.run import Run, covers, held, taking
from kquota.reassign.throttle import Change, Setting, needed
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, TopicPartition


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What --verify found and gave back; `pending` are settings still to be given back, and why not now."""

    statuses: tuple[Status, ...]
    verdict: Progress
    given_back: tuple[Change, ...] = ()
    pending: Mapping[Setting, str]
    notes: tuple[str, ...] = ()


def execute(
    cluster: Cluster, runs: Runs, clock: Clock, plan: Plan, *, throttle: ByteRate | None, additional: bool = False
) -> Execution:
    """Move the plan's partitions, at most `throttle` bytes per second in and out of every broker that takes part.

    On record before the first write; list entries, then rates, then the moves (KIP-73). Executing the same plan again
    changes nothing but a rate that differs. Raises Refused before anything is written; Refused or the cluster's own
    error when a step failed and everything written was taken back; Incomplete when something still stands; Unknown when
    a write was not seen.
    """
    found = cluster.snapshot(plan.topics)
    guard.check_names(plan, found)
    moving = moves(plan, found.partitions)
    if not moving:
        return Execution(run=None, rollback=rollback(plan, found.partitions))
    unfinished = runs.unfinished()
    known = covers(plan, unfinished)
    guard.check_moves(moving, found, additional=additional, resumed=known is not None)
    others = tuple(run for run in unfinished if run is not known)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others)
    lists, limits, notes = _throttle(moving, found, throttle)
    now = read(cluster, {**lists, **limits})
    needed({**lists, **limits}, now)  # a list that is too long is refused before anything is on record
    run = known or Run(
        id=run_id(plan, clock.now()),
        begun=clock.now(),
        plan=plan,
        rollback=rollback(plan, found.partitions),
        rate=throttle,
        taken={},
    )
    recorded = taking(replace(run, rate=throttle or run.rate), {**lists, **limits}, now, others)
    if known is None:
        runs.begin(recorded)
    elif recorded != known:
        runs.update(recorded)
    started = _carry_out(world, recorded, lists, limits, now, moving, resumed=known is not None)
    running = tuple(move.partition for move in moving if move.submitted)
    return Execution(run=recorded, rollback=run.rollback, started=started, running=running, notes=notes)


def verify(cluster: Cluster, runs: Runs, clock: Clock, plan: Plan, *, preserve: bool = False) -> Verification:
    """What has become of the plan; once all of it has ended, everything its run took is given back, value by value.

    Ended elsewhere gives back, too. With `preserve`, and without an unfinished run of this plan, nothing is written.
    Raises Unreachable.
    """
    found = _settled_statuses(cluster, clock, plan)
    outcome = verdict(found)
    if outcome is Progress.IN_PROGRESS or preserve:
        return Verification(statuses=found, verdict=outcome, pending={})
    unfinished = runs.unfinished()
    run = covers(plan, unfinished)
    if run is None:
        standing = _standing(cluster, plan, unfinished)
        return Verification(statuses=found, verdict=outcome, pending={}, notes=standing)
    others = tuple(other for other in unfinished if other is not run)
    released = release(World(cluster=cluster, runs=runs, clock=clock, others=others), run)
    return Verification(
        statuses=found,
        verdict=outcome,
        given_back=released.given_back,
        pending=released.pending,
        notes=released.notes,
    )


def _throttle(moving: Sequence[Move], found: Snapshot, rate: ByteRate | None) -> tuple[Wanted, Wanted, tuple[str, ...]]:
    if rate is None:
        return {}, {}, ()
    brokers = throttled_brokers(moving)
    notes = tuple(
        f"broker {broker} is not alive: it gets no rate, and sends unthrottled if it comes back during the move"
        for broker in brokers
        if broker not in found.alive
    )
    return list_entries(moving), rates([b for b in brokers if b in found.alive], rate), notes


def _carry_out(
    world: World,
    run: Run,
    lists: Wanted,
    limits: Wanted,
    now: Mapping[Setting, str | None],
    moving: Sequence[Move],
    *,
    resumed: bool,
) -> tuple[TopicPartition, ...]:
    todo = {move.partition: move.target for move in moving if not move.submitted}
    try:
        run = enforce(world, run, lists, now)
        run = enforce(world, run, limits, now)
        refused = _submit(world, todo)
    except Unknown as error:
        raise Unknown(
            f"{error}; run {run.id} stays open ({world.runs.place(run)}): --execute the same plan again to go on, "
            "or --verify to take its throttle back"
        ) from error
    except KquotaError as error:
        raise _undone(world, run, error, resumed=resumed) from error
    started = tuple(name for name in todo if name not in refused)
    if not refused:
        return started
    if not started and not resumed:
        raise _undone(world, run, Refused(words.failed(refused)), resumed=False)
    raise Incomplete(
        f"{words.failed(refused)}; started: {', '.join(map(str, started)) or 'none'}; "
        "the throttle stays until --verify finds that all have ended",
        done=[str(name) for name in started],
        undone=[str(name) for name in refused],
    )


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
        there = all(name in found for name in sent.targets)
        return there and all(move.submitted for move in moves(sent, found))

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
            f"{error}; what run {run.id} had set before stands ({place}): --execute the same plan again to go on",
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
        f"--verify takes it back ({place})",
        done=[str(change.setting) for change in released.given_back],
        undone=standing,
    )


def _settled_statuses(cluster: Cluster, clock: Clock, plan: Plan) -> tuple[Status, ...]:
    """Statuses in which "elsewhere" is no stale read: a KRaft broker may still show what was before the move's end."""
    found: tuple[Status, ...] = ()

    def certain() -> bool:
        nonlocal found
        snapshot = cluster.snapshot(plan.topics)
        found = statuses(plan, snapshot.partitions, snapshot.running)
        return verdict(found) is not Progress.ELSEWHERE

    wait_until(certain, clock)
    return found


def _standing(cluster: Cluster, plan: Plan, unfinished: Sequence[Run]) -> tuple[str, ...]:
    """A throttle on the plan's topics and the live brokers that no unfinished run holds."""
    alive = sorted(cluster.snapshot(plan.topics).alive)
    settings = [
        *(Setting.of_topic(topic, key) for topic in plan.topics for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)),
        *(Setting.of_broker(broker, key) for broker in alive for key in (LEADER_RATE, FOLLOWER_RATE)),
    ]
    now = cluster.values(settings)
    left = [setting for setting in settings if now.get(setting) and not held(unfinished, setting)]
    names: dict[tuple[str, str], list[str]] = {}
    for setting in left:
        names.setdefault((setting.key, setting.kind), []).append(setting.name)
    if not left:
        return ()
    what = "; ".join(f"{key} on {kind} {','.join(those)}" for (key, kind), those in names.items())
    return (f"a throttle stands that no unfinished run of kquota here set: {what}; left as it is",)
