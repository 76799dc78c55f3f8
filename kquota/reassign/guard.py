"""What cannot work is refused here, before anything is written."""

from __future__ import annotations

from collections.abc import Collection

from kquota.errors import Refused
from kquota.reassign.moves import Move
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.reassign.words import EXISTING


def check_names(plan: Plan, found: Snapshot) -> None:
    """Raises Refused unless every topic, partition and broker of the plan exists and every broker is alive."""
    topics = {name.topic for name in found.partitions}
    for topic in plan.topics:
        if topic not in topics:
            raise Refused(f"Topic {topic} not found. Take it out of the plan or correct its name; nothing was written")
    if missing := [str(name) for name in plan.targets if name not in found.partitions]:
        raise Refused(f"Unable to find partition: {', '.join(missing)}; take it out of the plan; nothing was written")
    wanted = {broker for target in plan.targets.values() for broker in target}
    if unknown := sorted(wanted - found.alive):
        raise Refused(
            f"Unknown broker id {unknown[0]}; alive are {','.join(map(str, sorted(found.alive)))}: "
            f"start broker {unknown[0]} or take it out of the plan; nothing was written"
        )


def check_moves(moving: Collection[Move], found: Snapshot, *, additional: bool, resumed: bool) -> None:
    """Raises Refused for moves that cannot start or that would run into others.

    `resumed`: an open run of this very plan is on record, so its own running moves are no obstacle.
    """
    submitted = {move.partition for move in moving if move.submitted}
    foreign = found.running.keys() - submitted if resumed else found.running.keys()
    only_rates = resumed and len(submitted) == len(moving)
    if foreign and not additional and not only_rates:
        raise Refused(EXISTING)
    for move in moving:
        if move.destinations and found.partitions[move.partition].leader is None:
            raise Refused(
                f"{move.partition} has no leader, so no copy of it can start: bring one of the brokers "
                f"{','.join(map(str, move.sources))} back, or take it out of the plan; nothing was written"
            )
