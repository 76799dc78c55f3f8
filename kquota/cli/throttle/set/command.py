"""`kquota throttle set`: throttle topics and brokers without a move, a returning broker, or a running move."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import Connection
from kquota.cli.options import (
    DryRun,
    ForcedRate,
    OnlyFollowers,
    OnlyLeaders,
    Output,
    OutputFormat,
    Reason,
    StateDir,
    WritingOptions,
    Yes,
)

EPILOG: Final = """kquota records each setting that it changes. `kquota throttle clear` restores the previous values.

Examples:
  kquota throttle set --bootstrap-server localhost:9092 --topic orders --throttle 50MB/s
  kquota throttle set --bootstrap-server localhost:9092 --recovering 3 --throttle 50MB/s"""

HEADINGS: Final = {
    "--throttle": "Rate",
    "--topic": "Topics and brokers",
    "--recovering": "Or a returning broker",
    "--run": "Or a running move",
    "--sample": "Measurement, safety, record and output",
}
"""The help's headings, each by the first option below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions(WritingOptions):
    """Throttle topics and brokers, a returning broker or a running move, and record the previous values."""

    connection: Connection
    throttle: Annotated[
        str | None,
        typer.Option(
            "--throttle",
            metavar="RATE",
            help="Throttle rate of each broker, for example 50MB/s. Without a unit: bytes per second.",
        ),
    ] = None
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="T,…", help="Throttle every replica of these topics.")
    ] = None
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Throttle every replica of every topic.")] = False
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker",
            metavar="ID,…",
            help="Set the rate on these brokers.  [default: all brokers of the topics or of the move]",
        ),
    ] = None
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="Set the rate on every broker.")] = False
    leader: OnlyLeaders = False
    follower: OnlyFollowers = False
    recovering: Annotated[
        int | None,
        typer.Option(
            "--recovering",
            metavar="BROKER",
            min=0,
            help="Throttle only the replicas of this broker that are out of sync.",
        ),
    ] = None
    once: Annotated[
        bool,
        typer.Option("--once", help="With --recovering: check only once. Exit code 8: the broker is still behind."),
    ] = False
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Change the rate of this open run.")] = None
    reassignment_json_file: Annotated[
        Path | None,
        typer.Option("--reassignment-json-file", metavar="FILE", help="Change the rate of the open run of this plan."),
    ] = None
    sample: Annotated[
        str,
        typer.Option(
            "--sample",
            metavar="TIME",
            help="Time to measure the share of the rate that in-sync followers use. 0: do not measure.",
        ),
    ] = "3s"
    force: ForcedRate = False
    reason: Reason = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
