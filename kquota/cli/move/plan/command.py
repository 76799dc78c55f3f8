"""`kquota move plan`: which replicas to move so that a goal is reached, and the fewest bytes are copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """The plan on stdout is what `kquota reassign-partitions --reassignment-json-file` takes. Nothing is
written to the cluster.

Internal topics are drained with all others; for other goals name them: --topics '__*'.

Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move plan --bootstrap-server localhost:9092 --topics 'orders*' --replication-factor 3 --repair-racks \
> plan.json"""


HEADINGS: Final = {
    "--drain": "Goals (one or more)",
    "--tolerance": "Bounds",
    "--disk": "What brokers do not tell",
    "--explain": "Output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Plan the fewest bytes to move: drain or add brokers, set replication factors, repair racks, balance."""

    connection: ThroughBrokers
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="ID,…", help="Leave no replica on these brokers, alive or dead.")
    ] = None
    add: Annotated[
        str | None, typer.Option("--add", metavar="ID,…", help="Bring these brokers their fair share of the bytes.")
    ] = None
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", metavar="N", min=1, help="Give each partition N replicas.")
    ] = None
    repair_racks: Annotated[
        bool, typer.Option("--repair-racks", help="Put each partition on as many racks as there are.")
    ] = False
    balance: Annotated[
        bool, typer.Option("--balance", help="Bring every broker's bytes within --tolerance of the mean.")
    ] = False
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance", metavar="PERCENT", help="How far from the mean of bytes --add and --balance leave a broker."
        ),
    ] = "10%"
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topics", metavar="GLOB,…", help="Only these topics, repeatable.  [default: all but internal ones]"
        ),
    ] = None
    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers", metavar="ID,…", help="Replicas come to these brokers only.  [default: all live ones]"
        ),
    ] = None
    disk_limit: Annotated[
        str, typer.Option("--disk-limit", metavar="PERCENT", help="How full the plan may make a broker's disks.")
    ] = "85%"
    disk: Annotated[
        str | None,
        typer.Option(
            "--disk",
            metavar="SIZE",
            help="How large every broker's disk is, where brokers do not tell (before Kafka 3.3): 2TB.",
        ),
    ] = None
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="PATH",
            help="Sizes from the newest snapshot of a file or folder, in place of the live ones.",
        ),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Show every move on stderr, not just the first 20.")] = (
        False
    )
    output: OutputFormat = Output.text
