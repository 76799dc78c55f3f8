"""Writing a report as a whole, and never over a file that is not a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kquota import durable
from kquota.errors import Invalid, Parameter, Refused

_HEAD: Final = 1000
_REPORT: Final = Parameter("report")


def check(path: Path, mark: str) -> None:
    """Raise Invalid if no report can be written to `path`. A file is replaced only if its first bytes contain `mark`.

    Call this early, because the estimate takes a while.
    """
    place = path.resolve()
    try:
        if not place.parent.is_dir():
            raise Invalid(_REPORT, f" {path}: the folder {place.parent} does not exist")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise Invalid(_REPORT, f" {path}: the folder {place.parent} is not writable")
        if place.exists() and not place.is_file():
            raise Invalid(_REPORT, f" {path}: is not a regular file")
        if place.exists() and (head := _head(place)) and mark.encode() not in head:
            raise Invalid(_REPORT, f" {path}: already exists and is not a kquota report. Choose another file")
    except OSError as error:
        raise Invalid(_REPORT, f" {path}: {error.strerror}") from error


def write(path: Path, page: str) -> None:
    """Write, fsync, then rename over an earlier report. Raises Refused if the file cannot be written."""
    place = path.resolve()
    try:
        with durable.replacing(place) as file:
            file.write(page.encode())
    except OSError as error:
        raise Refused(
            _REPORT, f" {path}: cannot be written: {error.strerror}; the estimate is printed above"
        ) from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
