"""`kquota quota probe`: load a scratch topic with a real client, and compare the result with `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import ThroughBrokers
from kquota.cli.options import Output, OutputFormat, WritingOptions, Yes, finite, flag, value
from kquota.measure import exact_size
from kquota.probe import ladder, load
from kquota.terms import SAMPLE_MS, SAMPLES

EPILOG: Final = """A probe creates its own topics, kquota-probe-..., and removes them, also after an interrupt. Except
with --create-topics and --find-limit, it creates at most one topic, with one partition on each broker. If a probe was
killed, its topics remain. --clean-up removes them, and so does the next probe without --client-command, but only after
the end time in their names.

Exit codes: 0 if the client got the expected rate, within 10%; 8 if it got more or less, if another quota throttled it,
if --find-limit found no limit to suggest, or if --clean-up kept a topic; 1 if a topic could not be removed. With
--client-command: 0 if the client honors throttle times; 8 if it sent requests in more than 10% of the throttle times; 1
if it failed, or kquota could not judge any throttle time.

Examples:
  kquota quota probe --bootstrap-server localhost:9092 --client-id billing --produce 20MB/s --dry-run
  kquota quota probe --bootstrap-server localhost:9092 --clean-up"""

HEADINGS: Final = {
    "--produce": "The load (exactly one)",
    "--user": "The client",
    "--seconds": "Duration and amount",
    "--most-partitions": "For --find-limit",
    "--dry-run": "Dry run and output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(WritingOptions):
    """Load a topic with a real client for some seconds, and compare the throughput of the client with its quota."""

    connection: ThroughBrokers
    produce: Annotated[
        str | None, value("produce", "RATE", "Write at this total rate to all brokers, for example 20MB/s.")
    ] = None
    consume: Annotated[bool, flag("consume", "Read faster than the quota allows.")] = False
    requests: Annotated[bool, flag("requests", "Send small requests as fast as possible.")] = False
    create_topics: Annotated[bool, flag("create-topics", "Create and delete topics faster than the quota allows.")] = (
        False
    )
    find_limit: Annotated[
        bool,
        flag(
            "find-limit",
            "Measure how many mutations per second the controller sustains, and suggest a "
            "controller_mutation_rate (KIP-599).",
        ),
    ] = False
    client_command: Annotated[
        str | None,
        value(
            "client-command",
            "COMMAND",
            "Start your own client through a proxy, and report whether it honors throttle times (KIP-219). "
            "{bootstrap} in the command is the address of the proxy, and {topic} is a topic that kquota creates and "
            "removes.",
        ),
    ] = None
    clean_up: Annotated[bool, flag("clean-up", "Only remove the topics of killed probes.")] = False
    user: Annotated[
        str | None,
        value(
            "user",
            "NAME",
            "User of the client. The login determines it (ANONYMOUS without a login), and kquota refuses another "
            "name. Required for logins whose user only the brokers know: certificates, tokens, tickets.",
        ),
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Client-id of the client.  [default: client.id of the login file, else kquota]",
        ),
    ] = None
    client_config: Annotated[
        Path | None,
        value("client-config", "FILE", "Java properties with the client's login, if it differs from --command-config."),
    ] = None
    seconds: Annotated[
        float | None,
        value(
            "seconds",
            "N",
            "Time to measure. kquota measures a load on brokers after its first two quota windows, and byte rates "
            f"over whole windows ({SAMPLES * SAMPLE_MS // 1_000} s by default).  [default: two windows, or 3 s for "
            f"each step of --find-limit, or 60 s for --client-command; at most {load.MOST_SECONDS:g}]",
            callback=finite,
        ),
    ] = None
    broker_list: Annotated[str | None, value("broker-list", "ID,…", "Load only these brokers.  [default: all]")] = None
    most_bytes: Annotated[str, value("most-bytes", "SIZE", "Largest amount to write, in total over all brokers.")] = (
        exact_size(load.MOST_BYTES)
    )
    most_partitions: Annotated[
        int,
        value(
            "most-partitions",
            "N",
            "Largest number of the probe's own partitions that exist at the same time.",
            min=ladder.PARTITIONS[0],
            max=ladder.PARTITIONS[-1],
        ),
    ] = ladder.MOST_PARTITIONS
    tenants: Annotated[int, value("tenants", "N", "Divide the suggested rate by this number of tenants.", min=1)] = 1
    overcommit: Annotated[
        float,
        value(
            "overcommit",
            "F",
            "Multiply each tenant's rate by this factor, because tenants do not all work at the same time.",
            min=1,
            callback=finite,
        ),
    ] = 1.0
    yes: Yes = False
    dry_run: Annotated[bool, flag("dry-run", "Print the plan, and change nothing.")] = False
    output: OutputFormat = Output.text
