"""`kquota move report`: read the runs on record, and report one of them or list all."""

from __future__ import annotations

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, FAILED
from kquota.cli.move.report.answer import RunReport, RunsListed, listed, reported
from kquota.cli.move.report.command import ReportOptions
from kquota.cli.move.report.page import must_be_writable, write
from kquota.errors import Invalid, Refused
from kquota.reassign.run import Purpose


def run(options: ReportOptions) -> RunsListed | RunReport:
    """Return the report of one run, or the list of recorded runs. Runs without a move are left out.

    Raises Invalid for --report without a run or with an unusable path. Raises Refused for a run that is unknown,
    unreadable or without a move, and if the page cannot be written.
    """
    if options.report is not None:
        if options.run is None:
            raise Invalid("--report writes the page of one run. Give RUN")
        must_be_writable(options.report)
    with move_stores.moves(world.where(options.connection), options.state_dir) as (_, runs):
        found = runs.past(whole=options.run is not None)
        unseen = world.unseen(runs.alone)
    moves = [one for one in found.runs if one.purpose is Purpose.MOVE]
    unread = {name: why for name, why in found.unread.items() if options.run in (None, name)}
    notes = tuple(f"error: run {name} cannot be read: {why}" for name, why in sorted(unread.items()))
    if options.run is None:
        empty = () if moves else ("no run of a move is on record", *unseen)
        return RunsListed(runs=tuple(map(listed, moves)), notes=(*notes, *empty), code=FAILED if unread else DONE)
    named = next((one for one in moves if one.id == options.run), None)
    if named is None:
        if unread:
            raise Refused(notes[0].removeprefix("error: "))
        if any(one.id == options.run for one in found.runs):
            raise Refused(f"run {options.run} is a throttle without a move, so it has no report")
        known = ", ".join(one.id for one in moves[:5]) or "none"
        raise Refused(f"run {options.run}: no run with this id is on record (newest runs: {known})")
    answer = reported(named)
    if options.report is not None:
        write(options.report, answer)
    return answer
