"""`kquota throttle set`: throttle topics and brokers without a move, a returning broker, or a running move anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Output, OutputFormat, Reason, StateDir

EPILOG: Final = """What is set is on record: `kquota throttle clear` gives back what stood before, value by value.

Examples:
  kquota throttle set --bootstrap-server localhost:9092 --topic orders --throttle 50MB/s
  kquota throttle set --bootstrap-server localhost:9092 --recovering 3 --throttle 50MB/s"""

HEADINGS: Final = {
    "--throttle": "How fast",
    "--topic": "Of topics and brokers",
    "--recovering": "Or of a broker that comes back",
    "--run": "Or of a move under way",
    "--sample": "Trial, record and output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """Throttle topics and brokers, a broker that comes back, or a move under way; on record, to be given back."""

    connection: Connection
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="RATE", help="The rate of each broker: 50MB/s; bare: bytes per second."),
    ] = None
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="T,…", help="Throttle every replica of these topics.")
    ] = None
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Throttle every replica of every topic.")] = False
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker", metavar="ID,…", help="Set the rate on these brokers.  [default: all that hold replicas]"
        ),
    ] = None
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="Set the rate on every broker.")] = False
    leader: Annotated[bool, typer.Option("--leader", help="Only what leaders send.")] = False
    follower: Annotated[bool, typer.Option("--follower", help="Only what followers receive.")] = False
    recovering: Annotated[
        int | None,
        typer.Option("--recovering", metavar="BROKER", min=0, help="Throttle just what this broker is behind with."),
    ] = None
    once: Annotated[
        bool, typer.Option("--once", help="With --recovering: one look; exits 8 while the broker is behind.")
    ] = False
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Give this open run another rate.")] = None
    reassignment_json_file: Annotated[
        Path | None,
        typer.Option("--reassignment-json-file", metavar="FILE", help="The same for the open run of this plan."),
    ] = None
    sample: Annotated[
        str,
        typer.Option("--sample", metavar="TIME", help="How long to measure what in-sync followers take of it; 0: not."),
    ] = "3s"
    reason: Reason = None
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
