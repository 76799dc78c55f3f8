"""The options that many commands share, declared once. Imports nothing heavy: every command's help reads this."""

from __future__ import annotations

from enum import StrEnum
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
