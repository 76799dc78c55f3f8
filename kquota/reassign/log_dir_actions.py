"""Moves between log dirs in order: read, ask the brokers, see that they have begun; and the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import KquotaError, Unknown, Unreachable
from kquota.reassign import log_dirs
from kquota.reassign.log_dirs import Reading, Replica, Wanted
from kquota.reassign.port import Clock, ReplicaDirs

TIMEOUT: Final = 10.0
"""Seconds that Kafka's --timeout gives brokers to begin: a replica that has just been submitted is not there yet."""
_STEP: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What was `asked` for and seen to begin; what brokers refused; what had not begun when time was up, and why.

    A replica that was in its log dir already, or on its way there, is in none of them.
    """

    asked: Wanted = field(default_factory=dict)
    refused: Mapping[Replica, KquotaError] = field(default_factory=dict)
    waiting: Mapping[Replica, str] = field(default_factory=dict)


def check(dirs: ReplicaDirs, wanted: Wanted, others: Collection[Replica] = ()) -> Reading:
    """Where the wanted replicas are, and `others`; to be called before the first write of a run.

    Raises Refused for a log dir that cannot be moved into, Unreachable when a broker does not tell its own.
    """
    reading = dirs.read({*wanted, *others})
    log_dirs.check(wanted, reading)
    for partition, broker in wanted:
        if broker in reading.silent:
            raise Unreachable(
                f"{partition}: the log dirs of broker {broker} are not known: {reading.silent[broker]}; "
                f'start it, or write "any" for its log dir; nothing was written'
            )
    return reading


def announce(dirs: ReplicaDirs, wanted: Wanted, reading: Reading) -> None:
    """Before a reassignment is submitted: tell brokers where the replicas shall be that they do not have yet.

    They are then made there at once. Kafka's tools below 2.6 did so; those after it ask only when the replica may be
    there already, elsewhere, to be copied twice (measured: 3 of 3 times on 4.3.1). Raises nothing: `start` asks again.
    """
    new = {replica: path for replica, path in wanted.items() if reading.place(replica).current is None}
    if new:
        dirs.alter(new)


def start(dirs: ReplicaDirs, clock: Clock, wanted: Wanted, timeout: float = TIMEOUT) -> Started:
    """Bring every wanted replica on its way into its log dir, and see it there, within `timeout` seconds.

    Asking twice changes nothing: what is there or on its way is not asked for. A replica that is not there yet is
    waited for; one of a silent broker is not, unless others are.
    """
    give_up = clock.monotonic() + timeout
    asked: dict[Replica, str] = {}
    refused: dict[Replica, KquotaError] = {}
    reading = dirs.read(wanted.keys())
    left = log_dirs.unasked(wanted, reading)
    while left and not _all_silent(left, reading):
        altered = dirs.alter(left)
        refused |= {r: e for r, e in altered.errors.items() if not isinstance(e, (Unknown, Unreachable))}
        asked |= {replica: path for replica, path in left.items() if replica not in refused}
        reading = dirs.read(left.keys() - refused.keys())
        left = {r: path for r, path in log_dirs.unasked(left, reading).items() if r not in refused}
        if clock.monotonic() >= give_up:
            break
        if left:
            clock.sleep(_STEP)
    waiting = {(name, broker): reading.silent.get(broker, "has not begun") for name, broker in left}
    begun = {replica: path for replica, path in asked.items() if replica not in waiting}
    return Started(asked=dict(sorted(begun.items())), refused=refused, waiting=waiting)


def cancel(dirs: ReplicaDirs, clock: Clock, wanted: Wanted, timeout: float = TIMEOUT) -> Started:
    """End the copies under way of the wanted replicas, into whatever log dir: each stays where it still is.

    As Kafka's --cancel. None was under way when nothing was asked, refused or waited for.
    """
    reading = dirs.read(wanted.keys())
    return start(dirs, clock, log_dirs.back(wanted, reading), timeout)


def _all_silent(left: Mapping[Replica, str], reading: Reading) -> bool:
    return all(broker in reading.silent for _, broker in left)
