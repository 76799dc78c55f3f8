"""`kquota move run`: the options of a whole move, from the health check to the restored throttle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import MovesThroughBrokers
from kquota.cli.options import DryRun, Output, OutputFormat, Reason, StateDir, WritingOptions, Yes
from kquota.cli.pacing.options import PaceOptions

EPILOG: Final = """kquota checks the cluster's health and the disks, throttles the brokers, submits the moves in
waves, waits until they end, and restores the throttle. With --deadline, --between or --protect, it changes the throttle
as the moves proceed, like `kquota move adjust`. If kquota is killed, the run stays on record: run the same
command again, or `kquota move resume`, on any host that sees the record.

Exit codes: 0 if the move is done and the throttle is restored; 8 if a throttle is not restored yet; 1 if kquota
refused or undid the move, if replicas are not those of the plan, or if a leader was not elected; 75 if another kquota
holds the lock.

Examples:
  kquota move run plan.json --bootstrap-server localhost:9092 --throttle 50MB/s
  kquota move run plan.json --cluster prod --protect --max-rate 200MB/s --max-in-flight 100GB --elect-leaders"""

HEADINGS: Final = {
    "--throttle": "Throttle",
    "--deadline": "Throttle over time",
    "--batch": "Limits for concurrent moves",
    "--elect-leaders": "After the moves",
    "--force": "Safety",
    "--reason": "Record and output",
}
"""The help's headings, each by the first option below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRunOptions(WritingOptions):
    """Run a whole move: check the cluster, throttle, move in waves, wait, and restore the throttle."""

    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Reassignment JSON file, or - for stdin.")]
    connection: MovesThroughBrokers
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="RATE", help="Rate into and out of each broker, for example 50MB/s."),
    ] = None
    unthrottled: Annotated[bool, typer.Option("--unthrottled", help="Copy without a throttle.")] = False
    pacing: PaceOptions
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", min=1, help="Move at most N partitions at the same time."),
    ] = None
    max_per_broker: Annotated[
        int | None,
        typer.Option(
            "--max-per-broker", metavar="N", min=1, help="Copy at most N replicas to a broker at the same time."
        ),
    ] = None
    max_in_flight: Annotated[
        str | None,
        typer.Option(
            "--max-in-flight",
            metavar="SIZE",
            help="Copy at most this many bytes at the same time, for example 100GB. A larger partition moves alone.",
        ),
    ] = None
    elect_leaders: Annotated[
        bool,
        typer.Option(
            "--elect-leaders", help="After the moves, elect the preferred leaders of the plan's partitions, in batches."
        ),
    ] = False
    election_batch: Annotated[
        int,
        typer.Option("--election-batch", metavar="N", min=1, help="With --elect-leaders: partitions in one batch."),
    ] = 50
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Start even if partitions outside the plan are unhealthy, a disk is too small, or the throttle is too "
            "low.",
        ),
    ] = False
    abort_on_trouble: Annotated[
        bool,
        typer.Option(
            "--abort-on-trouble",
            help="Undo the move if a partition outside the plan loses its leader or an in-sync replica.",
        ),
    ] = False
    reason: Reason = None
    yes: Yes = False
    state_dir: StateDir = None
    dry_run: DryRun = False
    output: OutputFormat = Output.text
