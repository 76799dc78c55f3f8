"""`kquota quota probe`: a real client on a topic of its own, and whether it gets what `explain` says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import Output, OutputFormat
from kquota.measure import exact_size
from kquota.probe import ladder, load
from kquota.terms import SAMPLE_MS, SAMPLES

EPILOG: Final = """The client loads a topic of its own, kquota-probe-..., one partition on each broker, and removes
it, also when it is interrupted. What a killed one leaves is removed by the next, or by --clean-up, once its time is
over.

Exit codes: 0 the client got what `kquota quota explain` says, within 10 %; 8 it got something else, or --clean-up
left a topic that may be in use.

Examples:
  kquota quota probe --bootstrap-server localhost:9092 --client-id billing --produce 20MB/s --dry-run
  kquota quota probe --bootstrap-server localhost:9092 --clean-up"""

HEADINGS: Final = {
    "--produce": "The load (exactly one)",
    "--user": "The client",
    "--seconds": "How long, how much",
    "--most-partitions": "For --find-limit",
    "--dry-run": "Trial and output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """Load a topic of its own for some seconds as a real client, and compare what it gets with its quota."""

    connection: ThroughBrokers
    produce: Annotated[
        str | None, typer.Option("--produce", metavar="RATE", help="Write so much, over all brokers together: 20MB/s.")
    ] = None
    consume: Annotated[bool, typer.Option("--consume", help="Read, faster than the quota lets it.")] = False
    requests: Annotated[bool, typer.Option("--requests", help="Send small requests, one after the other.")] = False
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create and delete topics, faster than the quota lets it.")
    ] = False
    find_limit: Annotated[
        bool,
        typer.Option(
            "--find-limit", help="Find what the controller can take, and suggest a controller_mutation_rate (KIP-599)."
        ),
    ] = False
    clean_up: Annotated[bool, typer.Option("--clean-up", help="Only remove what killed probes left.")] = False
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="Who the client is. No client can choose that: it is whoever its login says, ANONYMOUS without one, "
            "and another is refused. To be given where only brokers know: certificates, tokens, tickets.",
        ),
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Its client-id. [default: client.id of its login's file, else kquota]",
        ),
    ] = None
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            metavar="FILE",
            help="Java properties with the client's login, where that is not --command-config's.",
        ),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="N",
            help="How long to measure, once two of the quota's windows have passed; a byte rate over whole windows "
            f"({SAMPLES * SAMPLE_MS // 1_000} s as shipped). [default: two windows; "
            f"with --find-limit 3 for each step; at most {load.MOST_SECONDS:g}]",
        ),
    ] = None
    broker_list: Annotated[
        str | None, typer.Option("--broker-list", metavar="ID,…", help="Load these brokers only.  [default: all]")
    ] = None
    most_bytes: Annotated[
        str, typer.Option("--most-bytes", metavar="SIZE", help="Write no more than this, over all brokers together.")
    ] = exact_size(load.MOST_BYTES)
    most_partitions: Annotated[
        int,
        typer.Option(
            "--most-partitions",
            metavar="N",
            min=ladder.PARTITIONS[0],
            max=ladder.PARTITIONS[-1],
            help="No more than these exist at any one time.",
        ),
    ] = ladder.MOST_PARTITIONS
    tenants: Annotated[
        int, typer.Option("--tenants", metavar="N", min=1, help="Divide the rate that is found by so many.")
    ] = 1
    overcommit: Annotated[
        float,
        typer.Option(
            "--overcommit", metavar="F", min=1, help="And multiply it by this: tenants never all work at the same time."
        ),
    ] = 1.0
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and touch nothing.")] = False
    output: OutputFormat = Output.text
