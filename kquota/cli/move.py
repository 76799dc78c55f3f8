"""`kquota move`: from the plan of a move to its last throttle."""

from __future__ import annotations

import typer

from kquota.cli import move_estimate, move_plan, move_runs

app = typer.Typer(help="From the plan of a move to its last throttle.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """From the plan of a move to its last throttle."""


app.command(epilog=move_plan.EPILOG)(move_plan.plan)
app.command(epilog=move_estimate.EPILOG)(move_estimate.estimate)
app.command(epilog=move_runs.EPILOGS["status"])(move_runs.status)
app.command(epilog=move_runs.EPILOGS["resume"])(move_runs.resume)
app.command(epilog=move_runs.EPILOGS["abort"])(move_runs.abort)
