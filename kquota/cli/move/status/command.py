"""`kquota move status`: show open runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.connection import Connection
from kquota.cli.options import Output, OutputFormat, StateDir

EPILOG: Final = """Exit codes: 0 no run is open, 8 at least one run is open.

Examples:
  kquota move status --bootstrap-server localhost:9092
  kquota move status --cluster prod --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStatusOptions:
    """Show which runs are open, how far each is, and who began it."""

    connection: Connection
    state_dir: StateDir = None
    output: OutputFormat = Output.text
