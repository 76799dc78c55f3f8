"""`kquota move`: plan, estimate, follow, resume and undo partition moves."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import commands
from kquota.cli.help import Group
from kquota.cli.move.abort import command as abort
from kquota.cli.move.estimate import command as estimate
from kquota.cli.move.plan import command as plan
from kquota.cli.move.resume import command as resume
from kquota.cli.move.status import command as status

EPILOG: Final = """Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move status --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Plan, estimate, follow, resume and undo partition moves."""


commands.add(app, "plan", plan.PlanOptions, epilog=plan.EPILOG, headings=plan.HEADINGS)
commands.add(app, "estimate", estimate.EstimateOptions, epilog=estimate.EPILOG, headings=estimate.HEADINGS)
commands.add(app, "status", status.MoveStatusOptions, epilog=status.EPILOG)
commands.add(app, "resume", resume.ResumeOptions, epilog=resume.EPILOG)
commands.add(app, "abort", abort.AbortOptions, epilog=abort.EPILOG)
