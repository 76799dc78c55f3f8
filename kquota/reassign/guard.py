"""The checks that refuse a move before the first write, or hold it back in a later wave."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kquota.errors import NextStep, Parameter, Refused, StepFor
from kquota.list_text import few, joined
from kquota.measure import counted
from kquota.reassign.moves import Move, PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.run import Run, still_waiting
from kquota.reassign.words import EXISTING
from kquota.terms import BrokerId, TopicPartition

_SHOWN = 5


def check_names(plan: Plan, found: Snapshot) -> None:
    """Raise Refused unless every topic and partition of the plan exists."""
    topics = {name.topic for name in found.partitions}
    for topic in plan.topics:
        if topic not in topics:
            raise Refused(f"Topic {topic} not found. Remove it from the plan or correct its name. Nothing was written")
    if missing := [name for name in plan.targets if name not in found.partitions]:
        them = "it" if len(missing) == 1 else "them"
        raise Refused(f"Unable to find partition: {named(missing)}. Remove {them} from the plan. Nothing was written")


def check_brokers(moving: Sequence[Move], found: Snapshot, known: Run | None) -> None:
    """Raise Refused unless every target broker of a new move is alive. `known` is the open run of these moves, and
    changes only the message.

    Moves that are already submitted are not checked: if a broker died during a move, the other moves still continue.
    """
    wanted = {broker for move in moving if not move.submitted for broker in move.target}
    if unknown := sorted(wanted - found.alive):
        rest: tuple[object, ...] = (", or use a plan without this broker",)
        if known is not None and known.aborting:
            rest = _undo_without(unknown[0], known, found)
        start = (
            f"Unknown broker id {unknown[0]} (live brokers: {joined(sorted(found.alive))}). Start broker {unknown[0]}"
        )
        raise Refused(start, *rest, ". Nothing was written")


def _undo_without(broker: BrokerId, run: Run, found: Snapshot) -> tuple[object, ...]:
    """Return the end of the message: the reason why `run` cannot be undone without the dead broker. If the operator can
    cancel the running moves instead, the text also names the command for the cancellation.
    """
    why = ", because the run cannot be undone without this broker"
    if names := [name for name in run.goal.targets if _leaderless_without(broker, name, found)]:
        return (f"{why}. Without it, {named(names)} can only get a leader by an unclean election, which can lose data",)
    if any(name in found.running for name in run.goal.targets):
        return (f"{why}. To cancel only the moves that are still running, use ", NextStep.CANCEL_MOVES)
    return (why,)


def _leaderless_without(broker: BrokerId, name: TopicPartition, found: Snapshot) -> bool:
    now = found.partitions.get(name)
    return now is not None and now.leader is None and broker in now.replicas and set(now.isr) <= {broker}


def foreign_moves(moving: Sequence[Move], found: Snapshot, known: Run | None) -> tuple[TopicPartition, ...]:
    """Return the running moves of the cluster whose target is in neither the plan nor the rollback plan of `known`, the
    open run of this plan.

    If `known` is None, return all running moves. If `known` has nothing left to submit, the result is empty, because
    other moves then do not matter.
    """
    if known is not None and all(move.submitted for move in moving):
        return ()
    return tuple(name for name, now in found.running.items() if now.target not in _targets(known, name))


def check_running(moving: Sequence[Move], found: Snapshot, known: Run | None, *, additional: bool) -> None:
    """Raise Refused, in the words of Kafka, while there are `foreign_moves`, unless `additional` allows them."""
    if not additional and foreign_moves(moving, found, known):
        raise Refused(EXISTING)


def check_waiting(plan: Plan, found: Snapshot, others: Collection[Run]) -> None:
    """Raise Refused if another open run would later move a partition of the plan to other replicas, because it has not
    submitted the partition yet.
    """
    for run in others:
        waiting = [name for name in still_waiting(run, found.topic_ids) if name in plan.targets]
        met = [name for name in waiting if plan.targets[name] != run.goal.targets[name]]
        if met:
            raise Refused(
                f"run {run.id}: {counted(len(met), 'move')} of this run would later override the plan, because the run "
                f"has not submitted {'it' if len(met) == 1 else 'them'} yet ({named(met)}). Continue the run with ",
                StepFor(NextStep.RESUME_RUN, run.id),
                ", undo it with ",
                StepFor(NextStep.ABORT_RUN, run.id),
                ", or give ",
                Parameter("force"),
                ". Nothing was written",
            )


def check_overridden(moving: Sequence[Move], found: Snapshot, known: Run | None) -> None:
    """Raise Refused for a partition that is already moving to another target.

    `known` is the open run of this plan. A target in its plan or its rollback plan is not refused.
    """
    for move in moving:
        now = found.partitions[move.partition]
        if now.moving and not move.submitted and now.target not in _targets(known, move.partition):
            raise Refused(
                f"{move.partition} is already moving to {joined(now.target)}. Cancel that move first, or give ",
                Parameter("force"),
                " to override it. Nothing was written",
            )


def check_leaders(moving: Sequence[Move], found: Snapshot, known: Run | None) -> None:
    """Raise Refused for a new copy of a partition that has no leader to copy from. `known` is the open run of these
    moves, and changes only the message.

    Moves that are already submitted are not checked, because they start by themselves when the partition has a leader.
    """
    for move in moving:
        if move.destinations and not move.submitted and found.partitions[move.partition].leader is None:
            rest = ", or use a plan without this partition"
            if known is not None:
                rest = ". An unclean election of another replica can lose data"
            raise Refused(
                f"{move.partition} has no leader, so no copy of it can start. Start a broker that has an in-sync "
                f"replica (replicas: {joined(move.sources)}){rest}. Nothing was written"
            )


def obstacle(move: Move, found: Snapshot, run: Run, *, force: bool) -> str | None:
    """Return the reason why a move of a later wave of `run` must wait, or None.

    A cancellation needs no live brokers. With `force`, the move overrides a move to another target.
    """
    now = found.partitions[move.partition]
    if now.moving and now.target not in _targets(run, move.partition) and not force:
        return f"another client has started a move to {joined(now.target)}"
    cancels = now.moving and not move.destinations
    if not cancels and (dead := [broker for broker in move.target if broker not in found.racks]):
        return f"broker {min(dead)} is dead"
    if move.destinations and now.leader is None:
        return "there is no leader to copy from"
    return None


def check_replication_factor(plan: Plan, found: Snapshot) -> None:
    """Raise Refused, with the partitions, if the plan would change a replication factor.

    During a move, the replication factor is that of the move's target, as in controllers of Kafka 4.3.1.
    """
    changed = [
        f"{name} from {before} to {after}"
        for name, target in plan.targets.items()
        if (before := len(found.partitions[name].target)) != (after := len(target))
    ]
    if changed:
        raise Refused(
            f"the plan changes the replication factor of {counted(len(changed), 'partition')} "
            f"({few(changed, _SHOWN)}), which ",
            Parameter("disallow_replication_factor_change"),
            " forbids. Nothing was written. Correct the plan, or leave out this option",
        )


def losing_replicas(
    going_back: Mapping[TopicPartition, PartitionReplicas], found: Snapshot
) -> Mapping[TopicPartition, PartitionReplicas]:
    """Return the partitions with a previous replica that is out of sync. Only `check_return` of these partitions can
    fail, so `min.insync.replicas` of all other topics need not be read.
    """
    return {name: now for name, now in going_back.items() if not set(now.before) <= found.alive.intersection(now.isr)}


def check_return(
    going_back: Mapping[TopicPartition, PartitionReplicas], found: Snapshot, minimum_in_sync: Mapping[str, int]
) -> None:
    """Raise Refused if a cancellation would leave a partition with too few replicas in sync (KAFKA-14424).

    Without a live replica in sync, the partition has no leader. With fewer than `min.insync.replicas`, the leader
    rejects writes with `acks=all`. If at least one live replica is in sync and all such replicas stay, the cancellation
    is not refused, because then it makes nothing worse. `minimum_in_sync` is by topic, with 1 for a missing topic.
    """
    for name, now in going_back.items():
        in_sync = {broker for broker in now.isr if broker in found.alive}
        left = in_sync & set(now.before)
        least = required_in_sync(now, minimum_in_sync.get(name.topic, 1))
        if len(left) < least and (not left or len(left) < len(in_sync)):
            raise Refused(
                f"{name}: the cancellation would leave too few replicas in sync (in sync: "
                f"{joined(sorted(left)) or 'none'}; replicas: {joined(now.before)}; required: {least}). Start the "
                "missing brokers, let the move end, or give ",
                Parameter("force"),
                ". Nothing was written",
            )


def required_in_sync(now: PartitionReplicas, minimum: int) -> int:
    """Return how many replicas must be in sync: `minimum` (`min.insync.replicas`), but at least 1.

    The result is at most the number of replicas before a move, because `min.insync.replicas` can be higher than the
    replication factor.
    """
    return max(1, min(minimum, len(now.before)))


def _targets(run: Run | None, name: TopicPartition) -> tuple[Replicas, ...]:
    plans = () if run is None else (run.plan, run.rollback)
    return tuple(plan.targets[name] for plan in plans if name in plan.targets)


def named(partitions: Collection[TopicPartition]) -> str:
    """Return the first five partitions as one text, with the number of the other partitions."""
    return few(partitions, _SHOWN)
