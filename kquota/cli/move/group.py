"""`kquota move`: from the plan of a move to its last throttle."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli.help import Command, Group, under
from kquota.cli.move import runs
from kquota.cli.move.estimate import command as estimate
from kquota.cli.move.plan import command as plan

EPILOG: Final = """Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move status --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """From the plan of a move to its last throttle."""


app.command(cls=under(plan.HEADINGS, Command), epilog=plan.EPILOG)(plan.plan)
app.command(cls=under(estimate.HEADINGS, Command), epilog=estimate.EPILOG)(estimate.estimate)
app.command(cls=Command, epilog=runs.EPILOGS["status"])(runs.status)
app.command(cls=Command, epilog=runs.EPILOGS["resume"])(runs.resume)
app.command(cls=Command, epilog=runs.EPILOGS["abort"])(runs.abort)
