"""`kquota quota explain`: which quota applies to a client and why, or the problems in the whole set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, TableFormat

EPILOG: Final = """Give --user ANONYMOUS for a client that does not authenticate, and --client-id '' for a client that
sends no client-id. Exit code 8: --all found something.

Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota explain --bootstrap-server localhost:9092 --all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Explain which quota limits a client and why, which clients share it, and what it allows on this cluster."""

    connection: Unrecorded
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="User of the client.  [default: any user that no quota names]"),
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Client-id, '' for none.  [default: any client-id that no quota names]",
        ),
    ] = None
    ip: Annotated[
        str | None, typer.Option("--ip", metavar="ADDRESS", help="IP address that the client connects from.")
    ] = None
    all_: Annotated[
        bool, typer.Option("--all", help="Check all quotas for mistakes and for limits without effect.")
    ] = False
    output: TableFormat = Output.text
