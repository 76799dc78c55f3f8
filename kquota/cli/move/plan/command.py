"""`kquota move plan`: the replicas that must move to reach the goals with the fewest copied bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import LogDirThrottle, Output, OutputFormat

EPILOG: Final = """stdout has the plan in the format of `kquota reassign-partitions --reassignment-json-file`. Nothing
is written to the cluster.

By default, --drain also moves internal topics. For other goals, name them: --topics '__*'.

Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move plan --bootstrap-server localhost:9092 --topics 'orders*' --replication-factor 3 --repair-racks \
> plan.json"""


HEADINGS: Final = {
    "--drain": "Goals (one or more)",
    "--tolerance": "Bounds",
    "--disk": "Sizes",
    "--replica-alter-log-dirs-throttle": "Expected time (with --balance-log-dirs)",
    "--explain": "Output",
}
"""The help's headings, each by the first option below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Plan a move that copies the fewest bytes: drain or add brokers, set replication factors, repair racks, or balance
    brokers.
    """

    connection: ThroughBrokers
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="ID,…", help="Move all replicas off these brokers, alive or dead.")
    ] = None
    add: Annotated[
        str | None, typer.Option("--add", metavar="ID,…", help="Move a fair share of the bytes to these brokers.")
    ] = None
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", metavar="N", min=1, help="Set N replicas for each partition.")
    ] = None
    repair_racks: Annotated[
        bool, typer.Option("--repair-racks", help="Spread each partition over as many racks as possible.")
    ] = False
    balance: Annotated[
        bool, typer.Option("--balance", help="Bring every broker's bytes within --tolerance of the mean.")
    ] = False
    balance_log_dirs: Annotated[
        int | None,
        typer.Option(
            "--balance-log-dirs",
            metavar="ID",
            min=0,
            help="Balance the bytes in the log dirs of this broker. You cannot combine it with another goal.",
        ),
    ] = None
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance",
            metavar="PERCENT",
            help="Largest distance from the mean bytes with --add, --balance and --balance-log-dirs.",
        ),
    ] = "10%"
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topics",
            metavar="GLOB,…",
            help="Move only these topics. Repeatable.  [default: all; internal topics only for --drain]",
        ),
    ] = None
    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers", metavar="ID,…", help="Place new replicas only on these brokers.  [default: all live ones]"
        ),
    ] = None
    disk_limit: Annotated[
        str,
        typer.Option(
            "--disk-limit",
            metavar="PERCENT",
            help="Highest disk usage that the plan may cause on a broker or log dir.",
        ),
    ] = "85%"
    disk: Annotated[
        str | None,
        typer.Option(
            "--disk",
            metavar="SIZE",
            help="Disk size of brokers that do not report it (before Kafka 3.3), for example 2TB.",
        ),
    ] = None
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Use sizes from the newest snapshot in a file or folder instead of the live sizes.",
        ),
    ] = None
    replica_alter_log_dirs_throttle: LogDirThrottle = None
    explain: Annotated[bool, typer.Option("--explain", help="Show all moves on stderr, not only the first 20.")] = False
    output: OutputFormat = Output.text
