"""What becomes of a run that was interrupted: on to its plan, or back to where it began."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.port import Clock, MoveCluster, ReplicaDirs, Runs, Snapshot
from kquota.reassign.preparation import Prepared
from kquota.reassign.progress import Progress, statuses, verdict
from kquota.reassign.run import Run
from kquota.reassign.verification import Verification, verify


class RunState(enum.Enum):
    """How far a run is, as the cluster and its record tell."""

    NOT_SUBMITTED = "begun, not submitted"
    WAITING = "under way, some partitions not submitted yet"
    MOVING = "under way"
    ENDED = "ended, its throttle is still set"
    ABORTING = "being undone"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What was started now, and what is to be said of the run after it."""

    execution: Execution
    verification: Verification


def state(run: Run, found: Snapshot) -> RunState:
    """How far the run is; `found` holds the topics of its plan."""
    if run.finished is not None:
        return RunState.FINISHED
    if run.aborting:
        return RunState.ABORTING
    moving = any(name in found.running for name in run.plan.targets)
    waiting = [name for name in run.waiting if name in found.partitions]
    at_rest = [s for s in statuses(run.plan, found.partitions, found.running) if s.partition in set(waiting)]
    left = bool(at_rest) and verdict(at_rest) is not Progress.DONE
    if left:
        return RunState.WAITING if moving or len(waiting) < len(run.plan.targets) else RunState.NOT_SUBMITTED
    return RunState.MOVING if moving else RunState.ENDED


def backwards(run: Run) -> Run:
    """The run on its way back; one that is already stays as it is."""
    return run if run.aborting else replace(run, aborting=True, handed_over=frozenset())


def recover(
    cluster: MoveCluster,
    runs: Runs,
    clock: Clock,
    run: Run,
    prepared: Prepared,
    told: Callable[[str], None],
    dirs: ReplicaDirs | None = None,
) -> Recovery:
    """Bring the run to where an undisturbed one would be by now, and restore what has ended.

    A replica that an abort cannot simply forget is copied back, at the run's rate.
    """
    runs.update(run)
    execution = carry_out(prepared, told, dirs)
    return Recovery(execution=execution, verification=verify(cluster, runs, clock, run.goal, dirs))
