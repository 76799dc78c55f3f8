"""`kquota move`: from the plan of a move to its last throttle."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import move_estimate, move_plan, move_runs
from kquota.cli.help import Command, Group, under

EPILOG: Final = """Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move status --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """From the plan of a move to its last throttle."""


app.command(cls=under(move_plan.HEADINGS, Command), epilog=move_plan.EPILOG)(move_plan.plan)
app.command(cls=under(move_estimate.HEADINGS, Command), epilog=move_estimate.EPILOG)(move_estimate.estimate)
app.command(cls=Command, epilog=move_runs.EPILOGS["status"])(move_runs.status)
app.command(cls=Command, epilog=move_runs.EPILOGS["resume"])(move_runs.resume)
app.command(cls=Command, epilog=move_runs.EPILOGS["abort"])(move_runs.abort)
