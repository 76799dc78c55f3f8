"""`kquota record share`: create the topic that holds the runs of all hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Output, OutputFormat, StateDir

EPILOG: Final = """The topic is compacted and has one partition. If there are three brokers, it has three replicas.
On a cluster with ZooKeeper, also give --zookeeper. From then on, every kquota that may read the topic uses it.

Examples:
  kquota record share --bootstrap-server localhost:9092 --dry-run
  kquota record share --bootstrap-server localhost:9092"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOptions:
    """Create the topic for the runs of all hosts, or check the one that exists."""

    connection: Connection
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
