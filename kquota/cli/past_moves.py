"""The facts about a run that improve later estimates: its expected time, and when it was seen moving or ended.

A problem in this module never stops a move. It is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from kquota.cli import world
from kquota.cli.contract import worded
from kquota.errors import KquotaError
from kquota.measure import ByteRate
from kquota.pace.past_moves import ExpectedMove
from kquota.pace.share import Pace
from kquota.reassign.execution import Execution
from kquota.reassign.plan import Plan, plan_hash
from kquota.reassign.preparation import Prepared
from kquota.reassign.progress import Progress
from kquota.reassign.run import Run, others_than
from kquota.reassign.verification import Verification

_FRESH: Final = 3600.0
"""The number of seconds for which the expected time of an estimate applies to a start of the same plan."""


def keep_start(
    stage: world.Stage, prepared: Prepared, done: Execution, expected: Pace | None, started: datetime
) -> None:
    """Record the expected time of a run if it is known, and if all moves were submitted just now.

    `expected` is the pace that --execute calculated itself. A recent estimate of this plan wins over it, because the
    estimate measured write rates for longer.
    """
    run = done.run
    if run is None:
        return
    with _only_warned():
        known = stage.past_moves.recall()
        if prepared.known is not None:
            # The run had started before. With another throttle, its expected time no longer applies.
            if run.rate != prepared.known.rate:
                stage.past_moves.keep(known.without(run.id))
            return
        seconds = None if run.rate is None else _expected(stage, run.plan, run.rate, expected, started)
        whole = len(done.started) == len(prepared.moving) and not prepared.log_dirs
        if seconds is None or run.rate is None or not whole:
            return
        move = ExpectedMove(run=run.id, started=started, throttle=run.rate, expected=seconds, seen_moving=started)
        stage.past_moves.keep(known.with_start(move))


def keep_look(stage: world.Stage, found: Verification, began: datetime) -> None:
    """Record what one check of a run observed. The check began at `began`, and has just ended."""
    run = found.run
    if run is None:
        return
    with _only_warned():
        known = stage.past_moves.recall()
        mine = next((move for move in known.under_way if move.run == run.id), None)
        if mine is None:
            return
        if mine.throttle != run.rate or found.lost or _disturbed(stage, run) or _is_elsewhere(found, run):
            stage.past_moves.keep(known.without(run.id))
        elif found.verdict is Progress.IN_PROGRESS:
            stage.past_moves.keep(known.seen_moving(run.id, began))
        else:
            stage.past_moves.keep(known.seen_ended(run.id, stage.clock.now()))


def _is_elsewhere(found: Verification, run: Run) -> bool:
    return found.verdict is Progress.ELSEWHERE or run.aborting or bool(found.waiting)


def _disturbed(stage: world.Stage, run: Run) -> bool:
    """Return whether another open run shares the rates of this run, so that the throttle is not exclusive to it."""
    rates = {setting for setting in run.taken if not setting.is_list}
    return any(rates & other.taken.keys() for other in others_than(run, stage.runs.unfinished()))


def _expected(
    stage: world.Stage, plan: Plan, throttle: ByteRate, calculated: Pace | None, now: datetime
) -> float | None:
    name = plan_hash(plan)
    for kept in reversed(stage.past_moves.estimates()):
        if (kept.plan, kept.throttle) == (name, throttle) and 0 <= (now - kept.at).total_seconds() <= _FRESH:
            return kept.expected
    return None if calculated is None else calculated.seconds or None


@contextmanager
def _only_warned() -> Iterator[None]:
    try:
        yield
    except KquotaError as error:
        world.warn(f"the next estimates do not learn from this move: {worded(error)}")
