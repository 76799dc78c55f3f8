"""`kquota sandbox`: real servers on this machine."""

from __future__ import annotations

import typer

app = typer.Typer(help="A real ZooKeeper and real Kafka on this machine.", no_args_is_help=True)


@app.command()
def status() -> None:
    """Which sandboxes run, and where."""
