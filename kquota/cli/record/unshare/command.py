"""`kquota record unshare`: delete the topic with the runs of all hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Output, OutputFormat, StateDir, Yes

EPILOG: Final = """kquota refuses while a run is open. It keeps the journals of each host.

Examples:
  kquota record unshare --bootstrap-server localhost:9092 --dry-run
  kquota record unshare --bootstrap-server localhost:9092 --yes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnshareOptions:
    """Delete the topic with the runs of all hosts."""

    connection: Connection
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text
