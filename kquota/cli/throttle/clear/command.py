"""`kquota throttle clear`: restore the settings that `throttle set` changed, or remove every throttle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kquota.cli.connection import Connection
from kquota.cli.options import DryRun, Gone, Output, OutputFormat, StateDir, WritingOptions, Yes, flag, value

EPILOG: Final = """Without --all, the command restores only the throttles of `kquota throttle set`.
`kquota reassign-partitions --verify` restores the throttle of a move. Exit code 8: a throttle is not restored or
removed yet, or is unknown, for example because its broker did not answer. Without --run and --all, the exit code is
also 8 if a recorded run cannot be read. If no run was found, it is also 8 if a run of another host may be hidden.

Examples:
  kquota throttle clear --bootstrap-server localhost:9092
  kquota throttle clear --bootstrap-server localhost:9092 --all --dry-run"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearOptions(WritingOptions):
    """Restore the exact previous values of settings that `throttle set` changed, or remove every throttle."""

    connection: Connection
    run: Annotated[
        str | None,
        value(
            "run",
            "RUN",
            "Restore only the settings of this run.  [default: each of your `throttle set` runs on this host]",
        ),
    ] = None
    everything: Annotated[
        bool, flag("all", "Remove every replication throttle of the cluster, including those of other tools and users.")
    ] = False
    gone: Gone = None
    yes: Yes = False
    dry_run: DryRun = False
    state_dir: StateDir = None
    output: OutputFormat = Output.text

    @property
    def asks(self) -> bool:
        return self.everything
