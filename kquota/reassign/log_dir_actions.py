"""Moves between log dirs in order: read, ask the brokers, see that they have begun; and the way back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import KquotaError, Unknown, Unreachable
from kquota.reassign import log_dirs
from kquota.reassign.log_dirs import LogDirReading, Wanted
from kquota.reassign.port import Clock, ReplicaDirs
from kquota.terms import ReplicaId

TIMEOUT: Final = 10.0
"""Seconds that Kafka's --timeout gives brokers to begin: a replica that has just been submitted is not there yet."""
_STEP: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What has `begun` and had not before; what brokers refused; what had not begun when time was up, and why.

    A replica that was in its log dir before, or on its way there, is in none of them.
    """

    begun: Wanted = field(default_factory=dict)
    refused: Mapping[ReplicaId, KquotaError] = field(default_factory=dict)
    waiting: Mapping[ReplicaId, str] = field(default_factory=dict)


def check(dirs: ReplicaDirs, wanted: Wanted, others: Collection[ReplicaId] = ()) -> LogDirReading:
    """Where the wanted replicas are, and `others`; to be called before the first write of a run.

    Raises Refused for a log dir that cannot be moved into, Unreachable when a broker does not tell its own.
    """
    reading = dirs.read({*wanted, *others})
    log_dirs.check(wanted, reading)
    for partition, broker in wanted:
        if broker in reading.silent:
            raise Unreachable(
                f"{partition}: the log dirs of broker {broker} are unknown ({reading.silent[broker]}). "
                f'Start the broker, or write "any" for its log dir; nothing was written'
            )
    return reading


def announce(dirs: ReplicaDirs, wanted: Wanted, reading: LogDirReading) -> None:
    """Before a reassignment is submitted: tell brokers where the replicas shall be that they do not have yet.

    They are then made there at once. Kafka's tools below 2.6 did so; those after it ask only when the replica may be
    there already, elsewhere, to be copied twice (measured: 3 of 3 times on 4.3.1). Raises nothing: `start` asks again.
    """
    new = {replica: path for replica, path in wanted.items() if reading.place(replica).current is None}
    if new:
        dirs.alter(new)


def start(
    dirs: ReplicaDirs, clock: Clock, wanted: Wanted, timeout: float = TIMEOUT, before: LogDirReading | None = None
) -> Started:
    """Bring every wanted replica on its way into its log dir, and see it there, within `timeout` seconds.

    Asking twice changes nothing: what is there or on its way is not asked for. A replica that is not there yet is
    waited for; one of a silent broker is not, unless others are. `before`, what `check` read, tells what is new.
    """
    return _ask(dirs, clock, wanted.keys(), lambda reading: log_dirs.unasked(wanted, reading), timeout, before)


def cancel(dirs: ReplicaDirs, clock: Clock, wanted: Wanted, timeout: float = TIMEOUT) -> Started:
    """End the copies under way of the wanted replicas, into whatever log dir: each stays where it still is.

    As Kafka's --cancel; a copy that ends by itself meanwhile has ended. None was under way when nothing has begun, was
    refused or is waited for.
    """
    return _ask(dirs, clock, wanted.keys(), lambda reading: log_dirs.back(wanted, reading), timeout, None)


def _ask(
    dirs: ReplicaDirs,
    clock: Clock,
    replicas: Collection[ReplicaId],
    todo: Callable[[LogDirReading], Mapping[ReplicaId, str]],
    timeout: float,
    before: LogDirReading | None,
) -> Started:
    """Ask for what is still to do by each new reading, until that is nothing or time is up."""
    give_up = clock.monotonic() + timeout
    refused: dict[ReplicaId, KquotaError] = {}
    reading = dirs.read(replicas)
    fresh = todo(before or reading)
    left = todo(reading)
    while any(broker not in reading.silent for _, broker in left):
        errors = dirs.alter(left).errors
        refused |= {r: error for r, error in errors.items() if not isinstance(error, (Unknown, Unreachable))}
        reading = reading.after(dirs.read(left.keys()), left.keys())
        left = {replica: path for replica, path in todo(reading).items() if replica not in refused}
        if clock.monotonic() >= give_up:
            break
        if left:
            clock.sleep(_STEP)
    silent = {replica: reading.silent[replica[1]] for replica in replicas if replica[1] in reading.silent}
    waiting = {**dict.fromkeys(left, "has not begun"), **silent}
    ended = {*refused, *waiting, *log_dirs.unasked(fresh, reading)}
    begun = {replica: path for replica, path in sorted(fresh.items()) if replica not in ended}
    return Started(begun=begun, refused=refused, waiting=dict(sorted(waiting.items())))
