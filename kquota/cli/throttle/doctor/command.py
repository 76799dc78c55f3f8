"""`kquota throttle doctor`: find problems with throttles, and remove leftovers with `--fix`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kquota.cli.connection import Connection
from kquota.cli.options import (
    DryRun,
    Output,
    Quiet,
    StateDir,
    TableFormat,
    Textfile,
    TimeLimit,
    WritingOptions,
    Yes,
    flag,
    value,
)

EPILOG: Final = """Exit codes: 0 if there are no findings; 8 if there are findings, or if a rate or a list is unknown.
--fix removes the rates of a dead broker through the KRaft controllers, unless a list, a run or a move names the broker.
In cron, use --older-than: --fix then removes only leftovers that all checks have found for that long, and leaves the
rates of dead brokers. Newer leftovers stay (exit code 8).

Examples:
  kquota throttle doctor --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092 --fix --yes --older-than 1h"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions(WritingOptions):
    """Find replication throttles that are left over, have no effect or contradict each other."""

    connection: Connection
    fix: Annotated[bool, flag("fix", "Remove throttles that no run holds and no move can use.")] = False
    older_than: Annotated[
        str | None,
        value(
            "older-than",
            "TIME",
            "With --fix: remove only leftover throttles that doctor first found at least this long ago (for example "
            "1h) and has found in every check since.",
        ),
    ] = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    quiet: Quiet = False
    time_limit: TimeLimit = None
    textfile: Textfile = None
    output: TableFormat = Output.text

    @property
    def writes(self) -> bool:
        return self.fix and not self.dry_run

    @property
    def asks(self) -> bool:
        return True
