"""The checks before a run writes, and the changes that it would write first. A dry run ends here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.errors import Parameter, Refused
from kquota.measure import ByteRate
from kquota.reassign import guard, log_dir_actions, log_dirs
from kquota.reassign.log_dirs import LogDirReading
from kquota.reassign.moves import Move, Replicas, moves, rollback, throttled_brokers
from kquota.reassign.plan import Plan, run_id
from kquota.reassign.port import MoveCluster, MovePorts, Snapshot
from kquota.reassign.restoring import restore_changes, taking, without_topics
from kquota.reassign.run import Run, at_rate, covers, others_than, recreated
from kquota.reassign.throttle_writes import read
from kquota.reassign.wave import NO_SIZES, ListFull, MoveLimits, first_full, lists_of, too_long, wanted, wave
from kquota.settings.change import Change, needed
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import EVERY_REPLICA, LOG_DIR_RATE, REPLICATION_RATES, ReplicaId, TopicPartition

_LOOKS: Final = 10
"""kquota stops with an error after this many snapshots, if each of them differs from the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRequest:
    """The options of the operator besides the plan. Rates are bytes per second.

    A rate of None keeps the throttle of an open run of the plan, and means no throttle for a new run.
    """

    throttle: ByteRate | None = None
    log_dir_throttle: ByteRate | None = None
    additional: bool = False
    """True if other moves may be running."""
    same_replication_factor: bool = False
    """True if the plan must keep every replication factor."""
    whole_topics: bool = False
    """True if a topic whose list would be too long is throttled as a whole with `*`."""
    force: bool = False
    """True to override moves of the plan's partitions to other targets, and to skip `guard.check_return` and
    `guard.check_waiting`.
    """
    reason: str | None = None
    """The operator's reason, which is recorded with a new run."""
    limits: MoveLimits | None = None
    """None keeps the limits of an open run, and means no limits for a new run."""
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The known sizes of partitions in bytes, which a limit on the bytes in flight needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan that passed every check. Nothing is written yet."""

    ports: MovePorts
    plan: Plan
    rollback: Plan
    found: Snapshot
    known: Run | None
    """The open run of this plan, or None."""
    run: Run | None
    """The run to record, or None if every replica is in place."""
    turned: bool = False
    """True if `known` was being undone and now moves to its plan again. kquota must record this even if nothing moves.
    """
    moving: tuple[Move, ...] = ()
    """All moves of the plan that are not done."""
    wave: tuple[Move, ...] = ()
    """The moves to submit first, and the moves that are already running."""
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)
    """The wanted log dir of each replica that is not at rest in it, according to `reading`."""
    reading: LogDirReading | None = None
    """None if the plan names no log dirs, or if log dirs are ignored."""
    wanted: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    """The list entries of the first wave, and the rates for all moves."""
    now: Mapping[Setting, str | None] = field(default_factory=dict)
    """The current values of the settings in `wanted`, or None for an unset setting."""
    changes: tuple[Change, ...] = ()
    """The changes of settings to write before the first wave is submitted."""
    applied: MoveRequest = field(default_factory=MoveRequest)
    """The options, without throttles that would have no effect on this plan. The defaults if `run` is None."""
    notes: tuple[str, ...] = ()


def prepare(ports: MovePorts, plan: Plan, asked: MoveRequest) -> Prepared:
    """Return the prepared run after all checks. Writes nothing.

    If brokers can show stale replicas, kquota prepares a new run only after two readings show the same replicas. Raises
    Refused if a check fails or this user lacks a permission, and Unreachable if a broker does not report its log dirs
    or a setting cannot be read. Also raises the errors of the ports.
    """
    began = ports.clock.monotonic()
    found = ports.cluster.snapshot(plan.topics)
    guard.check_names(plan, found)
    unfinished = ports.runs.unfinished()
    known = covers(plan, unfinished)
    if known is None:
        found = _confirmed(ports, plan, found, began)
    others = others_than(known, unfinished)
    if known is None and not asked.force:
        guard.check_waiting(plan, found, others)
    back, reading = rollback(plan, found.partitions), None
    if ports.dirs is not None and plan.log_dirs:
        reading = log_dir_actions.check(ports.dirs, log_dirs.of(plan), log_dirs.replicas(back))
        back = log_dirs.with_dirs(back, reading)
    turned = known is not None and known.aborting and plan.targets != known.goal.targets
    if known is not None and turned:
        # The run is moving back, but the operator requests its plan again.
        known = replace(known, aborting=False, handed_over=frozenset())
    if known is not None and not known.aborting:
        known = replace(known, plan=plan)  # the new plan may name other log dirs
        known = _with_new_topics(known, found.topic_ids, back)
    prepared = _prepared(ports, plan, asked, found=found, known=known, others=others, back=back, reading=reading)
    return replace(prepared, turned=turned)


def prepare_again(
    ports: MovePorts, run: Run, *, force: bool = False, sizes: Mapping[TopicPartition, int] = NO_SIZES
) -> Prepared:
    """Prepare a recorded run again, with its goal as the plan. Writes nothing. Raises the errors of `prepare`.

    Deleted partitions and topics, and topics that were recreated since the run began, are left out. `notes` of the
    result names these topics. `force` and `sizes` are the same as in `MoveRequest`.
    """
    found = ports.cluster.snapshot(run.goal.topics)
    deleted = {*recreated(run, found.topic_ids), *(set(run.goal.topics) - {name.topic for name in found.partitions})}
    targets = {
        name: target
        for name, target in run.goal.targets.items()
        if name.topic not in deleted and name in found.partitions
    }
    chosen = {r: path for r, path in run.goal.log_dirs.items() if r[0] in targets}
    left = replace(run.goal, targets=targets, log_dirs=chosen)
    whole = any(EVERY_REPLICA in taken.ours for taken in run.taken.values())
    asked = MoveRequest(
        log_dir_throttle=run.log_dir_rate, additional=True, whole_topics=whole, force=force, sizes=sizes
    )
    known = replace(
        without_topics(run, deleted), handed_over=run.handed_over | (run.goal.targets.keys() - targets.keys())
    )
    others = others_than(run, ports.runs.unfinished())
    reading = ports.dirs.read(log_dirs.of(left).keys()) if ports.dirs is not None and left.log_dirs else None
    prepared = _prepared(
        ports, left, asked, found=found, known=known, others=others, back=run.rollback, reading=reading
    )
    notes = tuple(
        f"topic {topic} was deleted after the run began. kquota leaves a new topic of this name unchanged"
        for topic in sorted(deleted)
    )
    return replace(prepared, notes=(*notes, *prepared.notes))


def _confirmed(ports: MovePorts, plan: Plan, found: Snapshot, began: float) -> Snapshot:
    """Read snapshots until two successive ones show the same replicas, and return the last one. If the cluster never
    shows stale replicas, return `found`, which was read at `began`.

    These replicas become the rollback plan, but right after a move, a broker may show old and new replicas together.
    """
    cluster, clock = ports.cluster, ports.clock
    if not cluster.stale_seconds:
        return found
    places = _places(plan, found)
    for _ in range(_LOOKS):
        clock.sleep(max(0.0, began + cluster.stale_seconds - clock.monotonic()))
        began, before = clock.monotonic(), places
        found = cluster.snapshot(plan.topics)
        guard.check_names(plan, found)
        places = _places(plan, found)
        changed = [name for name in places if places[name] != before[name]]
        if not changed:
            return found
    raise Refused(
        f"{guard.named(changed)}: the replicas changed while kquota read them. Run the same command again. Nothing was "
        "written"
    )


def _places(plan: Plan, found: Snapshot) -> dict[TopicPartition, tuple[Replicas, bool]]:
    return {name: (found.partitions[name].before, found.partitions[name].moving) for name in plan.targets}


def _prepared(
    ports: MovePorts,
    plan: Plan,
    asked: MoveRequest,
    *,
    found: Snapshot,
    known: Run | None,
    others: Sequence[Run],
    back: Plan,
    reading: LogDirReading | None,
) -> Prepared:
    moving = moves(plan, found.partitions)
    unsettled = {} if reading is None else log_dirs.unsettled(log_dirs.of(plan), reading)
    if not moving and not unsettled:
        return Prepared(ports=ports, plan=plan, rollback=back, found=found, known=known, run=None)
    _check(ports.cluster, moving, found, asked, known)
    if asked.same_replication_factor:
        guard.check_replication_factor(plan, found)
    applied = _applied(asked, moving, unsettled)
    asked = applied if known is None or applied.throttle is not None else replace(applied, throttle=known.rate)
    run = known or _new(ports, plan, back, found, asked, others)
    if applied.throttle is not None:
        run = at_rate(run, applied.throttle)
    run = _with_options(run, plan, moving, asked)
    limits, notes = _limits(moving, unsettled, found, asked, run)
    lists = lists_of(moving) if asked.throttle else ()
    now = read(ports.cluster, {**dict.fromkeys(lists, ()), **limits})
    first, added = _first_wave(ports, moving, {s: now[s] for s in lists}, asked, run.limits)
    everything = {**added, **limits}
    changes = needed(everything, now)
    fresh = [move for move in moving if not move.submitted]
    written = {change.setting for change in changes} | _incomplete(wanted(fresh) if lists else {}, now)
    if fresh and run.aborting:
        restored = restore_changes(run, ports.cluster.values(list(run.taken)), others)
        written |= {change.setting for change in restored}
    ports.cluster.must_permit(written, moves=bool(fresh or (unsettled and known is None)))
    return Prepared(
        ports=ports,
        plan=plan,
        rollback=run.rollback,
        found=found,
        known=known,
        run=taking(run, everything, now, others),
        moving=moving,
        wave=first,
        log_dirs=unsettled,
        reading=reading,
        wanted=everything,
        now=now,
        changes=changes,
        applied=applied,
        notes=notes,
    )


def _incomplete(wanted_entries: Mapping[Setting, tuple[str, ...]], now: Mapping[Setting, str | None]) -> set[Setting]:
    """Return the lists that lack a wanted entry, because the first wave or a later wave writes to them."""
    return {
        setting
        for setting, those in wanted_entries.items()
        if EVERY_REPLICA not in entries(now[setting]) and not set(those) <= set(entries(now[setting]))
    }


def _applied(asked: MoveRequest, moving: Sequence[Move], unsettled: Mapping[ReplicaId, str]) -> MoveRequest:
    """Return the options without throttles that would have no effect, because the run must not record them."""
    copies = any(move.destinations for move in moving)
    return replace(
        asked,
        throttle=asked.throttle if copies else None,
        log_dir_throttle=asked.log_dir_throttle if unsettled else None,
    )


def _with_new_topics(run: Run, topic_ids: Mapping[str, str], back: Plan) -> Run:
    recreated_topics = recreated(run, topic_ids)
    if not recreated_topics:
        return run
    anew = {name: replicas for name, replicas in back.targets.items() if name.topic in recreated_topics}
    return replace(
        without_topics(run, recreated_topics),
        rollback=replace(run.rollback, targets={**run.rollback.targets, **anew}),
        topic_ids={**run.topic_ids, **{topic: topic_ids[topic] for topic in recreated_topics}},
        handed_over=run.handed_over - anew.keys(),
    )


def _new(ports: MovePorts, plan: Plan, back: Plan, found: Snapshot, asked: MoveRequest, others: Sequence[Run]) -> Run:
    begun = ports.clock.now()
    on_record = {name for other in others for name in other.goal.targets}
    return Run(
        id=run_id(plan, begun),
        begun=begun,
        plan=plan,
        rollback=back,
        rate=None,
        taken={},
        topic_ids={topic: found.topic_ids[topic] for topic in plan.topics if topic in found.topic_ids},
        owner=ports.runs.me,
        reason=asked.reason,
        crowded=any(name not in on_record for name in found.running),
    )


def _with_options(run: Run, plan: Plan, moving: Sequence[Move], asked: MoveRequest) -> Run:
    return replace(
        run,
        log_dir_rate=asked.log_dir_throttle or run.log_dir_rate,
        limits=run.limits if asked.limits is None else asked.limits,
        handed_over=run.handed_over | (plan.targets.keys() - {m.partition for m in moving if not m.submitted}),
    )


def _check(
    cluster: MoveCluster, moving: Sequence[Move], found: Snapshot, asked: MoveRequest, known: Run | None
) -> None:
    going_back = {
        move.partition: now
        for move in moving
        if not move.submitted and (now := found.partitions[move.partition]).moving and not move.destinations
    }
    if going_back and cluster.largest_submission is not None:
        raise Refused(
            f"{guard.named(going_back)}: Kafka cannot cancel a running move over ZooKeeper (KIP-455). Wait until it "
            "ends, or use ",
            Parameter("bootstrap_server"),
            ". Nothing was written",
        )
    guard.check_brokers([move for move in moving if move.partition not in going_back], found, known)
    if not asked.force and (doubtful := guard.losing_replicas(going_back, found)):
        guard.check_return(doubtful, found, cluster.minimum_in_sync(sorted({name.topic for name in doubtful})))
    guard.check_running(moving, found, known, additional=asked.additional)
    if not asked.force:
        guard.check_overridden(moving, found, known)
    guard.check_leaders(moving, found, known)


def _limits(
    moving: Sequence[Move], unsettled: Collection[ReplicaId], found: Snapshot, asked: MoveRequest, run: Run
) -> tuple[dict[Setting, tuple[str, ...]], tuple[str, ...]]:
    """Return the rates to set, and a note for each dead broker whose replication rates cannot be set."""
    limits: dict[Setting, tuple[str, ...]] = {}
    notes: tuple[str, ...] = ()
    if asked.throttle is not None:
        brokers = throttled_brokers(moving)
        alive = sorted(broker for broker in brokers if broker in found.alive)
        settings = [Setting.of_broker(broker, key) for broker in alive for key in REPLICATION_RATES]
        limits |= {setting: (str(run.rate_on(setting)),) for setting in settings}
        notes = tuple(
            f"broker {broker} is dead, so kquota sets no throttle rate on it. If it starts during the move, it can "
            "send or receive copies without a throttle of its own"
            for broker in brokers
            if broker not in found.alive
        )
    if asked.log_dir_throttle is not None:
        # Kafka's tool sets this rate on every broker for which the plan names a log dir.
        copying = sorted({broker for _, broker in unsettled} & found.alive)
        limits |= {Setting.of_broker(broker, LOG_DIR_RATE): (str(asked.log_dir_throttle),) for broker in copying}
    return limits, notes


def _first_wave(
    ports: MovePorts,
    moving: tuple[Move, ...],
    lists: Mapping[Setting, str | None],
    asked: MoveRequest,
    limits: MoveLimits,
) -> tuple[tuple[Move, ...], dict[Setting, tuple[str, ...]]]:
    whole = too_long(moving, lists) if asked.whole_topics and lists else frozenset()
    by_entries = {setting: text for setting, text in lists.items() if setting.name not in whole}
    largest = ports.cluster.largest_submission
    chosen = wave(moving, by_entries, largest, limits, asked.sizes)
    if largest is not None and any(move.submitted for move in moving):
        chosen = tuple(move for move in chosen if move.submitted)
    if not chosen and (full := first_full(moving, by_entries)):
        raise ListFull(full, ", so nothing was written")
    return chosen, wanted(chosen, whole) if lists else {}
