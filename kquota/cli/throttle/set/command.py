"""`kquota throttle set`: a throttle for topics and brokers, for a returning broker, or for an open run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

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
    flag,
    value,
)

EPILOG: Final = """kquota records each setting that it changes. `kquota throttle clear` restores the previous values.
If you change the throttle of a running move, the command that ends the run of the move restores the values from
before the move.

Examples:
  kquota throttle set --bootstrap-server localhost:9092 --topic orders --throttle 50MB/s
  kquota throttle set --bootstrap-server localhost:9092 --recovering 3 --throttle 50MB/s"""

HEADINGS: Final = {
    "--throttle": "Rate",
    "--topic": "Topics and brokers",
    "--recovering": "Or a returning broker",
    "--run": "Or an open run",
    "--sample": "Measurement, safety, record and output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions(WritingOptions):
    """Throttle topics and brokers, a returning broker or an open run, and record the previous values."""

    connection: Connection
    throttle: Annotated[
        str | None,
        value(
            "throttle", "RATE", "Throttle rate of each broker, for example 50MB/s. Without a unit: bytes per second."
        ),
    ] = None
    topic: Annotated[list[str] | None, value("topic", "T,…", "Throttle every replica of these topics.")] = None
    all_topics: Annotated[bool, flag("all-topics", "Throttle every replica of every topic.")] = False
    broker: Annotated[
        list[str] | None,
        value("broker", "ID,…", "Set the rate on these brokers.  [default: all brokers of the topics or of the move]"),
    ] = None
    all_brokers: Annotated[bool, flag("all-brokers", "Set the rate on every broker.")] = False
    leader: OnlyLeaders = False
    follower: OnlyFollowers = False
    recovering: Annotated[
        int | None,
        value("recovering", "BROKER", "Throttle only the replicas of this broker that are out of sync.", min=0),
    ] = None
    once: Annotated[
        bool,
        flag(
            "once",
            "With --recovering: check only once. Exit code 8: the broker is behind, or a value is not restored yet.",
        ),
    ] = False
    run: Annotated[str | None, value("run", "RUN", "Change the rate of this open run.")] = None
    reassignment_json_file: Annotated[
        Path | None, value("reassignment-json-file", "FILE", "Change the rate of the open run of this plan.")
    ] = None
    sample: Annotated[
        str,
        value("sample", "TIME", "Time to measure the share of the rate that in-sync followers use. 0: do not measure."),
    ] = "3s"
    force: ForcedRate = False
    reason: Reason = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
