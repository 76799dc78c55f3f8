"""`kquota move report`: read the record of runs, and report one of them or list all."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, say
from kquota.cli.move.report.answer import RunReport, RunsListed, listed, reported
from kquota.cli.move.report.command import ReportOptions
from kquota.errors import Invalid, Refused
from kquota.reassign.run import Purpose

GENERATOR: Final = "kquota move report"
"""The generator in the head of a page. kquota does not overwrite a file that lacks it."""


def run(options: ReportOptions) -> RunsListed | RunReport:
    """Report a run or list all. Raises Refused for a run that is not on record, Invalid for --report without a run."""
    if options.report is not None:
        _must_be_writable(options.report, options.run)
    with world.moves(world.where(options.connection), options.state_dir) as (_, runs):
        found = runs.past(whole=options.run is not None)
        unseen = world.unseen(runs.alone)
    moves = [one for one in found.runs if one.purpose is Purpose.MOVE]
    unread = {name: why for name, why in found.unread.items() if options.run in (None, name)}
    notes = tuple(f"error: run {name} cannot be read: {why}" for name, why in sorted(unread.items()))
    if options.run is None:
        empty = () if moves else ("no run is on record", *unseen)
        return RunsListed(runs=tuple(map(listed, moves)), notes=(*notes, *empty), code=FAILED if unread else DONE)
    named = next((one for one in moves if one.id == options.run), None)
    if named is None:
        if unread:
            raise Refused(notes[0].removeprefix("error: "))
        known = ", ".join(one.id for one in moves[:5]) or "none"
        raise Refused(f"run {options.run}: no run with this id is on record (newest runs: {known})")
    answer = reported(named)
    if options.report is not None:
        _write(options.report, answer)
    return answer


def _must_be_writable(path: Path, run_id: str | None) -> None:
    if run_id is None:
        raise Invalid("--report writes the page of one run: give RUN")
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        named = " and ".join(missing)
        raise Refused(f"--report: a library is not installed ({named}). Run: pip install 'kquota[report]'")
    world.check_report(path, GENERATOR)


def _write(path: Path, answer: RunReport) -> None:
    from kquota.cli.move.report.page import page

    world.write_report(path, page(answer, GENERATOR))
    say(f"report written: {path}")
