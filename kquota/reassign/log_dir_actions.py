"""The order of reads and writes for moves between log dirs: read, request or cancel, and wait until brokers act."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kquota.errors import KquotaError, Unknown, Unreachable
from kquota.reassign import log_dirs
from kquota.reassign.log_dirs import LogDirReading, WantedLogDirs
from kquota.reassign.port import Clock, ReplicaDirs
from kquota.terms import ReplicaId

TIMEOUT: Final = 10.0
"""The longest wait, in seconds, until brokers begin to move replicas, as in Kafka's `--timeout`. kquota waits because
a broker creates a new replica only after a while.
"""
_STEP: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The result of requests for log dirs.

    Replicas that were already in their wanted log dir, or already moving there, are in none of these groups.
    """

    begun: WantedLogDirs = field(default_factory=dict)
    """The replicas that have begun to move, or whose copies were stopped by `cancel`."""
    refused: Mapping[ReplicaId, KquotaError] = field(default_factory=dict)
    """The replicas that brokers refused to move, with the errors."""
    waiting: Mapping[ReplicaId, str] = field(default_factory=dict)
    """The replicas for which brokers had not acted when the wait ended, with the reasons."""


def check(dirs: ReplicaDirs, wanted: WantedLogDirs, others: Collection[ReplicaId] = ()) -> LogDirReading:
    """Return the log dirs of the wanted replicas and of `others`. Call this before the first write of a run.

    Raises Refused if a replica must move to a log dir that does not exist or accepts no replica, or if a broker denies
    this user the answer. Raises Unreachable if a broker of a wanted replica does not report its log dirs.
    """
    reading = dirs.read({*wanted, *others})
    log_dirs.check(wanted, reading)
    for partition, broker in wanted:
        if broker in reading.silent:
            raise Unreachable(
                f"{partition}: the log dirs of broker {broker} are unknown ({reading.silent[broker]}). "
                f'Start the broker, or write "any" for this log dir in the plan. Nothing was written'
            )
    return reading


def announce(dirs: ReplicaDirs, wanted: WantedLogDirs, reading: LogDirReading) -> None:
    """Request the log dirs of new replicas before the reassignment is submitted, so that brokers create the replicas
    there.

    Kafka's tools before 2.6 did this. Later tools send the request only after the submission. The replica may then
    already exist in another log dir, and the broker copies it twice (3 of 3 times on 4.3.1). Errors of brokers are
    ignored, because `start` repeats the request. Raises Busy if another process has taken over the lock.
    """
    new = {replica: path for replica, path in wanted.items() if reading.place(replica).current is None}
    if new:
        dirs.alter(new)


def start(
    dirs: ReplicaDirs,
    clock: Clock,
    wanted: WantedLogDirs,
    timeout: float = TIMEOUT,
    before: LogDirReading | None = None,
) -> Started:
    """Ask brokers to move every wanted replica into its log dir, and wait up to `timeout` seconds until all moves
    begin.

    A second call changes nothing, because replicas that are in their log dir, or moving to it, are not requested again.
    The wait includes replicas that do not exist yet, but ends if only replicas of brokers that do not answer are left.
    `before` is the reading of `check`, or None to use the first reading of this call. Replicas that were already moving
    to their wanted log dir in this reading do not count as begun. Raises the errors of `dirs`: Refused and Busy.
    """
    return _ask(dirs, clock, wanted.keys(), partial(log_dirs.unasked, wanted), timeout, before, late="has not begun")


def cancel(dirs: ReplicaDirs, clock: Clock, wanted: WantedLogDirs, timeout: float = TIMEOUT) -> Started:
    """Stop the running copies of the wanted replicas, whatever their target. Each replica stays in its log dir.

    This is Kafka's `--cancel`. kquota waits at most `timeout` seconds until all copies have stopped. In the result,
    `begun` has the copies that were stopped. A copy that ends before kquota stops it is in none of the groups. Raises
    the errors of `dirs`: Refused and Busy.
    """
    return _ask(dirs, clock, wanted.keys(), partial(log_dirs.back, wanted), timeout, None, late="has not stopped")


def would_cancel(dirs: ReplicaDirs, wanted: WantedLogDirs) -> Started:
    """Return the result that `cancel` would have if every broker that answers stops its copies at once. Writes nothing.
    Raises Refused if a broker denies this user the answer.
    """
    reading = dirs.read(wanted.keys())
    silent = {replica: reading.silent[replica[1]] for replica in wanted if replica[1] in reading.silent}
    return Started(begun=log_dirs.back(wanted, reading), waiting=silent)


def _ask(
    dirs: ReplicaDirs,
    clock: Clock,
    replicas: Collection[ReplicaId],
    todo: Callable[[LogDirReading], Mapping[ReplicaId, str]],
    timeout: float,
    before: LogDirReading | None,
    *,
    late: str,
) -> Started:
    """Send the remaining requests after each reading, until none remain for brokers that answer or the time is up.

    `late` is the reason for a replica of a broker that answers, but does not act in time.
    """
    give_up = clock.monotonic() + timeout
    refused: dict[ReplicaId, KquotaError] = {}
    reading = dirs.read(replicas)
    fresh = todo(before or reading)
    left = todo(reading)
    while any(broker not in reading.silent for _, broker in left):
        errors = dirs.alter(left)
        refused |= {r: error for r, error in errors.items() if not isinstance(error, (Unknown, Unreachable))}
        reading = reading.after(dirs.read(left.keys()), left.keys())
        left = {replica: path for replica, path in todo(reading).items() if replica not in refused}
        if clock.monotonic() >= give_up:
            break
        if left:
            clock.sleep(_STEP)
    silent = {replica: reading.silent[replica[1]] for replica in replicas if replica[1] in reading.silent}
    waiting = {**dict.fromkeys(left, late), **silent}
    ended = {*refused, *waiting, *log_dirs.unasked(fresh, reading)}
    begun = {replica: path for replica, path in sorted(fresh.items()) if replica not in ended}
    return Started(begun=begun, refused=refused, waiting=dict(sorted(waiting.items())))
