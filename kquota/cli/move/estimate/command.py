"""`kquota move estimate`: how long a move takes, before it is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.engine_options import Conf, Debug, SparkMaster, SparkRemote
from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """Exit codes: 0 it can be done as asked; 1 it cannot, and why: it never finishes, is late, has no room.

Examples:
  kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s
  kquota move estimate --log-dirs sizes.txt --bytes-in 1=3MB/s --reassignment-json-file plan.json --deadline 6h"""


HEADINGS: Final = {
    "--reassignment-json-file": "The move",
    "--log-dirs": "Sizes and write rates; by default the live cluster's",
    "--waves": "In waves",
    "--spark-master": "Where Spark runs; by default here",
    "--report": "Output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """Say how long a throttled move takes, which broker is the bottleneck, and whether it can ever finish."""

    connection: ThroughBrokers
    reassignment_json_file: Annotated[
        Path,
        typer.Option(
            "--reassignment-json-file",
            metavar="FILE",
            help="The plan, as kafka-reassign-partitions'; also JSON lines or Parquet, a file or a folder.",
        ),
    ]
    throttle: Annotated[
        str | None,
        typer.Option(
            "--throttle",
            metavar="RATE",
            help="The replication throttle of each broker: 50MB/s; bare: bytes per second.",
        ),
    ] = None
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME",
            help="When the move has to be done: 6h. Without --throttle, the smallest one that meets it is found.",
        ),
    ] = None
    nic: Annotated[
        str | None, typer.Option("--nic", metavar="RATE", help="What each broker's network carries: 10Gbit/s.")
    ] = None
    max_impact: Annotated[
        str | None,
        typer.Option("--max-impact", metavar="PERCENT", help="The most of --nic that the throttle may be: 30%."),
    ] = None
    log_dirs: Annotated[
        list[str] | None,
        typer.Option(
            "--log-dirs", metavar="FILE", help="Sizes from kafka-log-dirs' output; a file or glob, repeatable."
        ),
    ] = None
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Write rates and unknown sizes, from snapshots: file, glob, folder; repeatable.",
        ),
    ] = None
    history_window: Annotated[
        str | None, typer.Option("--history-window", metavar="TIME", help="Only the newest part of the history: 7d.")
    ] = None
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="Which of the clusters that a history holds.")
    ] = None
    bytes_in: Annotated[
        list[str] | None,
        typer.Option(
            "--bytes-in",
            metavar="BROKER=RATE|FILE",
            help="What clients write to a broker, repeatable; or a file: CSV, JSON, a Prometheus query result.",
        ),
    ] = None
    sample: Annotated[
        str, typer.Option("--sample", metavar="SECONDS", help="How long to measure write rates on the live cluster.")
    ] = "3"
    assume_size: Annotated[
        str | None,
        typer.Option("--assume-size", metavar="SIZE", help="How big partitions are that nobody tells of: 10GB."),
    ] = None
    waves: Annotated[
        int | None,
        typer.Option("--waves", metavar="N", help="Cut the move into so many waves of about the same bytes."),
    ] = None
    max_in_flight: Annotated[
        str | None, typer.Option("--max-in-flight", metavar="SIZE", help="The most that one wave may copy: 500GB.")
    ] = None
    spark_master: SparkMaster = None
    spark_remote: SparkRemote = None
    conf: Conf = None
    debug: Debug = False
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write the answer as a page for a change ticket, too."),
    ] = None
    output: OutputFormat = Output.text
