"""`kquota log-dirs`: like kafka-log-dirs, but it also records the sizes in a history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli import commands
from kquota.cli.connection import ThroughBrokers
from kquota.cli.engine_options import SparkOptions
from kquota.cli.options import Only, Output, OutputFormat, flag, value

EPILOG: Final = """The name of a snapshot file contains its cluster and its time, so the snapshots of a cron job can
share one folder. --compact prints the snapshot files that you can delete afterwards: all compacted ones
except the newest of each cluster.

Examples:
  kquota log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders,payments
  kquota log-dirs --bootstrap-server localhost:9092 --snapshot history/"""


HEADINGS: Final = {
    "--describe": "Action (exactly one)",
    "--topic-list": "Replicas",
    "--conf": "Spark, for --compact",
    "--output": "Output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirsOptions:
    """Show replica sizes like kafka-log-dirs, and record them in a history."""

    connection: ThroughBrokers
    describe: Annotated[bool, flag("describe", "Print the size of every replica in bytes, as JSON.")] = False
    snapshot: Annotated[
        Path | None, value("snapshot", "DIR", "Write the replica sizes into a new snapshot file in DIR.")
    ] = None
    compact: Annotated[
        Path | None, value("compact", "DIR", "Compact the snapshots in DIR into Parquet, with Spark.")
    ] = None
    topic_list: Annotated[str | None, value("topic-list", "T,…", "Only these topics.  [default: all]")] = None
    broker_list: Annotated[str | None, value("broker-list", "ID,…", "Only these brokers.  [default: all]")] = None
    spark: Annotated[SparkOptions, Only("conf", "debug")]
    output: OutputFormat = Output.text


app = typer.Typer()
commands.add(app, "log-dirs", LogDirsOptions, epilog=EPILOG, headings=HEADINGS)
