"""`kquota quota advise`: propose a quota for each client from its measured use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from kquota.cli.connection import Unrecorded
from kquota.cli.engine_options import SparkOptions
from kquota.cli.options import Only, Output, TableFormat, finite, flag, value
from kquota.cli.quota.metrics_source import MetricsSource
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.terms import CONSUMER_BYTE_RATE

EPILOG: Final = """kquota prints a document for `quota diff` on stdout, and sums and predictions on stderr.
With --output json or tsv, it prints each client with its use, its limits and its predicted throttle time.

Examples:
  kquota quota advise --bootstrap-server localhost:9092 --usage usage/ --network 1.25GB/s > quotas.yaml
  kquota quota advise --cluster prod --usage usage/ --brokers 6 --output tsv"""

HEADINGS: Final = {
    "--usage": "Measured use",
    "--percentile": "Limits",
    "--network": "Cluster",
    "--spark-master": "Spark (default: on this machine)",
    "--output": "Output",
}
KEYS: Final = tuple(key for key, row in QUOTA_KEYS.items() if row.simulated and row.model is not Model.BUCKET)
"""The keys that get a limit by default. Keys with a token bucket are left out: a bucket saves unused quota, so a
percentile of the rate does not show which limit a client needs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions:
    """Propose a quota for each client from its measured use, as a document for `quota diff`, and change no quota."""

    connection: Unrecorded

    usage: Annotated[
        list[Path] | None, value("usage", "DIR", "Folder with usage snapshots of `quota top`. Repeatable.")
    ] = None
    source: Annotated[MetricsSource, Only("prometheus")]
    trace: Annotated[
        list[str] | None,
        value("trace", "FILE", "File or glob of requests, in the format of `quota simulate`. Repeatable."),
    ] = None
    window: Annotated[
        str,
        value(
            "window",
            "TIME",
            "Time span of the readings to use, up to the newest one. Snapshots are selected by whole days.",
        ),
    ] = "7d"
    step: Annotated[str, value("step", "TIME", "Time between two readings from --prometheus.")] = "5m"
    compact: Annotated[
        bool, flag("compact", "Also compact the snapshots into Parquet, with one row per client, key, broker and day.")
    ] = False

    percentile: Annotated[
        float,
        value(
            "percentile",
            "N",
            "Percentage of time for which the use must stay below the limit, before head room is added.",
            min=1,
            max=100,
            callback=finite,
        ),
    ] = 99.0
    head_room: Annotated[str, value("head-room", "N%", "Percentage to add to the measured use, for growth.")] = "50%"
    key: Annotated[
        list[str] | None,
        value(
            "key",
            "KEY",
            f"Key to limit. Repeatable.  [default: {', '.join(KEYS)}; with --trace, all of these except "
            f"{CONSUMER_BYTE_RATE}]",
        ),
    ] = None

    network: Annotated[
        str | None,
        value(
            "network",
            "RATE",
            "Network bandwidth of a broker in each direction, for example 1.25GB/s. Without it, kquota cannot "
            "compare the sums of byte rates with a capacity.",
        ),
    ] = None
    brokers: Annotated[
        int | None,
        value(
            "brokers",
            "N",
            "Future number of brokers. kquota scales the limits so that each client keeps its total rate in the "
            "cluster.",
            min=1,
        ),
    ] = None

    spark: SparkOptions
    output: TableFormat = Output.text
