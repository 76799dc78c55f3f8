"""Records facts about a run for its report, and expected and actual times for later estimates.

An error in this module never stops a move. kquota only prints a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final

from kquota.cli import move_stores, world
from kquota.cli.contract import worded
from kquota.errors import KquotaError
from kquota.measure import ByteRate
from kquota.pace.past_moves import ExpectedMove
from kquota.pace.share import Pace, Side
from kquota.reassign.course import BrokerCourse, Course, CourseReading
from kquota.reassign.execution import Execution
from kquota.reassign.plan import Plan, plan_hash
from kquota.reassign.preparation import Prepared
from kquota.reassign.progress import Progress
from kquota.reassign.run import Run, others_than, with_rate_changes
from kquota.reassign.verification import Verification
from kquota.terms import BrokerId
from kquota.watch.observation import MoveWatch

_FRESH: Final = 3600.0
"""The number of seconds for which the expected time of an estimate applies to a start of the same plan."""


_REPORT: Final = "the report of this move is not complete"
_RECORD_SECONDS: Final = 60.0
"""The minimum time in seconds between two recorded readings of a running move."""


def with_course(stage: move_stores.Stage, prepared: Prepared, expected: Pace | None, reason: str | None) -> Prepared:
    """Return `prepared` with the expected time in the record of a new run, or the rate change in the record of a
    continued run.

    If there is no run to start or continue, return `prepared` unchanged. `expected` is as for `keep_start`. `reason` is
    the reason for the rate change.
    """
    run, known, now = prepared.run, prepared.known, stage.clock.now()
    if run is None:
        return prepared
    if known is not None:
        return replace(prepared, run=with_rate_changes(run, known, now, stage.runs.me.person, reason))
    with _only_warned(_REPORT):
        seconds = None if run.rate is None else _expected(stage, run.plan, run.rate, expected, now)
        run = replace(run, course=Course(expected=seconds, brokers=_destinations(expected)))
    return replace(prepared, run=run)


def _destinations(expected: Pace | None) -> tuple[BrokerCourse, ...]:
    if expected is None:
        return ()
    return tuple(
        BrokerCourse(
            broker=BrokerId(share.broker),
            expected_bytes=share.bytes,
            expected=expected.ends.get((share.broker, Side.DESTINATION)),
        )
        for share in expected.shares
        if share.side is Side.DESTINATION
    )


def keep_start(
    stage: move_stores.Stage, prepared: Prepared, done: Execution, expected: Pace | None, started: datetime
) -> None:
    """Record the expected time of a new run, for later estimates.

    Nothing is recorded if this time is unknown, if some moves were not submitted just now, or if some are between log
    dirs. For a continued run with another throttle, kquota removes the recorded time.

    `expected` is the pace that the command itself calculated, or None if it is unknown. A recent estimate for the same
    plan and throttle takes precedence, because the estimate measured write rates for longer.
    """
    run = done.run
    if run is None:
        return
    with _only_warned():
        known = stage.past_moves.recall()
        if prepared.known is not None:
            # The run had started before. If its throttle changed, the expected time no longer applies.
            if run.rate != prepared.known.rate:
                stage.past_moves.keep(known.without(run.id))
            return
        seconds = None if run.rate is None else _expected(stage, run.plan, run.rate, expected, started)
        whole = len(done.started) == len(prepared.moving) and not prepared.log_dirs
        if seconds is None or run.rate is None or not whole:
            return
        move = ExpectedMove(run=run.id, started=started, throttle=run.rate, expected=seconds, seen_moving=started)
        stage.past_moves.keep(known.with_start(move))


def keep_look(stage: move_stores.Stage, found: Verification, began: datetime, watch: MoveWatch | None = None) -> None:
    """Record the result of a check and the readings of `watch`, if the check found a run.

    The check began at `began` and has just ended. kquota removes the recorded expected time if it would
    mislead later estimates, for example after a change of the throttle.
    """
    run = found.run
    if run is None:
        return
    with _only_warned(_REPORT):
        _keep_course(stage, run, found, watch)
    with _only_warned():
        known = stage.past_moves.recall()
        mine = next((move for move in known.under_way if move.run == run.id), None)
        if mine is None:
            return
        elsewhere = found.verdict is Progress.ELSEWHERE or run.aborting or bool(found.waiting)
        if mine.throttle != run.rate or found.lost or elsewhere or _disturbed(stage, run):
            stage.past_moves.keep(known.without(run.id))
        elif found.verdict is Progress.IN_PROGRESS:
            stage.past_moves.keep(known.seen_moving(run.id, began))
        else:
            stage.past_moves.keep(known.seen_ended(run.id, stage.clock.now()))


def _keep_course(stage: move_stores.Stage, run: Run, found: Verification, watch: MoveWatch | None) -> None:
    """Record the readings, at intervals while the run is open, and the verdict of an ended run."""
    latest = stage.runs.latest(run)
    before, course = latest.course, with_readings(latest, watch).course
    if latest.finished is not None:
        stage.runs.update(replace(latest, course=replace(course, verdict=found.verdict.value)))
        return
    since = before.readings[-1].at if before.readings else latest.begun
    if course.readings and (course.readings[-1].at - since).total_seconds() >= _RECORD_SECONDS:
        stage.runs.update(replace(latest, course=course))


def with_readings(run: Run, watch: MoveWatch | None) -> Run:
    """Return the run with the readings of `watch` in its course, or unchanged without `watch`. Nothing is written."""
    if watch is None:
        return run
    readings, brokers = watch.course(run.id)
    return replace(run, course=run.course.read((*_start(run, readings), *readings), brokers))


def _start(run: Run, readings: Sequence[CourseReading]) -> Iterator[CourseReading]:
    """Yield a reading for the start of the run, when nothing had been copied, if `readings` are the first of the run.
    Yield nothing for an aborting run.
    """
    if readings and not run.course.readings and not run.aborting:
        first = readings[0]
        every = None if first.copied is None or first.left is None else first.copied + first.left
        yield CourseReading(at=run.begun, copied=0, left=every)


def _disturbed(stage: move_stores.Stage, run: Run) -> bool:
    if run.course.changes:
        return True
    rates = {setting for setting in run.taken if not setting.is_list}
    return any(rates & other.taken.keys() for other in others_than(run, stage.runs.unfinished()))


def _expected(
    stage: move_stores.Stage, plan: Plan, throttle: ByteRate, calculated: Pace | None, now: datetime
) -> float | None:
    name = plan_hash(plan)
    for kept in reversed(stage.past_moves.estimates()):
        if (kept.plan, kept.throttle) == (name, throttle) and 0 <= (now - kept.at).total_seconds() <= _FRESH:
            return kept.expected
    return None if calculated is None else calculated.seconds or None


@contextmanager
def _only_warned(what: str = "later estimates do not use this move") -> Iterator[None]:
    try:
        yield
    except KquotaError as error:
        world.warn(f"{what}: {worded(error)}")
