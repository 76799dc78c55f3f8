"""Plans moves towards the goals. The same input always gives the same plan.

The planner first changes replication factors, drains brokers and repairs racks. It begins with the largest partitions,
because small ones can then even out the differences. Each new replica goes to the emptiest broker that racks and disks
allow. The planner then adds brokers and balances bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from kquota.errors import Parameter, Refused
from kquota.list_text import few
from kquota.measure import exact_percentage, human_bytes, size_in_full
from kquota.placement import lower_bound
from kquota.placement.balance import BalanceBand, fill, level
from kquota.placement.cluster import ClusterLayout
from kquota.placement.draft import MoveReason, PlacementDraft, ordered
from kquota.placement.goal import Goal, check
from kquota.placement.planned import LeftPartition, Planned, changes, shares
from kquota.terms import BrokerId

_SHOWN: Final = 8


def plan(cluster: ClusterLayout, goal: Goal) -> Planned:
    """Plan the moves towards the goals, with few bytes to copy.

    A partition is not changed if no goal applies to it, if it is already moving, or if it has no leader to copy from.
    Raises the errors of `check`, and Refused if a drain or a replication factor needs more brokers or more disk
    space than the goal allows.
    """
    check(goal, cluster)
    draft = PlacementDraft(cluster, goal)
    left = [reason for p in range(len(draft.names)) if (reason := _untouchable(draft, goal, p)) is not None]
    kept_out = {each.partition for each in left}
    free = [p for p, name in enumerate(draft.names) if name not in kept_out]
    for p in sorted((p for p in free if _concerned(draft, goal, p)), key=lambda p: -draft.sizes[p]):
        left += _settle(draft, goal, p)
    must = lower_bound.forced(draft, goal, free)
    band = _even(draft, goal, [p for p in free if draft.names[p].topic in goal.topics])
    changed = changes(draft, ordered(draft))
    return Planned(
        changes=changed,
        left=tuple(sorted(left, key=lambda each: (each.partition, each.why))),
        brokers=shares(cluster, draft, changed),
        least=lower_bound.least(goal, must, band),
        band=band,
    )


def _untouchable(draft: PlacementDraft, goal: Goal, p: int) -> LeftPartition | None:
    name, now = draft.names[p], draft.now[p]
    if not now.moving and now.leader is not None:
        return None
    drained = name.topic in goal.drained_topics and not goal.drain.isdisjoint(now.replicas)
    if not drained and name.topic not in goal.topics:
        return None
    if now.moving:
        return LeftPartition(partition=name, why="is already being moved. Plan again when that move has finished")
    return LeftPartition(
        partition=name, why="has no leader, so nothing can be copied. First start a broker that has one of its replicas"
    )


def _concerned(draft: PlacementDraft, goal: Goal, p: int) -> bool:
    topic, replicas = draft.names[p].topic, draft.replicas[p]
    if topic in goal.drained_topics and not goal.drain.isdisjoint(replicas):
        return True
    if topic not in goal.topics:
        return False
    return goal.repair_racks or (goal.replication_factor not in (None, len(replicas)))


def _settle(draft: PlacementDraft, goal: Goal, p: int) -> Iterable[LeftPartition]:
    """Apply replication factor, drain and racks to one partition. Yield the reasons for goals that are not reached."""
    name, replicas = draft.names[p], draft.replicas[p]
    before = draft.spread(replicas)
    wanted = _wanted(draft, goal, p)
    leaving = goal.drain if name.topic in goal.drained_topics else frozenset()
    while len(replicas) > wanted:
        draft.drop(p, _dispensable(draft, p, leaving))
    for broker in [broker for broker in replicas if broker in leaving]:
        draft.move(p, broker, _destination(draft, goal, p, leaving), MoveReason.DRAIN)
    while len(replicas) < wanted:
        draft.add(p, _destination(draft, goal, p, leaving), MoveReason.REPLICATION_FACTOR)
    if goal.repair_racks and name.topic in goal.topics:
        yield from _repair(draft, goal, p)
    if (after := draft.spread(replicas)) < min(before, wanted):
        reason = "because no broker in another rack can get a replica"
        yield LeftPartition(partition=name, why=f"is reduced from {before} racks to {after}, {reason}")


def _wanted(draft: PlacementDraft, goal: Goal, p: int) -> int:
    if goal.replication_factor is not None and draft.names[p].topic in goal.topics:
        return goal.replication_factor
    return len(draft.replicas[p])


def _destination(draft: PlacementDraft, goal: Goal, p: int, leaving: frozenset[BrokerId]) -> BrokerId:
    staying = [broker for broker in draft.replicas[p] if broker not in leaving]
    used = {draft.racks.get(broker) for broker in staying} if draft.racks else set()
    found = draft.emptiest(p, used)
    if found is None:
        found = draft.emptiest(p)
    if found is None:
        raise _no_room(draft, goal, p)
    return found


def _no_room(draft: PlacementDraft, goal: Goal, p: int) -> Refused:
    name, size = draft.names[p], draft.sizes[p]
    full = [broker for broker in goal.destinations if broker not in draft.replicas[p]]
    if not full:
        fewer = (", drain fewer brokers, or give a lower ", Parameter("replication_factor"))
        return Refused(
            f"{name} needs {_wanted(draft, goal, p)} replicas, but only "
            f"{len(goal.destinations)} of the brokers may hold one ({few(goal.destinations, _SHOWN, ',')}). No plan "
            "is possible. Give more ",
            Parameter("brokers"),
            *(fewer if name.topic in goal.topics else (", or drain fewer brokers",)),
        )
    # The message names the broker with the most room, because an operator would try this broker first.
    best = max(full, key=lambda broker: ((draft.room[broker] or 0) - draft.incoming[broker], -broker))
    room = (draft.room[best] or 0) - draft.incoming[best]
    taken = {"this plan already copies": draft.incoming[best], "running moves still copy": draft.pending[best]}
    used = " and the ".join(f"{human_bytes(size)} that {who} to it" for who, size in taken.items() if size)
    counts = f"The {used} count as used. " if used else ""
    return Refused(
        f"no broker has room for a replica of {name}, {size_in_full(size)}. Broker {best} has the most room, but "
        f"{'nothing' if room <= 0 else f'only {size_in_full(room)}'} is left below "
        f"{exact_percentage(goal.disk_limit)} of its disk. {counts}No plan is possible. Give more ",
        Parameter("brokers"),
        ", or raise ",
        Parameter("disk_limit"),
    )


def _dispensable(draft: PlacementDraft, p: int, leaving: frozenset[BrokerId]) -> BrokerId:
    replicas, now = draft.replicas[p], draft.now[p]
    spread = draft.spread(replicas)

    def cost(broker: BrokerId) -> tuple[object, ...]:
        rest = [other for other in replicas if other != broker]
        return (
            broker not in leaving,
            broker in draft.alive,
            broker == now.leader,
            draft.spread(rest) < spread,
            broker in now.isr,
            broker == replicas[0],
            -draft.bytes[broker],
            broker,
        )

    return min(replicas, key=cost)


def _repair(draft: PlacementDraft, goal: Goal, p: int) -> Iterable[LeftPartition]:
    """Move replicas that share a rack into racks without a replica. Yield the reason if no broker there has room."""
    replicas, racks = draft.replicas[p], draft.racks
    reachable = {racks[broker] for broker in goal.destinations if broker in racks}
    while True:
        used = [racks[broker] for broker in replicas if broker in racks]
        sharing = [broker for broker in replicas if broker in racks and used.count(racks[broker]) > 1]
        missing = reachable - set(used)
        if not sharing or not missing:
            return
        # Only one of the replicas in a rack can lead, so the leader never has to move.
        source = min(sharing, key=lambda b: (b == draft.now[p].leader, b == replicas[0], -draft.bytes[b], b))
        destination = draft.emptiest(p, set(used))
        if destination is None:
            why = (
                f"keeps its number of racks ({len(set(used))}), because no broker in rack "
                f"{' or '.join(sorted(missing))} has room"
            )
            yield LeftPartition(partition=draft.names[p], why=why)
            return
        draft.move(p, source, destination, MoveReason.RACKS)


def _even(draft: PlacementDraft, goal: Goal, movable: Sequence[int]) -> BalanceBand | None:
    if not goal.add and not goal.balance:
        return None
    held = sum(draft.bytes[broker] for broker in goal.destinations)
    band = BalanceBand.around(Fraction(held, len(goal.destinations)), goal.tolerance)
    if goal.add:
        fill(draft, goal, movable, band, goal.add, MoveReason.ADD)
    if goal.balance:
        level(draft, goal, movable, band)
    return band
