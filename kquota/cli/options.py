"""The options that many commands share, declared once. Imports nothing heavy: every command's help reads this."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer


class Output(StrEnum):
    """How the document on stdout is written."""

    text = "text"
    json = "json"


OutputFormat: TypeAlias = Annotated[Output, typer.Option("--output", help="How stdout is written.")]
