"""`kquota move report`: read the runs on record, and report one of them or list all."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, FAILED, worded
from kquota.cli.move.estimate.report import plots
from kquota.cli.move.estimate.report.page import environment, must_be_writable, write_page
from kquota.cli.move.report.answer import UNWATCHED, ReportedRun, RunReport, RunsListed, facts
from kquota.cli.move.report.command import ReportOptions
from kquota.cli.output import moment
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, Refused
from kquota.reassign.run import Purpose

_GENERATOR: Final = "kquota move report"
"""The generator in the head of a page. kquota overwrites only a file that is empty or has this generator."""
_ROWS: Final = 20


def run(options: ReportOptions) -> RunsListed | RunReport:
    """Return the report of one run, or the list of recorded runs, newest first. Runs without a move are left out.

    With `--report`, also write the report as a page. For the list, the exit code is 1 if a recorded run cannot be read.

    Raises Invalid for `--report` without a run or with an unusable path. Raises Refused for a run that is unknown,
    unreadable or without a move. Also raises Refused if the page cannot be written or a library for the page is
    missing. Raises Unreachable if the cluster does not answer.
    """
    if options.report is not None:
        if options.run is None:
            raise Invalid("--report writes the page of one run. Give RUN")
        must_be_writable(options.report, _GENERATOR)
    with move_stores.moves(world.where(options.connection), options.state_dir) as (_, runs):
        found = runs.past(whole=options.run is not None)
        unseen = world.unseen(runs.unseen)
    moves = [one for one in found.runs if one.purpose is Purpose.MOVE]
    unread = {name: why for name, why in found.unread.items() if options.run in (None, name)}
    notes = tuple(f"error: run {name} cannot be read: {worded(why)}" for name, why in sorted(unread.items()))
    if options.run is None:
        empty = () if moves else ("no run of a move is on record", *unseen)
        shown = tuple(ReportedRun(of=one) for one in moves)
        return RunsListed(runs=shown, notes=(*notes, *empty), code=FAILED if unread else DONE)
    named = next((one for one in moves if one.id == options.run), None)
    if named is None:
        if unread:
            raise Refused(notes[0].removeprefix("error: "))
        if any(one.id == options.run for one in found.runs):
            raise Refused(
                f"run {options.run} only set a throttle and moved no partition, so it has no report. See the runs of "
                f"moves with {suggested('move report')}"
            )
        known = ", ".join(one.id for one in moves[:5]) or "none"
        raise Refused(
            f"run {options.run}: no run with this id is on record (newest runs: {known}). See all runs with "
            f"{suggested('move report')}"
        )
    recorded = ReportedRun(of=named)
    if options.report is not None:
        write_page(options.report, page(recorded))
    return RunReport(recorded=recorded)


def page(run: ReportedRun) -> str:
    """Return the report of a run as an HTML page. The same run always gives the same page."""
    rates = run.rates()
    ends = [
        (to.broker, to.expected, run.after(to.ended))
        for to in run.course.brokers
        if to.expected is not None and to.ended is not None
    ]
    return (
        environment(__package__, [moment])
        .get_template("run.html.jinja")
        .render(
            run=run,
            facts=list(facts(run)),
            generator=_GENERATOR,
            rows=_ROWS,
            unwatched=UNWATCHED,
            rates=rates,
            course=_course(run, rates) if rates else None,
            compared=plots.compared(ends) if ends else None,
        )
    )


def _course(run: ReportedRun, rates: Mapping[datetime, float]) -> plots.Plot:
    readings = [(run.after(one.at), rates[one.at]) for one in run.course.readings if one.at in rates]
    before = next(run.after(one.at) for one in run.course.readings if one.copied is not None)
    end = max(readings[-1][0], run.seconds or 0.0)
    changes = [change for change in run.course.changes if not change.settings]
    first = changes[0].before if changes else run.of.rate
    throttles = [(0.0, first), *((run.after(change.at), change.rate) for change in changes)]
    known = [(seconds, float(rate)) for seconds, rate in throttles if rate is not None]
    return plots.course([(before, readings[0][1]), *readings], known, end)
