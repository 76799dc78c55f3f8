"""`kquota throttle doctor`: leftovers of throttles found, and with --fix taken away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Output, StateDir, TableFormat, Yes

EPILOG: Final = """Exit codes: 0 nothing is left over, 8 something is. In cron give --older-than: what was seen at
every look for so long goes, and younger leftovers stay (exit code 8).

Examples:
  kquota throttle doctor --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092 --fix --yes --older-than 1h"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """Find rates and lists that outlived their move, that do nothing, or that contradict each other."""

    connection: Connection
    fix: Annotated[bool, typer.Option("--fix", help="Take away what no run holds and no move can use.")] = False
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="TIME", help="With --fix: only what was there at every look for so long: 1h."
        ),
    ] = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: TableFormat = Output.text
