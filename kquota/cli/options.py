"""The options that many commands share, declared once. Imports nothing heavy: every command's help reads this."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import typer


class Output(StrEnum):
    """How the document on stdout is written."""

    text = "text"
    json = "json"
    tsv = "tsv"


class Only:
    """In the annotation of a group of options: the fields of the group that the command has. The others are None."""

    def __init__(self, *names: str) -> None:
        """In the order of the group, whatever the order here."""
        self.names: Final = names


class Each:
    """In the annotation of a mapping of options: the option for each key. The mapping has those that were given."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """`options` are typer's, made from a table, for example that of the quota keys."""
        self.options: Final = options


_HINTS: Final[dict[type[Any], Mapping[str, Any]]] = {}


def hints(options: type[Any]) -> Mapping[str, Any]:
    """The annotation of each field of a dataclass of options, evaluated once: that takes milliseconds."""
    if options not in _HINTS:
        _HINTS[options] = get_type_hints(options, include_extras=True)
    return _HINTS[options]


TABLES: Final = (Output.tsv,)
"""The formats of rows: only commands whose answer is a table write them."""
WITHOUT_TABLES: Final = tuple(output for output in Output if output not in TABLES)
"""The formats that every command writes."""


def _no_table(output: Output) -> Output:
    if output in TABLES:
        raise typer.BadParameter(f"this command writes {' or '.join(WITHOUT_TABLES)}.")
    return output


OutputFormat: TypeAlias = Annotated[
    Output,
    typer.Option(
        "--output", metavar=f"[{'|'.join(WITHOUT_TABLES)}]", help="How stdout is written.", callback=_no_table
    ),
]
TableFormat: TypeAlias = Annotated[
    Output, typer.Option("--output", metavar=f"[{'|'.join(Output)}]", help="How stdout is written.")
]
"""For the commands whose document is a table, and so goes into `TABLES` as well."""

StateDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Where runs are on record.  [default: $XDG_STATE_HOME/kquota]"),
]
Gone: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--gone", metavar="ID,…", help="Brokers that never come back: what was set on them is let go."),
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")]
Reason: TypeAlias = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why, for colleagues: `kquota move status` shows it."),
]
TakeOver: TypeAlias = Annotated[
    bool,
    typer.Option("--take-over", help="Take the lock from a command on another host that may be alive."),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
QuotaFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="The document; - is stdin.")]
Prune: TypeAlias = Annotated[
    bool,
    typer.Option("--prune", help="Also remove the limits of all that `owns:` covers and the document does not name."),
]
