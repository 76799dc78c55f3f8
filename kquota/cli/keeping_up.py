"""The check before a command sets a throttle without --force: copies must be faster than the writes to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kquota.cli.contract import say, worded
from kquota.cli.sampling import listed, sampled
from kquota.cli.why_never import never_because, throttle_needed
from kquota.errors import KquotaError, Refused
from kquota.measure import ByteRate
from kquota.pace.share import Pace, Side, pace
from kquota.reassign.moves import Move, PartitionReplicas, carried
from kquota.sizes.port import LogDirs
from kquota.terms import BrokerId, TopicPartition

_GLANCE: Final = 0.3
_LOOK: Final = 3.0
"""The seconds that a short and a long measurement take. A refusal needs a long measurement, because clients write in
bursts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedCopies:
    """The copies of `moves`, with the replicas of their partitions.

    `sides` are the sides of brokers that get the throttle. None means all sides.
    """

    moves: Sequence[Move]
    partitions: Mapping[TopicPartition, PartitionReplicas]
    sides: Collection[tuple[BrokerId, Side]] | None = None


def must_keep_up(
    log_dirs: LogDirs | None,
    copies: PacedCopies,
    throttle: ByteRate,
    *,
    never: str = "the move never ends",
    enough: str = "the move can finish",
    anyway: str = "start it",
) -> Pace | None:
    """Raise Refused if a copy can never catch up under `throttle`. Print a note or a warning if kquota cannot check.

    Return the pace of the copies, or None if there are no copies or kquota cannot measure their pace. `never`, `enough`
    and `anyway` are phrases of the refusal. `log_dirs` is None over ZooKeeper.
    """
    moving = [move for move in copies.moves if move.destinations]
    if not moving:
        return None
    if log_dirs is None:
        say(
            "note: kquota did not check whether the copies can catch up, because ZooKeeper does not store sizes or "
            "write rates"
        )
        return None
    try:
        expected = _expected(log_dirs, replace(copies, moves=moving), throttle, _GLANCE)
        if expected.feasible is False:
            say(f"the throttle seems too low. Measuring write rates for {_LOOK:g} s ...")
            expected = _expected(log_dirs, replace(copies, moves=moving), throttle, _LOOK)
    except KquotaError as error:
        say(f"warning: kquota could not check whether the copies can catch up: {worded(error)}")
        return None
    if expected.feasible is None:
        say("warning: kquota could not check whether the copies can catch up: some write rates could not be read")
    if expected.feasible is False:
        raise Refused(
            f"under this throttle {never}: {never_because(expected)}. Nothing was written. With a throttle "
            f"{throttle_needed(expected)}, {enough}. To {anyway} anyway, give --force"
        )
    return expected


def _expected(log_dirs: LogDirs, copies: PacedCopies, throttle: ByteRate, seconds: float) -> Pace:
    now = copies.partitions
    brokers = sorted({leader for move in copies.moves if (leader := now[move.partition].leader) is not None})
    topics = sorted({move.partition.topic for move in copies.moves})
    seen = sampled(log_dirs, listed(log_dirs, brokers, topics), seconds)
    sizes = {r.partition: r.size for log_dir in seen.log_dirs for r in log_dir.replicas if r.leader}
    found = pace(carried(copies.moves, now, sizes, seen.rates), throttle)
    if copies.sides is None:
        return found
    return replace(found, shares=tuple(s for s in found.shares if (s.broker, s.side) in copies.sides))
