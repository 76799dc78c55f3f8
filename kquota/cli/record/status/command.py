"""`kquota record status`: show the state of the shared record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.connection import Connection
from kquota.cli.options import Output, OutputFormat, StateDir

EPILOG: Final = """Exit codes: 0 the record exists and is sound, 8 there is none or it has a problem.

Examples:
  kquota record status --bootstrap-server localhost:9092
  kquota record status --bootstrap-server localhost:9092 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """Show where the runs of all hosts are recorded, whether the record is sound, and who is writing."""

    connection: Connection
    state_dir: StateDir = None
    output: OutputFormat = Output.text
