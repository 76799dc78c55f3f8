"""The options that many commands share, declared once. Imports nothing heavy: every command's help reads this."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Output(StrEnum):
    """How the document on stdout is written."""

    text = "text"
    json = "json"
    tsv = "tsv"


def _no_table(output: Output) -> Output:
    if output is Output.tsv:
        raise typer.BadParameter("this command writes text or json.")
    return output


OutputFormat: TypeAlias = Annotated[
    Output, typer.Option("--output", metavar="[text|json]", help="How stdout is written.", callback=_no_table)
]
TableFormat: TypeAlias = Annotated[
    Output, typer.Option("--output", metavar="[text|json|tsv]", help="How stdout is written.")
]
"""For the commands whose document is a table, and so goes into tsv as well."""

StateDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Where runs are on record.  [default: $XDG_STATE_HOME/kquota]"),
]
Gone: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--gone", metavar="ID,…", help="Brokers that never come back: what was set on them is let go."),
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
