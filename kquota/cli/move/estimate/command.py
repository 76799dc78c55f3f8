"""`kquota move estimate`: estimate how long a move takes, before you start it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from kquota.cli.connection import ThroughBrokers
from kquota.cli.engine_options import SparkOptions
from kquota.cli.options import LogDirThrottle, Output, OutputFormat, StateDir, value

EPILOG: Final = """Exit codes: 0 if nothing known prevents the move; 1 if it never finishes, misses the deadline, does
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """Estimate how long a throttled move takes, whether it can finish, and which broker is the bottleneck."""

    connection: ThroughBrokers
    reassignment_json_file: Annotated[
        Path,
        value(
            "reassignment-json-file",
            "FILE",
            "The plan in the format of kafka-reassign-partitions, JSON lines or Parquet; a file or a folder.",
        ),
    ]
    throttle: Annotated[
        str | None,
        value(
            "throttle",
            "RATE",
            "Replication throttle of each broker, for example 50MB/s. Without a unit: bytes per second.",
        ),
    ] = None
    replica_alter_log_dirs_throttle: LogDirThrottle = None
    deadline: Annotated[
        str | None,
        value(
            "deadline",
            "TIME",
            "Time in which the move must finish, for example 6h. Without --throttle, kquota finds the smallest "
            "throttle that meets it.",
        ),
    ] = None
    nic: Annotated[str | None, value("nic", "RATE", "Network bandwidth of each broker, for example 10Gbit/s.")] = None
    max_impact: Annotated[
        str | None, value("max-impact", "PERCENT", "Largest share of --nic for the throttle, for example 30%.")
    ] = None
    log_dirs: Annotated[
        list[str] | None,
        value("log-dirs", "FILE", "Sizes from the output of kafka-log-dirs; a file or glob, repeatable."),
    ] = None
    history: Annotated[
        list[str] | None,
        value(
            "history",
            "PATH",
            "Snapshots for write rates, and for sizes if no other source is given. File, glob or folder; repeatable.",
        ),
    ] = None
    history_window: Annotated[
        str | None, value("history-window", "TIME", "Use only the newest part of the history, for example 7d.")
    ] = None
    cluster_id: Annotated[str | None, value("cluster-id", "ID", "Cluster to use, if the history contains several.")] = (
        None
    )
    bytes_in: Annotated[
        list[str] | None,
        value(
            "bytes-in",
            "BROKER=RATE|FILE",
            "Write rate of a broker, repeatable; or a file with write rates: CSV, JSON or a Prometheus query result.",
        ),
    ] = None
    sample: Annotated[str, value("sample", "TIME", "Time to measure write rates on the live cluster.")] = "3s"
    assume_size: Annotated[
        str | None,
        value("assume-size", "SIZE", "Size to assume for partitions that have no known size, for example 10GB."),
    ] = None
    waves: Annotated[int | None, value("waves", "N", "Split the move into N waves of about the same size.")] = None
    max_in_flight: Annotated[
        str | None, value("max-in-flight", "SIZE", "Largest size of a wave, for example 500GB.")
    ] = None
    spark: SparkOptions
    report: Annotated[
        Path | None,
        value("report", "FILE", "Also write the estimate as an HTML page, for example for a change ticket."),
    ] = None
    state_dir: StateDir = None
    output: OutputFormat = Output.text
