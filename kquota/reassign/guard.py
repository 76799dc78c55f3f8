"""The checks that refuse a move before the first write, or hold it back in a later wave."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kquota.errors import Parameter, Refused
from kquota.list_text import few, joined
from kquota.measure import counted
from kquota.reassign.moves import Move, PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.words import EXISTING
from kquota.terms import TopicPartition

_SHOWN = 5


def check_names(plan: Plan, found: Snapshot) -> None:
    """Raise Refused unless every topic and partition of the plan exists."""
    topics = {name.topic for name in found.partitions}
    for topic in plan.topics:
        if topic not in topics:
            raise Refused(f"Topic {topic} not found. Remove it from the plan or correct its name. Nothing was written")
    if missing := [name for name in plan.targets if name not in found.partitions]:
        raise Refused(f"Unable to find partition: {named(missing)}. Remove it from the plan. Nothing was written")


def check_brokers(moving: Sequence[Move], found: Snapshot) -> None:
    """Raise Refused unless every broker that a new move needs is alive.

    Moves that are already submitted are not checked: if a broker died during a move, the other moves still continue.
    """
    wanted = {broker for move in moving if not move.submitted for broker in move.target}
    if unknown := sorted(wanted - found.alive):
        raise Refused(
            f"Unknown broker id {unknown[0]} (live brokers: {joined(sorted(found.alive))}). "
            f"Start broker {unknown[0]} or remove it from the plan. Nothing was written"
        )


def check_running(moving: Sequence[Move], found: Snapshot, *, resumed: bool, additional: bool) -> None:
    """Raise Refused while other moves run, unless the caller allows `additional` moves.

    If `resumed` is true, an open run of this plan is recorded, and the running moves of this run do not count. If this
    run has nothing left to submit, other moves are also accepted, for example to change its rate.
    """
    submitted = {move.partition for move in moving if move.submitted}
    foreign = found.running.keys() - submitted if resumed else found.running.keys()
    only_rates = resumed and len(submitted) == len(moving)
    if foreign and not additional and not only_rates:
        raise Refused(EXISTING)


def check_overridden(moving: Sequence[Move], found: Snapshot, own: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Raise Refused for a partition that is already moving to another target, unless `own` has that other target."""
    for move in moving:
        now = found.partitions[move.partition]
        if now.moving and not move.submitted and now.target != own.get(move.partition):
            raise Refused(
                f"{move.partition} is already moving to {joined(now.target)}. Cancel that move first, or give ",
                Parameter("force"),
                " to override it. Nothing was written",
            )


def check_leaders(moving: Sequence[Move], found: Snapshot) -> None:
    """Raise Refused for a copy of a partition that has no leader to copy from."""
    for move in moving:
        if move.destinations and found.partitions[move.partition].leader is None:
            raise Refused(
                f"{move.partition} has no leader, so no copy of it can start. Start one of the brokers "
                f"{joined(move.sources)}, or remove the partition from the plan. Nothing was written"
            )


def obstacle(move: Move, found: Snapshot, own: Collection[Sequence[int]], *, force: bool) -> str | None:
    """Return the reason why a move of a later wave must wait, or None.

    The checks are the same as in `check_overridden`, `check_brokers` and `check_leaders`.

    `own` are the targets of the run for this partition, in both directions. With `force`, the move overrides a move to
    another target.
    """
    now = found.partitions[move.partition]
    if now.moving and now.target not in own and not force:
        return f"another client is moving it to {joined(now.target)}"
    cancels = now.moving and not move.destinations
    if not cancels and (dead := [broker for broker in move.target if broker not in found.racks]):
        return f"broker {min(dead)} is dead"
    if move.destinations and now.leader is None:
        return "it has no leader"
    return None


def check_replication_factor(plan: Plan, found: Snapshot) -> None:
    """Raise Refused if the plan would change a replication factor."""
    for name, target in plan.targets.items():
        if len(target) != (now := len(found.partitions[name].before)):
            raise Refused(
                f"{name}: the plan has {counted(len(target), 'replica')}, but the partition has {now}, and ",
                Parameter("disallow_replication_factor_change"),
                " forbids the change. Nothing was written",
            )


def check_return(
    going_back: Mapping[TopicPartition, PartitionReplicas], found: Snapshot, minimum_in_sync: Mapping[str, int]
) -> None:
    """Raise Refused if a cancellation would leave a partition with too few replicas in sync (KAFKA-14424).

    Without a live replica in sync, the partition has no leader. With fewer than min.insync.replicas, the leader rejects
    writes with acks=all. A cancellation that keeps every live in-sync replica, if there is one, is not refused, because
    it makes nothing worse.
    """
    for name, now in going_back.items():
        in_sync = {broker for broker in now.isr if broker in found.alive}
        left = in_sync & set(now.before)
        least = max(1, min(minimum_in_sync.get(name.topic, 1), len(now.before)))
        if len(left) < least and (not left or len(left) < len(in_sync)):
            raise Refused(
                f"{name}: the cancellation would leave too few replicas in sync (in sync: "
                f"{joined(sorted(left)) or 'none'}; replicas: {joined(now.before)}; required: {least}). Start the "
                "missing brokers, let the move end, or give ",
                Parameter("force"),
                ". Nothing was written",
            )


def named(partitions: Collection[TopicPartition]) -> str:
    """Return the first few partitions by name, and how many more there are."""
    return few(partitions, _SHOWN)
