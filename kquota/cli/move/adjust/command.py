"""`kquota move adjust`: change the throttle of a running move, once or as needed until the move ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.connection import Recorded
from kquota.cli.options import (
    ForcedRate,
    Interval,
    OnlyFollowers,
    OnlyLeaders,
    Output,
    OutputFormat,
    PlanOfRun,
    Reason,
    StateDir,
    WritingOptions,
    Yes,
    flag,
    run_option,
    value,
)
from kquota.cli.pacing.options import PaceOptions

EPILOG: Final = """With RATE, kquota sets the throttle and ends. With --broker, --leader or --follower, RATE applies
only to these brokers and roles, until you give a RATE without these options.

With --deadline, --between or --protect, kquota watches the move, changes the throttle as needed, and ends with the
move. If kquota is stopped, the last throttle stays. Each change is recorded in the run. The command that ends the run
restores the throttle from before the move.

With --pause, the copies continue slowly, because Kafka cannot stop a copy entirely. In each quota window (11 s), each
destination fetches once, up to replica.fetch.response.max.bytes (10 MB) for each fetcher thread. That is about 1 MB/s
for each pair of brokers. Replicas that are not part of the move are not delayed. --continue restores the rate from
before the pause.

Exit codes: 0 if the throttle is set; 75 if another kquota holds the lock. With --deadline, --between or --protect: as
for `kquota move watch`, and 1 if a scratch topic of --protect may remain.

Examples:
  kquota move adjust 80MB/s --bootstrap-server localhost:9092 --broker 3 --follower
  kquota move adjust --cluster prod --deadline 2h --max-rate 200MB/s"""

HEADINGS: Final = {
    "--run": "Move",
    "--broker": "Brokers and roles",
    "--deadline": "Throttle over time",
    "--pause": "Pause",
    "--force": "Safety, record and output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustOptions(WritingOptions):
    """Pause a move, or change its throttle: to a rate, for a deadline, by time of day, or to protect clients."""

    connection: Recorded
    rate: Annotated[
        str | None,
        typer.Argument(metavar="[RATE]", help="Throttle of each broker, for example 80MB/s."),
    ] = None
    run: Annotated[str | None, run_option("the open run")] = None
    reassignment_json_file: PlanOfRun = None
    broker: Annotated[
        list[str] | None, value("broker", "ID,…", "Set RATE only on these brokers.  [default: all brokers of the move]")
    ] = None
    leader: OnlyLeaders = False
    follower: OnlyFollowers = False
    even_finish: Annotated[
        bool,
        flag(
            "even-finish",
            "Set RATE on the destination that needs the longest time, and a lower follower rate on each other "
            "destination, so that all finish at the same time.",
        ),
    ] = False
    pacing: PaceOptions
    interval: Interval = "5s"
    pause: Annotated[bool, flag("pause", "Slow the copies as far as Kafka allows, until --continue or a new rate.")] = (
        False
    )
    go_on: Annotated[bool, flag("continue", "End the pause and restore the previous throttle.")] = False
    force: ForcedRate = False
    reason: Reason = None
    yes: Yes = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
