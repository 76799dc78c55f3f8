"""`kquota record`: the options of its commands, and their registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import typer

from kquota.cli import commands
from kquota.cli.connection import Recorded
from kquota.cli.help import Group
from kquota.cli.options import DryRun, Output, OutputFormat, StateDir, WritingOptions, Yes

EPILOG: Final = """Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record status --bootstrap-server localhost:9092"""


SHARE_EPILOG: Final = """\
The topic is compacted and has one partition. On three or more brokers, it has three replicas.
On a cluster with ZooKeeper, also give --zookeeper. From then on, every kquota that may read the topic uses it.

Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record share --bootstrap-server localhost:9092"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOptions(WritingOptions):
    """Create the topic for the runs of all hosts, or check the one that exists."""

    connection: Recorded
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text


STATUS_EPILOG: Final = """Exit codes: 0 the record exists and is sound, 8 it does not exist or has a problem.

Examples:
  kquota record status --bootstrap-server localhost:9092
  kquota record status --bootstrap-server localhost:9092 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """Show where the runs of all hosts are recorded, whether the record is sound, and who is writing."""

    connection: Recorded
    state_dir: StateDir = None
    output: OutputFormat = Output.text


UNSHARE_EPILOG: Final = """kquota refuses while a run is open. It keeps the journals of each host.

Examples:
  kquota record unshare --bootstrap-server localhost:9092 --dry-run
  kquota record unshare --bootstrap-server localhost:9092 --yes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnshareOptions(WritingOptions):
    """Delete the topic with the runs of all hosts."""

    connection: Recorded
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text

    @property
    def asks(self) -> bool:
        return True


app = typer.Typer(name="record", cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Set up one record of all runs, so that every host can see and continue them and restore their throttles."""


commands.add(app, "share", ShareOptions, epilog=SHARE_EPILOG, work="run.share")
commands.add(app, "status", StatusOptions, epilog=STATUS_EPILOG, work="run.status")
commands.add(app, "unshare", UnshareOptions, epilog=UNSHARE_EPILOG, work="run.unshare")
