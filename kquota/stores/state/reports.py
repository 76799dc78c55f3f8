"""Where a report is written: whole or not at all, and over nothing that is no report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kquota import durable
from kquota.errors import Invalid, Parameter, Refused

_HEAD: Final = 1000
_REPORT: Final = Parameter("report")


def check(path: Path, mark: str) -> None:
    """Raises Invalid where no report can be written: a report's first bytes hold `mark`, and no other file is replaced.

    Looked at early: what is reported takes a while to find out.
    """
    place = path.resolve()
    try:
        if not place.parent.is_dir():
            raise Invalid(_REPORT, f" {path}: there is no folder {place.parent}")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise Invalid(_REPORT, f" {path}: the folder {place.parent} cannot be written to")
        if place.exists() and not place.is_file():
            raise Invalid(_REPORT, f" {path}: is no plain file")
        if place.exists() and (head := _head(place)) and mark.encode() not in head:
            raise Invalid(_REPORT, f" {path}: exists, and is no report of kquota; name another file")
    except OSError as error:
        raise Invalid(_REPORT, f" {path}: {error.strerror}") from error


def write(path: Path, page: str) -> None:
    """Written, fsynced, then renamed over a former report. Raises Refused where the disk says no."""
    place = path.resolve()
    try:
        with durable.replacing(place) as file:
            file.write(page.encode())
    except OSError as error:
        raise Refused(_REPORT, f" {path}: cannot be written: {error.strerror}; the estimate stands above") from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
