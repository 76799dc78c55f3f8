"""`kquota move watch`: show the progress of running moves, and why one makes no progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import Recorded
from kquota.cli.options import Interval, Output, OutputFormat, StateDir

EPILOG: Final = """Without PLAN and --run, kquota watches all open runs, and the moves that other tools started.

Exit codes: 0 if the moves have ended; 8 if they are running (--once) or their throttle is still set; 1 if they have
ended, but replicas are not those of the plan. If a throttle is still set, a finding has the command that restores it.

Examples:
  kquota move watch --bootstrap-server localhost:9092
  kquota move watch --cluster prod --once --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Show bytes, throughput, lag and time left of running moves, and why a move makes no progress."""

    connection: Recorded
    plan: Annotated[Path | None, typer.Argument(metavar="[PLAN]", help="Watch the moves of this plan.")] = None
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="Watch the moves of this open run.")] = None
    interval: Interval = "5s"
    once: Annotated[bool, typer.Option("--once", help="Read the cluster once. Throughput is then unknown.")] = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
