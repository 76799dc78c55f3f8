"""`kquota sandbox down`: stop the servers of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from kquota.cli.sandbox.up.command import Name

EPILOG: Final = """Examples:
  kquota sandbox down zk
  kquota sandbox down --all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DownOptions:
    """Stop the servers of a sandbox and remove its data, also after a crash."""

    name: Name = "default"
    all_of_them: Annotated[bool, typer.Option("--all", help="All sandboxes.")] = False
