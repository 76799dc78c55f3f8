"""`kquota sandbox status`: which sandboxes are running, and their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.options import Output, OutputFormat

EPILOG: Final = """Exit code 1: the named sandbox is not running.

Examples:
  kquota sandbox status
  kquota sandbox status zk --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxStatusOptions:
    """Show which sandboxes are running, and their addresses."""

    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the sandbox.  [default: all]")] = None
    output: OutputFormat = Output.text
