"""Before a throttled move starts: can its copies ever catch up? Measured on the live cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say
from kquota.cli.sampling import listed, sampled
from kquota.errors import KquotaError, Refused

if TYPE_CHECKING:
    from kquota.measure import ByteRate
    from kquota.pace.share import Pace
    from kquota.reassign.moves import Move
    from kquota.reassign.preparation import Prepared
    from kquota.sizes.port import LogDirs

_GLANCE: Final = 0.3
_LOOK: Final = 3.0
"""Seconds. Most moves are found feasible at a glance; nothing is refused on less than a look, for clients write in
bursts."""


def must_keep_up(log_dirs: LogDirs | None, prepared: Prepared, throttle: ByteRate | None) -> None:
    """Raises Refused when a copy can never catch up under the throttle. Where that cannot be told, it says so."""
    copies = [move for move in prepared.moving if move.destinations]
    if throttle is None or not copies:
        return
    if log_dirs is None:
        say("note: whether the copies can catch up was not checked: ZooKeeper tells no sizes and no write rates")
        return
    try:
        pace = _pace(log_dirs, prepared, copies, throttle, _GLANCE)
        if pace.feasible is False:
            say(f"the copies seem too slow; measuring write rates for {_LOOK:g} s ...")
            pace = _pace(log_dirs, prepared, copies, throttle, _LOOK)
    except KquotaError as error:
        say(f"warning: whether the copies can catch up was not checked: {error}")
        return
    if pace.feasible is None:
        say("warning: whether the copies can catch up was not checked: not every partition's write rate could be read")
    if pace.feasible is False:
        from kquota.cli.why_never import why_never

        raise Refused(
            f"under this throttle the move never ends: {why_never(pace)}, or be started all the same with --force; "
            "nothing was written"
        )


def _pace(log_dirs: LogDirs, prepared: Prepared, copies: Sequence[Move], throttle: ByteRate, seconds: float) -> Pace:
    from kquota.pace.share import pace
    from kquota.reassign.feasible import carried

    now = prepared.found.partitions
    brokers = sorted({leader for move in copies if (leader := now[move.partition].leader) is not None})
    topics = sorted({move.partition.topic for move in copies})
    seen = sampled(log_dirs, listed(log_dirs, brokers, topics), seconds)
    sizes = {r.partition: r.size for log_dir in seen.log_dirs for r in log_dir.replicas if r.leader}
    return pace(carried(copies, now, sizes, seen.rates), throttle)
