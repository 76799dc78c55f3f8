"""The check before a command sets a throttle without `--force`: copies must be faster than the writes to them. Also the
reasons why a move can never finish, as text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kquota.cli.amounts import rates_or_unknown
from kquota.cli.contract import say, worded
from kquota.cli.formats import printable
from kquota.cli.sampling import listed, sampled
from kquota.errors import KquotaError, Refused
from kquota.measure import ByteRate
from kquota.pace.share import Pace, Side, pace
from kquota.pace.waves import Waves
from kquota.reassign.moves import Move, PartitionReplicas, carried
from kquota.terms import BrokerId, TopicPartition

if TYPE_CHECKING:
    from kquota.sizes.port import LogDirs

_SHORT_SAMPLE: Final = 0.3
_LONG_SAMPLE: Final = 3.0
"""The seconds that a short and a long measurement take. A refusal needs a long measurement, because clients write in
bursts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedCopies:
    """The copies of `moves`, with the replicas of their partitions."""

    moves: Sequence[Move]
    partitions: Mapping[TopicPartition, PartitionReplicas]
    sides: Collection[tuple[BrokerId, Side]] | None = None
    """The sides of brokers that get the throttle. None means all sides."""


def must_keep_up(
    log_dirs: LogDirs | None,
    copies: PacedCopies,
    throttle: ByteRate,
    *,
    never: str = "the move never ends",
    enough: str = "the move can finish",
    anyway: str = "start the move",
) -> Pace | None:
    """Raise Refused if a copy can never catch up under `throttle`. Print a note or a warning if kquota cannot check.

    kquota measures write rates for `_SHORT_SAMPLE` seconds. If a copy then seems too slow, kquota measures again, for
    `_LONG_SAMPLE` seconds. Return the pace of the copies, or None if there are no copies or kquota cannot measure their
    pace. `never`, `enough` and `anyway` are phrases of the refusal. `log_dirs` is None over ZooKeeper.
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
        expected = _expected(log_dirs, replace(copies, moves=moving), throttle, _SHORT_SAMPLE)
        if expected.feasible is False:
            say(f"the throttle seems too low. Measuring write rates for {_LONG_SAMPLE:g} s ...")
            expected = _expected(log_dirs, replace(copies, moves=moving), throttle, _LONG_SAMPLE)
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


def why_never(judged: Pace | Waves) -> str:
    """Return the reason why a move can never finish, as in `never_because`, and the throttle that the move needs."""
    return f"{never_because(judged)}; the move can finish with a throttle {throttle_needed(judged)}"


def never_because(judged: Pace | Waves) -> str:
    """Return the reason why a move can never finish, as text: the broker whose copies cannot catch up, and the rates of
    this broker. The move must copy something.
    """
    share = judged.bottleneck
    assert share is not None
    wave = f"in {named_wave(judged)}, " if isinstance(judged, Waves) else ""
    throttle, _, writes, keep_up, left = rates_of(judged)
    if share.side is Side.DESTINATION:
        return f"{wave}broker {share.broker} can receive at most {throttle}, but producers write {writes} to its copies"
    if share.left is not None and share.left <= 0:
        full = f"broker {share.broker} uses its whole throttle ({throttle}) for follower traffic ({keep_up})"
        return f"{wave}{full}, but producers write {writes} to the copies that it sends"
    terms = f"{throttle} throttle minus {keep_up} follower traffic"
    room = f"broker {share.broker} has {left} left for the copies that it sends ({terms})"
    return f"{wave}{room}, but producers write {writes} to these copies"


def throttle_needed(judged: Pace | Waves) -> str:
    """Return the throttle that a move needs to finish, as text, for example `above 6 MB/s`.

    If some rates are unknown, the text is `well above` and the throttle that the bottleneck needs.
    """
    needed = rates_of(judged)[1]
    return f"above {needed}" if judged.least_throttle is not None else f"well above {needed}"


def rates_of(judged: Pace | Waves) -> tuple[str, ...]:
    """Return five rates of a move that copies something, as text. The first two are the throttle of the move and the
    throttle that it needs. The others are rates at the bottleneck: the writes, the follower traffic, and the rate that
    is left for copies.

    Rates that differ after rounding to whole bytes per second have different texts.
    """
    share = judged.bottleneck
    assert share is not None
    needed = share.needed if judged.least_throttle is None else judged.least_throttle
    return rates_or_unknown(judged.throttle, needed, share.writes, share.keep_up, share.left)


def named_wave(waves: Waves) -> str:
    """Describe the wave that never finishes, or that takes longest: its number, and its first and last partition."""
    wave, _ = waves.each[waves.worst]
    names = dict.fromkeys((printable(wave.first), printable(wave.last)))
    return f"wave {waves.worst + 1} ({' to '.join(names)})"
