"""`kquota move plan`: find the replicas that must move to reach the goals with the fewest copied bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import LogDirThrottle, Output, OutputFormat, flag, value

EPILOG: Final = """kquota prints the plan on stdout, in the format of `kquota reassign-partitions
--reassignment-json-file`. It writes nothing to the cluster.

By default, --drain also moves internal topics. The other goals move internal topics only if --topics names them, for
example --topics '__*'.

Exit codes: 0 done, even if a goal was reached only in part (stderr gives the reason); 1 failed, or no plan is possible.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Plan a move that copies the fewest bytes: drain or add brokers, set replication factors, repair racks, or balance
    brokers.
    """

    connection: ThroughBrokers
    drain: Annotated[str | None, value("drain", "ID,…", "Move all replicas off these brokers, alive or dead.")] = None
    add: Annotated[
        str | None,
        value("add", "ID,…", "Move replicas to these brokers until their bytes are within --tolerance of the mean."),
    ] = None
    replication_factor: Annotated[
        int | None, value("replication-factor", "N", "Set N replicas for each partition.", min=1)
    ] = None
    repair_racks: Annotated[bool, flag("repair-racks", "Spread each partition over as many racks as possible.")] = False
    balance: Annotated[bool, flag("balance", "Bring every broker's bytes within --tolerance of the mean.")] = False
    balance_log_dirs: Annotated[
        int | None,
        value(
            "balance-log-dirs",
            "ID",
            "Balance the bytes in the log dirs of this broker. Not with other goals.",
            min=0,
        ),
    ] = None
    tolerance: Annotated[
        str,
        value(
            "tolerance", "PERCENT", "Largest distance from the mean bytes with --add, --balance and --balance-log-dirs."
        ),
    ] = "10%"
    topics: Annotated[
        list[str] | None,
        value(
            "topics", "GLOB,…", "Move only these topics. Repeatable.  [default: all; internal topics only for --drain]"
        ),
    ] = None
    brokers: Annotated[
        str | None, value("brokers", "ID,…", "Place new replicas only on these brokers.  [default: all live brokers]")
    ] = None
    disk_limit: Annotated[
        str, value("disk-limit", "PERCENT", "Highest disk usage that the plan may cause on a broker or log dir.")
    ] = "85%"
    disk: Annotated[
        str | None,
        value(
            "disk",
            "SIZE",
            "Total disk size to assume for each broker whose disk size is unknown, for example 2TB. Brokers report "
            "the size from Kafka 3.3.",
        ),
    ] = None
    history: Annotated[
        list[str] | None,
        value("history", "PATH", "Use sizes from the newest snapshot in a file or folder instead of the live sizes."),
    ] = None
    replica_alter_log_dirs_throttle: LogDirThrottle = None
    explain: Annotated[bool, flag("explain", "Show all moves on stderr, not only the first 20.")] = False
    output: OutputFormat = Output.text
