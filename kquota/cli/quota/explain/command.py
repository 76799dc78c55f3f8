"""`kquota quota explain`: which quota binds a client and why, or what is wrong in the whole set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, TableFormat

EPILOG: Final = """A client that did not authenticate is --user ANONYMOUS; one that sends no client-id is --client-id
''. Exit code 8: --all found something.

Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota explain --bootstrap-server localhost:9092 --all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Say which quota binds a client, why, what it shares with whom, and what it comes to on this cluster."""

    connection: Unrecorded
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="The client's user.  [default: any that no quota names]"),
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Its client-id, '' for none.  [default: any that no quota names]",
        ),
    ] = None
    ip: Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="The address that it connects from.")] = None
    all_: Annotated[bool, typer.Option("--all", help="Look through all quotas for what is in vain or wrong.")] = False
    output: TableFormat = Output.text
