"""`kquota move report`: show how a run went, or list the runs on record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import Recorded
from kquota.cli.options import Output, StateDir, TableFormat, value

EPILOG: Final = """Throughput over time is known only for runs that `move run` or `--execute --wait` watched.
Exit codes: 0 done; 1 if no run of a move with this id is on record, or a run on record cannot be read.

Examples:
  kquota move report --bootstrap-server localhost:9092
  kquota move report --cluster prod --output tsv"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Show how a run went: its expected and actual time, and its throughput. Without RUN, list the runs on record."""

    connection: Recorded
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Id of a run, as `kquota move report` lists it.")
    ] = None
    report: Annotated[
        Path | None, value("report", "FILE", "Also write the report of RUN as an HTML page with plots.")
    ] = None
    state_dir: StateDir = None
    output: TableFormat = Output.text
