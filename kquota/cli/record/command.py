"""`kquota record`: the options of its commands, and their registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli import commands
from kquota.cli.connection import Recorded
from kquota.cli.options import DryRun, Output, OutputFormat, StateDir, WritingOptions, Yes

EPILOG: Final = """Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record status --bootstrap-server localhost:9092"""


SHARE_EPILOG: Final = """\
The topic is compacted and has one partition. On three or more brokers, it has three replicas.
On a cluster with ZooKeeper, also give --zookeeper. After `record share`, every kquota that can read
topic __kquota_runs records its runs there. If you choose another topic with --record, also name it
on every other host, with --record, KQUOTA_RECORD or config.toml.

Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record share --bootstrap-server localhost:9092"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOptions(WritingOptions):
    """Create the topic that records the runs of all hosts, or check an existing topic."""

    connection: Recorded
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text


STATUS_EPILOG: Final = """Exit codes: 0 if the record exists and is sound, 8 if it does not exist or has a problem.

Examples:
  kquota record status --bootstrap-server localhost:9092
  kquota record status --bootstrap-server localhost:9092 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """Show the topic that records the runs of all hosts, its problems, and the command that is writing."""

    connection: Recorded
    state_dir: StateDir = None
    output: OutputFormat = Output.text


UNSHARE_EPILOG: Final = """kquota does not delete the topic while a run is open. Each host keeps its own journals.

Examples:
  kquota record unshare --bootstrap-server localhost:9092 --dry-run
  kquota record unshare --bootstrap-server localhost:9092 --yes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnshareOptions(WritingOptions):
    """Delete the topic that records the runs of all hosts."""

    connection: Recorded
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text

    @property
    def asks(self) -> bool:
        return True


app = commands.group("record", EPILOG)

commands.add(app, "share", ShareOptions, epilog=SHARE_EPILOG, work="run.share")
commands.add(app, "status", StatusOptions, epilog=STATUS_EPILOG, work="run.status")
commands.add(app, "unshare", UnshareOptions, epilog=UNSHARE_EPILOG, work="run.unshare")
