"""`kquota move`: from the plan of a move to its last throttle."""

from __future__ import annotations

import typer

from kquota.cli import move_estimate

app = typer.Typer(help="How long a move takes, before it is started.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """How long a move takes, before it is started."""


app.command(epilog=move_estimate.EPILOG)(move_estimate.estimate)
