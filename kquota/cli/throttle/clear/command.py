"""`kquota throttle clear`: what `throttle set` took goes back value by value; or every throttle of the cluster goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Gone, Output, OutputFormat, StateDir, Yes

EPILOG: Final = """Without --all only what `kquota throttle set` took goes back; the throttle of a move ends with
`kquota reassign-partitions --verify`. Exit code 8: a broker was not reached and is still throttled.

Examples:
  kquota throttle clear --bootstrap-server localhost:9092
  kquota throttle clear --bootstrap-server localhost:9092 --all --dry-run"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearOptions:
    """Give back what `throttle set` took, exactly as it stood before; again, it changes nothing."""

    connection: Connection
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Only what this run took.  [default: every `throttle set` of yours on this host]",
        ),
    ] = None
    everything: Annotated[
        bool, typer.Option("--all", help="Take every replication throttle of the cluster away, whoever set it.")
    ] = False
    gone: Gone = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
