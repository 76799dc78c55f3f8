"""`kquota move`: the options of `status`, `watch`, `resume`, `abort`, and the registration of every `move` command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from kquota.cli import commands
from kquota.cli.connection import Connection, Recorded
from kquota.cli.move.adjust import command as adjust
from kquota.cli.move.estimate import command as estimate
from kquota.cli.move.plan import command as plan
from kquota.cli.move.report import command as report
from kquota.cli.move.run import command as run
from kquota.cli.options import (
    DryRun,
    Gone,
    Interval,
    Output,
    OutputFormat,
    PlanOfRun,
    Quiet,
    StateDir,
    TakeOver,
    Textfile,
    TimeLimit,
    WritingOptions,
    Yes,
    flag,
    run_option,
    value,
)

EPILOG: Final = """Examples:
  kquota move plan --bootstrap-server localhost:9092 --drain 3 > plan.json
  kquota move status --bootstrap-server localhost:9092"""


STATUS_EPILOG: Final = """Exit codes: 0 if no run of a move is open; 8 if one is open, a recorded run cannot be read, or
runs of other hosts are unknown.

Examples:
  kquota move status --bootstrap-server localhost:9092
  kquota move status --cluster prod --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStatusOptions:
    """Show the open runs, their progress, and who began them."""

    connection: Recorded
    state_dir: StateDir = None
    quiet: Quiet = False
    time_limit: TimeLimit = None
    textfile: Textfile = None
    output: OutputFormat = Output.text


WATCH_EPILOG: Final = """Without PLAN or --run, kquota watches all open runs, and the moves that other tools started.

Exit codes: 0 if the moves have ended; 1 if they have ended, but replicas are not those of the plan; otherwise 8 if they
are running (--once), their throttle is still set, their run is still open, a recorded run cannot be read, or runs of
other hosts are unknown. If a throttle is still set or a run is still open, the last finding shows the next command.

Examples:
  kquota move watch --bootstrap-server localhost:9092
  kquota move watch --cluster prod --once --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Show bytes, throughput, lag and time left of running moves, and why a move makes no progress."""

    connection: Recorded
    plan: Annotated[
        Path | None,
        typer.Argument(metavar="[PLAN]", help="Watch only the moves of this plan, a reassignment JSON file."),
    ] = None
    run: Annotated[str | None, value("run", "ID", "Watch the moves of this open run.")] = None
    interval: Interval = "5s"
    once: Annotated[bool, flag("once", "Read the cluster once. Throughput is then unknown.")] = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions(WritingOptions):
    """The options that `move resume` and `move abort` share."""

    VERB: ClassVar[str]
    """The name of the command: `resume` or `abort`."""

    connection: Connection
    run: Annotated[str | None, run_option("the open run")] = None
    reassignment_json_file: PlanOfRun = None
    state_dir: StateDir = None
    dry_run: DryRun = False
    force: Annotated[
        bool,
        flag(
            "force",
            "Continue even if too few replicas stay in sync or partitions outside the plan are unhealthy, and "
            "override moves that others started.",
        ),
    ] = False
    gone: Gone = None
    take_over: TakeOver = False
    yes: Yes = False
    output: OutputFormat = Output.text

    @property
    def asks(self) -> bool:
        return self.take_over


RESUME_EPILOG: Final = """\
A run of `kquota move run` keeps its throttle and its limits (--batch, --max-per-broker, --max-in-flight). A run with
limits starts no wave while partitions outside the plan are unhealthy, unless you give --force. `move resume` does not
keep --deadline, --between, --protect, --abort-on-trouble or --elect-leaders, because a run does not record them. To
keep them, repeat the `move run` command instead.

Exit codes: 0 if the runs are done; 8 if replicas are still moving or a throttle is not restored yet (run the command
again); 1 if replicas are not those of the plan; 75 if another kquota holds the lock. If you select no run, the exit
code is also 8 if a recorded run cannot be read. If no run was found, it is also 8 if a run of another host may be
hidden. If one of several runs fails, the others continue, and the exit code is the worst one.

Examples:
  kquota move resume --bootstrap-server localhost:9092 --dry-run
  kquota move resume --cluster prod --reassignment-json-file plan.json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions(RecoveryOptions):
    """Continue interrupted runs from where they stopped: all open runs, or the one that you name."""

    VERB = "resume"

    run: Annotated[str | None, run_option("all open runs")] = None
    quiet: Quiet = False
    time_limit: TimeLimit = None
    textfile: Textfile = None


ABORT_EPILOG: Final = """\
Exit codes: 0 if replicas and throttle are as before the run; 8 if replicas are still being copied back or a throttle
is not restored yet (run the command again); 1 if replicas are not those from before the run, or if a leader was not
elected; 75 if another kquota holds the lock. If you select no run, the exit code is also 8 if a recorded run cannot be
read. If no run was found, it is also 8 if a run of another host may be hidden. If 1 and 8 both apply, the exit code
is 1.

Examples:
  kquota move abort --bootstrap-server localhost:9092 --dry-run
  kquota move abort --cluster prod --reassignment-json-file plan.json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortOptions(RecoveryOptions):
    """Undo a run: cancel its moves, copy moved replicas back, and restore the throttle from before the run."""

    VERB = "abort"

    force: Annotated[
        bool,
        flag("force", "Undo the run even if too few replicas stay in sync, and override moves that others started."),
    ] = False
    elect_leaders: Annotated[
        bool,
        flag(
            "elect-leaders",
            "If all replicas are already back, elect the preferred leaders of the run's partitions, in batches of 50. "
            "Otherwise, repeat the command until it exits with 0. Not with --zookeeper.",
        ),
    ] = False

    @property
    def asks(self) -> bool:
        return True


app = commands.group("move", EPILOG)

commands.add(app, "plan", plan.PlanOptions, epilog=plan.EPILOG, headings=plan.HEADINGS)
commands.add(app, "estimate", estimate.EstimateOptions, epilog=estimate.EPILOG, headings=estimate.HEADINGS)
commands.add(app, "run", run.MoveRunOptions, epilog=run.EPILOG, headings=run.HEADINGS)
commands.add(app, "status", MoveStatusOptions, epilog=STATUS_EPILOG, work="status.run")
commands.add(app, "watch", WatchOptions, epilog=WATCH_EPILOG, work="watch.run")
commands.add(app, "adjust", adjust.AdjustOptions, epilog=adjust.EPILOG, headings=adjust.HEADINGS)
commands.add(app, "report", report.ReportOptions, epilog=report.EPILOG)
commands.add(app, "resume", ResumeOptions, epilog=RESUME_EPILOG, work="recovery.resume")
commands.add(app, "abort", AbortOptions, epilog=ABORT_EPILOG, work="recovery.abort")
