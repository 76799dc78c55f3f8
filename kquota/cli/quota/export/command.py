"""`kquota quota export`: the quotas of a whole cluster as one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """The document is YAML, or JSON with --output json. After `quota apply`,
an export prints the same bytes again.

Examples:
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml
  kquota quota export --zookeeper localhost:2181 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Print all client quotas of the cluster as one document, in YAML or JSON."""

    connection: Unrecorded
    replication_throttles: Annotated[
        bool,
        typer.Option("--replication-throttles", help="Also print the replication throttles of brokers and topics."),
    ] = False
    output: OutputFormat = Output.text
