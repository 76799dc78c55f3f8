"""`kquota quota export`: the quotas of a whole cluster as one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """YAML unless --output says json; export, apply and export again give the same bytes.

Examples:
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml
  kquota quota export --zookeeper localhost:2181 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Print all client quotas of the cluster as one document: YAML, or the same as JSON."""

    connection: Unrecorded
    replication_throttles: Annotated[
        bool, typer.Option("--replication-throttles", help="Also the replication throttles of brokers and topics.")
    ] = False
    output: OutputFormat = Output.text
