"""Recovery of an interrupted run: continue it to its plan, or undo it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from kquota.errors import Refused
from kquota.reassign.execution import Execution, carry_out
from kquota.reassign.port import Snapshot
from kquota.reassign.preparation import Prepared
from kquota.reassign.progress import Progress, statuses
from kquota.reassign.restoring import may_stay_set
from kquota.reassign.run import Run, still_waiting
from kquota.reassign.verification import Verification, verify
from kquota.terms import TopicPartition


class RunState(enum.Enum):
    """The state of an open run, according to the cluster and the record of the run. The function `state` never returns
    `ABORTING`. Commands show `ABORTING` for a run that is being undone, whatever `state` returns.
    """

    NOT_SUBMITTED = "begun, not submitted"
    WAITING = "under way, some partitions not submitted yet"
    MOVING = "under way"
    ENDED = "ended, but its throttle is still set"
    ABORTING = "being undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The moves that were started now, and the verification after them."""

    execution: Execution
    verification: Verification


def state(run: Run, found: Snapshot) -> RunState:
    """Return the state of an open run, or of its undo if it is aborting. `found` must include the topics of the run's
    plan.
    """
    goal = run.goal
    moving = any(name in found.running for name in goal.targets)
    if not_submitted(run, found):
        return RunState.WAITING if moving or len(run.waiting) < len(goal.targets) else RunState.NOT_SUBMITTED
    return RunState.MOVING if moving else RunState.ENDED


def not_submitted(run: Run, found: Snapshot) -> tuple[TopicPartition, ...]:
    """Return the partitions that the run still has to submit, in the order of the goal. Partitions that already have
    the replicas of the goal, deleted partitions and partitions of recreated topics are left out.

    `found` must include the topics of the run's plan.
    """
    waiting = {name for name in still_waiting(run, found.topic_ids) if name in found.partitions}
    now = (s for s in statuses(run.goal, found.partitions, found.running) if s.partition in waiting)
    return tuple(status.partition for status in now if status.progress is not Progress.DONE)


def backwards(run: Run) -> Run:
    """Return the run with its rollback plan as the goal, not paused, and with all partitions still to submit. A
    run that is already aborting does not change.
    """
    return run if run.aborting else replace(run, aborting=True, paused=False, handed_over=frozenset())


def recover(
    run: Run,
    prepared: Prepared,
    report: Callable[[str], None],
    hold_back: Callable[[], str | None] = lambda: None,
) -> Recovery:
    """Record and continue a run to its goal, and restore the throttle of moves that have ended. While `hold_back`
    returns a reason, no wave after the first one starts.

    An abort cancels the moves that are still running. It copies the replicas of ended moves back, at the rate of the
    run. Raises the errors of `carry_out` and `verify`.
    """
    try:
        prepared.ports.runs.update(run)
    except Refused as error:
        raise may_stay_set(error, [run]) from error
    execution = carry_out(prepared, report, hold_back=hold_back)
    return Recovery(execution=execution, verification=verify(prepared.ports, run.goal))
