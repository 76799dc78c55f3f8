"""The order of reads and writes of `--cancel`: stop the moves of a plan, then restore its throttle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kquota.errors import Incomplete, KquotaError, Refused, Unknown, Unreachable
from kquota.reassign import guard, log_dir_actions, log_dirs, words
from kquota.reassign.log_dir_actions import Started
from kquota.reassign.moves import Replicas, moves
from kquota.reassign.plan import Plan
from kquota.reassign.port import MoveCluster, MovePorts, Snapshot
from kquota.reassign.restoring import restore_changes
from kquota.reassign.run import Run, covers, others_than
from kquota.reassign.throttle_writes import wait_until
from kquota.reassign.verification import Verification, verify
from kquota.settings.change import Change
from kquota.terms import SEEN_SECONDS, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellable:
    """The running moves of a plan, and the replicas to submit for each of them.

    `targets` has the replicas before each move, as the open run of the plan recorded them. None means that there
    is no such run, or that it recorded other replicas. The cluster then restores the replicas itself (KIP-455).
    """

    plan: Plan
    found: Snapshot
    targets: Mapping[TopicPartition, Replicas | None]

    @property
    def missing(self) -> tuple[TopicPartition, ...]:
        """The partitions of the plan that do not exist, for example because the plan has a typo."""
        return tuple(name for name in self.plan.targets if name not in self.found.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """The result of `--cancel`. `verification` was made after the cancellation."""

    cancelled: tuple[TopicPartition, ...]
    log_dirs: Started
    verification: Verification


def cancellable(ports: MovePorts, plan: Plan, *, force: bool, preserve: bool = False) -> Cancellable:
    """Return the running moves of the plan's partitions, also those to replicas that are not in the plan.

    Moves that only add replicas are included, although Kafka's tools from 3.7 to 4.0 do not cancel them. Raises Refused
    if the cancellation would leave too few replicas in sync, unless `force` is set. Also raises Refused if this user
    may not cancel the moves or, without `preserve`, restore the throttle of their run. Also raises the errors of the
    ports.
    """
    found = ports.cluster.snapshot(plan.topics)
    active = {name: now for name in plan.targets if (now := found.partitions.get(name)) is not None and now.moving}
    if not force and (doubtful := guard.losing_replicas(active, found)):
        guard.check_return(doubtful, found, ports.cluster.minimum_in_sync(sorted({name.topic for name in doubtful})))
    unfinished = ports.runs.unfinished()
    run = covers(plan, unfinished)
    if active or plan.log_dirs:
        restored: tuple[Change, ...] = ()
        if run is not None and not preserve:
            restored = restore_changes(run, ports.cluster.values(list(run.taken)), others_than(run, unfinished))
        ports.cluster.must_permit({change.setting for change in restored}, moves=True)
    known = {} if run is None else run.rollback.targets
    targets = {
        name: known[name] if set(known.get(name, ())) == set(now.before) else None for name, now in active.items()
    }
    return Cancellable(plan=plan, found=found, targets=targets)


def cancel(
    ports: MovePorts, what: Cancellable, *, preserve: bool = False, timeout: float = log_dir_actions.TIMEOUT
) -> Cancellation:
    """Cancel the moves, including moves between log dirs, and wait until the end of the moves is visible. Restore the
    throttle unless `preserve` is set.

    Afterwards, the run submits no further partitions. It continues only if the cluster refuses the whole request and
    all moves still run. `timeout` is the longest wait for log dirs, in seconds. Raises Incomplete if the cluster did
    not cancel some of the moves, and Unknown if the end of the moves does not become visible within `SEEN_SECONDS`.
    Also raises the errors of the ports.
    """
    run = covers(what.plan, ports.runs.unfinished())
    if run is not None:
        ports.runs.update(replace(run, handed_over=frozenset(run.plan.targets)))
    refused = _cancel_and_wait(ports, what, run)
    cancelled = tuple(name for name in what.targets if name not in refused)
    moved = Started()
    if ports.dirs is not None and what.plan.log_dirs:
        moved = log_dir_actions.cancel(ports.dirs, ports.clock, log_dirs.of(what.plan), timeout)
    back = [move for move in moves(what.plan, what.found.partitions) if move.partition in cancelled]
    verification = verify(ports, what.plan, preserve=preserve, cancelled=back)
    if refused:
        raise Incomplete(
            words.not_cancelled(refused), done=[str(name) for name in cancelled], undone=[str(name) for name in refused]
        )
    return Cancellation(cancelled=cancelled, log_dirs=moved, verification=verification)


def _cancel_and_wait(ports: MovePorts, what: Cancellable, before: Run | None) -> Mapping[TopicPartition, str]:
    """Cancel the moves, and return the refusals of those that still run.

    If the cluster refuses the whole request, record the run as `before` again, so that its later waves start. This
    happens only if all moves still run, because a store may send several requests and may have cancelled moves before
    the refusal.
    """
    if not what.targets:
        return {}
    lost: Exception | None = None
    refused: Mapping[TopicPartition, str] = {}
    try:
        refused = ports.cluster.submit(what.targets)
    except (Unknown, Unreachable) as error:
        lost = error
    except Refused:
        if before is not None and _all_run(ports.cluster, what):
            ports.runs.update(before)
        raise

    def ended() -> bool:
        running = ports.cluster.snapshot(what.plan.topics).running
        return running.keys().isdisjoint(what.targets.keys() - refused.keys())

    if not wait_until(ended, ports.clock):
        why = (
            f"kquota could not confirm within {SEEN_SECONDS:.0f} s that all of the moves were cancelled "
            f"({guard.named(what.targets)}). Run the same command again"
        )
        raise Unknown(*((lost, ". ") if lost else ()), why) from lost
    now = ports.cluster.snapshot(what.plan.topics).running
    return {name: why for name, why in refused.items() if name in now}


def _all_run(cluster: MoveCluster, what: Cancellable) -> bool:
    """Return True if it is certain that all moves still run."""
    try:
        return what.targets.keys() <= cluster.snapshot(what.plan.topics).running.keys()
    except KquotaError:
        return False
