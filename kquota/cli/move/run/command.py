"""`kquota move run`: the options of a whole move, from the health check to the restored throttle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.connection import MovesThroughBrokers
from kquota.cli.options import (
    ELECTION_BATCH,
    DryRun,
    Output,
    OutputFormat,
    Reason,
    StateDir,
    WritingOptions,
    Yes,
    flag,
    value,
)
from kquota.cli.pacing.options import PaceOptions

EPILOG: Final = """kquota checks the cluster's health and the disks, throttles the brokers, submits the moves in
waves, waits until they end, and restores the throttle. With --deadline, --between or --protect, it changes the throttle
as the moves proceed, like `kquota move adjust`. If kquota is killed, the run stays on record: run the same
command again, or `kquota move resume`, on any host that sees the record.

Exit codes: 0 if the move is done and the throttle is restored; 8 if a throttle is not restored yet; 1 if kquota
refused or undid the move, if replicas are not those of the plan, if a leader was not elected, or if a scratch topic of
--protect may remain; 75 if another kquota holds the lock. If 1 and 8 both apply, the exit code is 1.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRunOptions(WritingOptions):
    """Run a whole move: check the cluster, throttle, move in waves, wait, and restore the throttle."""

    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Reassignment JSON file, or - for stdin.")]
    connection: MovesThroughBrokers
    throttle: Annotated[
        str | None,
        value(
            "throttle", "RATE", "Throttle rate for the copies that each broker sends and receives, for example 50MB/s."
        ),
    ] = None
    unthrottled: Annotated[bool, flag("unthrottled", "Copy without a throttle.")] = False
    pacing: PaceOptions
    batch: Annotated[
        int | None, value("batch", "N", "Move at most N partitions at the same time.  [default: no limit]", min=1)
    ] = None
    max_per_broker: Annotated[
        int | None,
        value(
            "max-per-broker", "N", "Copy at most N replicas to a broker at the same time.  [default: no limit]", min=1
        ),
    ] = None
    max_in_flight: Annotated[
        str | None,
        value(
            "max-in-flight",
            "SIZE",
            "Copy at most this many bytes at the same time, for example 100GB. A larger partition moves alone.  "
            "[default: no limit]",
        ),
    ] = None
    elect_leaders: Annotated[
        bool,
        flag("elect-leaders", "After the moves, elect the preferred leaders of the plan's partitions, in batches."),
    ] = False
    election_batch: Annotated[
        int, value("election-batch", "N", "With --elect-leaders: partitions in one batch.", min=1)
    ] = ELECTION_BATCH
    force: Annotated[
        bool,
        flag(
            "force",
            "Start even if a check fails: unhealthy partitions outside the plan, other moves that run or wait, too "
            "little disk space, a throttle that is too low, or too few replicas in sync. Also override moves that "
            "others started.",
        ),
    ] = False
    abort_on_trouble: Annotated[
        bool,
        flag(
            "abort-on-trouble", "Undo the move if a partition outside the plan loses its leader or an in-sync replica."
        ),
    ] = False
    reason: Reason = None
    yes: Yes = False
    state_dir: StateDir = None
    dry_run: DryRun = False
    output: OutputFormat = Output.text
