"""The formats of `--output`. A new format needs a member of `Output` and an entry in `WRITE`. If the format consists of
rows, also add it to `TABLES`.

This module imports nothing heavy, because the help of every command names the formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

NULL: Final = "\\N"
"""The text for null. No field can be confused with it, because a backslash in a field is doubled."""

_WRITTEN: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_UNUSUAL: Final = re.compile(r"[^\t\n\r\x20-\x7e]")
"""Characters that a JSON document can contain only within strings: all except printable ASCII, tabs and line ends."""


class Output(StrEnum):
    """The format of the document on stdout."""

    text = "text"
    json = "json"
    tsv = "tsv"

    @property
    def for_people(self) -> bool:
        """True for the format that people read. Scripts read the others."""
        return self is Output.text


TABLES: Final = (Output.tsv,)
"""The formats that consist of rows. Only commands that answer with a table can write these formats."""
WITHOUT_TABLES: Final = tuple(output for output in Output if output not in TABLES)
"""The formats that every command with `--output` can write."""


class Writable(Protocol):
    """The members of an `Answer` that a format can use. `Answer` documents them."""

    @property
    def HEADER(self) -> Sequence[str]: ...
    @property
    def TABBED(self) -> bool: ...
    def text(self) -> Iterable[str]: ...
    def rows(self) -> Iterable[Sequence[str | None]]: ...
    def document(self) -> str: ...


def text(answer: Writable) -> str:
    """Return the text for people. Characters that are not printable are escaped, because a name must not control the
    operator's terminal.
    """
    shown = _printable_columns if answer.TABBED else printable
    return "".join(f"{shown(line)}\n" for line in answer.text())


def printable(text: str) -> str:
    """Return the text with Python's escapes for characters that are not printable, because a topic name must not
    control the operator's terminal.
    """
    if text.isprintable():  # true for nearly every line, and checking each character costs 60 ms for 10,000 quotas
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _printable_columns(line: str) -> str:
    return "\t".join(map(printable, line.split("\t")))


def document(answer: Writable) -> str:
    """Return one JSON document for scripts. Characters that are not printable are escaped, because a name must not
    control a terminal.
    """
    written = answer.document()
    if not written.isascii() or "\x7f" in written:
        written = _UNUSUAL.sub(_escaped, written)
    return written + "\n"


def _escaped(found: re.Match[str]) -> str:
    if found[0].isprintable():
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass").hex("-", 2)
    return "".join(f"\\u{unit}" for unit in units.split("-"))


def table(answer: Writable) -> str:
    """Return TSV for scripts that read lines."""
    return tab_separated(answer.HEADER, answer.rows())


def tab_separated(header: Sequence[str], rows: Iterable[Sequence[str | None]]) -> str:
    r"""Return the header and the rows as TSV. Each line ends with a newline.

    In the rows, None becomes `\N`, backslashes are doubled, and characters that are not printable become Python's
    escapes.

    >>> tab_separated(["user", "key"], [["a\tb", "k"], [None, "k"]])
    'user\tkey\na\\tb\tk\n\\N\tk\n'
    """
    lines = ["\t".join(header), *("\t".join(map(_field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def _field(value: str | None) -> str:
    return NULL if value is None else printable(value.translate(_WRITTEN))


WRITE: Final[Mapping[Output, Callable[[Writable], str]]] = {
    Output.text: text,
    Output.json: document,
    Output.tsv: table,
}
