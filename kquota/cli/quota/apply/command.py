"""`kquota quota apply`: set a cluster's quotas to what a document says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, OutputFormat, Prune, QuotaFile, Yes

EPILOG: Final = """On a terminal, it shows the change and asks for confirmation. Elsewhere, give --yes, or --change
with the hash that was reviewed. Exit codes: 0 done, or nothing to change; 1 refused, or some entities were not
changed (they are named).

Examples:
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --yes
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --prune --change sha256:1f0e9c2b7a6d5e43"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """Set the cluster's quotas to what the document says. A second run changes nothing."""

    connection: Unrecorded
    file: QuotaFile
    prune: Prune = False
    yes: Yes = False
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="HASH",
            help="Do not ask, and apply only the change that has this hash in `quota diff`.",
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, without sending it.")] = False
    output: OutputFormat = Output.text
