"""Before a throttled move starts: can its copies ever catch up? Measured on the live cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.contract import say
from kquota.errors import KquotaError, Refused

if TYPE_CHECKING:
    from kquota.measure import ByteRate
    from kquota.pace.share import Pace
    from kquota.reassign.moves import Move
    from kquota.reassign.preparation import Prepared
    from kquota.sizes.port import LogDirs
    from kquota.terms import BrokerId, TopicPartition

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
        from kquota.cli.estimate_verdict import why_never

        raise Refused(
            f"under this throttle the move never ends: {why_never(pace)}, or be started all the same with --force; "
            "nothing was written"
        )


def _pace(log_dirs: LogDirs, prepared: Prepared, copies: Sequence[Move], throttle: ByteRate, seconds: float) -> Pace:
    from kquota.pace.share import pace
    from kquota.reassign.feasible import carried
    from kquota.sizes.write_rate import write_rates

    names = [move.partition for move in copies]
    first, began = log_dirs.offsets(names), time.monotonic()
    time.sleep(seconds)
    second, took = log_dirs.offsets(names), time.monotonic() - began
    sizes = _sizes(log_dirs, prepared, names)
    writes = write_rates(first, second, took, sizes)
    return pace(carried(copies, prepared.found.partitions, sizes, writes), throttle)


def _sizes(log_dirs: LogDirs, prepared: Prepared, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    """The bytes of each partition on its leader."""
    leaders: dict[TopicPartition, BrokerId | None] = {name: prepared.found.partitions[name].leader for name in names}
    brokers = sorted({leader for leader in leaders.values() if leader is not None})
    found = log_dirs.describe(brokers, sorted({name.topic for name in names}))
    return {
        replica.partition: replica.size
        for log_dir in found
        for replica in log_dir.replicas
        if not replica.future and leaders.get(replica.partition) == log_dir.broker
    }
