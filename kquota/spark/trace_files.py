"""The files of a trace, and their rows one by one. kquota opens the files before Spark starts. It reads the rows of a
small trace without Spark.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota import bounded
from kquota.errors import Invalid, Parameter
from kquota.list_text import few
from kquota.simulate import trace
from kquota.simulate.load import Request
from kquota.simulate.trace import TraceStream
from kquota.spark import files
from kquota.spark.files import Files, is_elsewhere

_PACKED: Final = 10
"""The approximate number of bytes of text in one byte of gzip."""

_LONGEST_SHOWN: Final = 200
_FILES_SHOWN: Final = 5
_TRACE: Final = Parameter("trace")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFiles:
    """Files of one kind: CSV or JSON lines."""

    files: Files
    names: tuple[str, ...] = ()
    """The columns of CSV files. Empty for JSON lines."""
    header: str | None = None
    """The first line of CSV files that is not blank. None means JSON lines."""

    def text_size(self) -> int:
        """Return the approximate size of the uncompressed text in bytes."""
        packed = [link for link in self.files.names if link.endswith(".gz")]
        more = sum((self.files.folder / link).stat().st_size for link in packed)
        return self.files.size() + (_PACKED - 1) * more

    def skipped(self, line: str) -> bool:
        """Return True if a line is not a row, because it is blank or is the header."""
        return not line.strip(" ") or line == self.header

    def left_out(self, bad: BadRows) -> str | None:
        """Return the note about invalid rows, with an example. None without invalid rows."""
        if bad.example is None:
            return None
        link, line = bad.example
        shown = line[:_LONGEST_SHOWN] + ("..." if len(line) > _LONGEST_SHOWN else "")
        return (
            f"rows left out: {bad.count}, for example in {self.files.name(link)}: {shown!r}. "
            "A row is left out if it has the wrong format, a missing or invalid number, or both bytes and mutations"
        )

    def no_row(self) -> Invalid:
        """Return the error for a trace in which every row is left out."""
        names = few(self.files.given_names(), _FILES_SHOWN)
        return Invalid(_TRACE, f" {names}: contains no valid row. Correct the rows, or give another trace")


@dataclass(slots=True)
class BadRows:
    """The rows that are left out."""

    count: int = 0
    example: tuple[str, str] | None = None
    """The file and the text of the row that sorts first, or None without a row."""

    def add(self, link: str, line: str) -> None:
        """Count an invalid row, and keep it as the example if it sorts first by file and text."""
        self.count += 1
        self.example = min(self.example or (link, line), (link, line))


def opened(patterns: Iterable[str], scratch: Path) -> TraceFiles:
    """Open the plain or gzipped files that `patterns` name. A pattern is a name, a glob, or `-` for stdin. Paths that
    Spark opens (`s3a://`, `hdfs://`) must be JSON lines.

    The function links the files in a new folder in `scratch`, and copies stdin to it. Raises Invalid if a file is
    missing, blank or unreadable, has a first row longer than `bounded.LINE`, or has an invalid CSV header. Also raises
    Invalid if the files are of different kinds or have different CSV headers.
    """
    given = list(dict.fromkeys("/dev/stdin" if pattern == "-" else pattern for pattern in patterns))
    here = [pattern for pattern in given if not is_elsewhere(pattern)]
    paths = dict.fromkeys(path for pattern in here for path in files.matching(pattern, _TRACE))
    found = files.laid_out(paths, scratch / "trace", ".json", elsewhere=filter(is_elsewhere, given))
    heads = {found.name(link): _first(found, link) for link in found.names}
    tables = {name: line for name, line in heads.items() if not line.lstrip(" ").startswith("{")}
    if not tables:
        return TraceFiles(files=found)
    if len(tables) < len(heads) or found.elsewhere or len(set(tables.values())) > 1:
        raise Invalid(
            _TRACE,
            ": the files have different formats. Give only JSON lines, or only local CSV files with the same first "
            "line",
        )
    name, line = next(iter(tables.items()))
    try:
        names = trace.header(line, name)
    except Invalid as error:
        raise Invalid(_TRACE, f" {error}") from error
    return TraceFiles(files=found, names=names, header=line)


def rows(found: TraceFiles, bad: BadRows) -> Iterator[tuple[TraceStream, Request]]:
    """Yield the stream and request of each valid row. Invalid rows go to `bad`.

    Raises Invalid for a damaged file, and for a line that is longer than `bounded.LINE`.
    """
    for link in found.files.names:
        for line in _lines(found.files, link):
            if found.skipped(line):
                continue
            row = trace.of_json(line) if found.header is None else trace.of_csv(line, found.names)
            one = None if row is None else trace.request(row)
            if one is None:
                bad.add(link, line)
            else:
                yield one


def _first(found: Files, link: str) -> str:
    line = next((line for line in _lines(found, link) if line.strip(" ")), None)
    if line is None:
        raise Invalid(_TRACE, f" {found.name(link)}: contains no row. Choose another file")
    return line


def _lines(found: Files, link: str) -> Iterator[str]:
    path = found.folder / link
    with files.unpacked(path, _TRACE, f" {found.name(link)}") as bytes_:
        # Read text as Spark does: as UTF-8 in any locale, without the byte order mark that some programs write.
        file = io.TextIOWrapper(bytes_, "utf-8-sig", errors="replace")
        while line := file.readline(bounded.LINE + 1):
            if len(line) > bounded.LINE:
                raise Invalid(
                    _TRACE,
                    f" {found.name(link)}: a line has more than {bounded.LINE:,} characters, so the file is not a "
                    "trace. Choose another file",
                )
            yield line.rstrip("\n")
