"""The options that `move resume` and `move abort` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Gone, Output, OutputFormat, StateDir, TakeOver, Yes


def run_option(default: str) -> Any:
    """Return the option --run. Each command has its own default."""
    return typer.Option(
        "--run", metavar="ID", help=f"Id of the run, as `kquota move status` shows it.  [default: {default}]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions:
    """Options that select open runs and safety checks."""

    connection: Connection
    run: Annotated[str | None, run_option("the open run")] = None
    reassignment_json_file: Annotated[
        Path | None, typer.Option("--reassignment-json-file", metavar="FILE", help="Select the open run of this plan.")
    ] = None
    state_dir: StateDir = None
    dry_run: DryRun = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Continue even if too few replicas stay in sync, and override moves of others."),
    ] = False
    gone: Gone = None
    take_over: TakeOver = False
    yes: Yes = False
    output: OutputFormat = Output.text
