"""`kquota quota top`: show the clients that are nearest to their quotas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Interval, Output, TableFormat, flag, value
from kquota.cli.quota.metrics_source import MetricsSource

EPILOG: Final = """On a terminal, kquota refreshes the table until Ctrl-C. Otherwise, it prints one reading.

Exit codes: 0 if no client is throttled; 8 if a client is throttled; 1 if the metrics of a broker could not be read, or
are of a broker that is not live in this cluster.

Examples:
  kquota quota top --bootstrap-server localhost:9092 --metrics http://localhost:7071/metrics
  kquota quota top --cluster prod --prometheus 'http://prometheus:9090?job=kafka' --snapshot usage/ --output tsv"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    """Show the clients that are nearest to their quotas, from the metrics of the brokers."""

    connection: Unrecorded
    source: MetricsSource
    snapshot: Annotated[
        Path | None, value("snapshot", "DIR", "Also add each reading to the usage snapshots in DIR.")
    ] = None
    interval: Interval = "5s"
    once: Annotated[bool, flag("once", "Print one reading and exit, even on a terminal.")] = False
    limited: Annotated[bool, flag("limited", "Show only clients that a quota limits.")] = False
    lines: Annotated[
        int, value("lines", "N", "Largest number of rows in the table, one for each client and key.", min=1)
    ] = 20
    output: TableFormat = Output.text
