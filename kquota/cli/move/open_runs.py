"""The open runs that `move adjust`, `resume` and `abort` work on: all, or the one that the operator selects."""

from __future__ import annotations

from pathlib import Path

from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, Refused
from kquota.reassign.plan import Plan
from kquota.reassign.port import Runs
from kquota.reassign.run import Purpose, Run, covers


def chosen_runs(runs: Runs, run: str | None, file: Path | None, plan: Plan | None, *, one: bool) -> list[Run]:
    """Return the open run of `plan` if a plan is given, or the one with the id `run` if an id is given, or else all
    open runs of moves. `file` is the file of the plan.

    Raises Refused if no open run has this id or plan. With `one`, raises Invalid if several runs are left.
    """
    unfinished = runs.unfinished()
    moving = [each for each in unfinished if each.purpose is Purpose.MOVE]
    ids = ", ".join(each.id for each in moving) or "none"
    found, what = moving, ""
    if plan is not None:
        covered = covers(plan, unfinished)
        found, what = [] if covered is None else [covered], f"{file}: no run of this plan is open"
    elif run is not None:
        found, what = [each for each in moving if each.id == run], f"--run {run}: no open run of a move has this id"
    if what and not found:
        raise Refused(f"{what} (open runs of moves: {ids}). See all runs with {suggested('move report')}")
    if one and len(found) > 1:
        raise Invalid(f"several runs of moves are open ({ids}). Select one with --run or --reassignment-json-file")
    return found
