"""`kquota move estimate`: how long a move takes, before you start it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.engine_options import Conf, Debug, SparkMaster, SparkRemote
from kquota.cli.options import LogDirThrottle, Output, OutputFormat, StateDir

EPILOG: Final = """Exit codes: 0 if the move can be done as asked; 1 if it never finishes, misses the deadline, does
not fit on the disks or breaks a limit. stderr has the reason.

Examples:
  kquota move estimate --bootstrap-server localhost:9092 --reassignment-json-file plan.json --throttle 50MB/s
  kquota move estimate --log-dirs sizes.txt --bytes-in 1=3MB/s --reassignment-json-file plan.json --deadline 6h"""


HEADINGS: Final = {
    "--reassignment-json-file": "The move",
    "--log-dirs": "Sizes and write rates (default: from the live cluster)",
    "--waves": "Waves",
    "--spark-master": "Spark (default: on this machine)",
    "--report": "Output",
}
"""The help's headings, each by the first option below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """Estimate how long a throttled move takes, whether it can finish, and which broker is the bottleneck."""

    connection: ThroughBrokers
    reassignment_json_file: Annotated[
        Path,
        typer.Option(
            "--reassignment-json-file",
            metavar="FILE",
            help="The plan in the format of kafka-reassign-partitions, JSON lines or Parquet; a file or a folder.",
        ),
    ]
    throttle: Annotated[
        str | None,
        typer.Option(
            "--throttle",
            metavar="RATE",
            help="Replication throttle of each broker, for example 50MB/s. Without a unit: bytes per second.",
        ),
    ] = None
    replica_alter_log_dirs_throttle: LogDirThrottle = None
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline",
            metavar="TIME",
            help="Time in which the move must finish, for example 6h. Without --throttle, kquota finds the smallest "
            "throttle that meets it.",
        ),
    ] = None
    nic: Annotated[
        str | None, typer.Option("--nic", metavar="RATE", help="Network rate of each broker, for example 10Gbit/s.")
    ] = None
    max_impact: Annotated[
        str | None,
        typer.Option(
            "--max-impact", metavar="PERCENT", help="Largest share of --nic for the throttle, for example 30%."
        ),
    ] = None
    log_dirs: Annotated[
        list[str] | None,
        typer.Option(
            "--log-dirs", metavar="FILE", help="Sizes from the output of kafka-log-dirs; a file or glob, repeatable."
        ),
    ] = None
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Write rates, and sizes if no other source is given, from snapshots: a file, glob or folder, "
            "repeatable.",
        ),
    ] = None
    history_window: Annotated[
        str | None,
        typer.Option(
            "--history-window", metavar="TIME", help="Use only the newest part of the history, for example 7d."
        ),
    ] = None
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="Cluster to use, if the history contains several.")
    ] = None
    bytes_in: Annotated[
        list[str] | None,
        typer.Option(
            "--bytes-in",
            metavar="BROKER=RATE|FILE",
            help="Write rate of a broker, repeatable; or a file with write rates: CSV, JSON or a Prometheus query "
            "result.",
        ),
    ] = None
    sample: Annotated[
        str, typer.Option("--sample", metavar="SECONDS", help="Time to measure write rates on the live cluster.")
    ] = "3"
    assume_size: Annotated[
        str | None,
        typer.Option(
            "--assume-size",
            metavar="SIZE",
            help="Size to assume for partitions that have no known size, for example 10GB.",
        ),
    ] = None
    waves: Annotated[
        int | None,
        typer.Option("--waves", metavar="N", help="Split the move into N waves of about the same size."),
    ] = None
    max_in_flight: Annotated[
        str | None,
        typer.Option("--max-in-flight", metavar="SIZE", help="Largest size of a wave, for example 500GB."),
    ] = None
    spark_master: SparkMaster = None
    spark_remote: SparkRemote = None
    conf: Conf = None
    debug: Debug = False
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Also write the estimate as an HTML page, for example for a change ticket."
        ),
    ] = None
    state_dir: StateDir = None
    output: OutputFormat = Output.text
