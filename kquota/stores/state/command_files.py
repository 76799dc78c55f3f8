"""The files of one command: the folder for its temporary files, and its report."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kquota import durable, file_lock
from kquota.errors import Invalid, Parameter, Refused

_PREFIX: Final = "kquota-work-"
_ALIVE: Final = "alive"
"""The name of a file that a command keeps locked in its folder. The system releases the lock when the process ends."""


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """Yield a new temporary folder, and delete this folder at the end of the context.

    The folder is in `TMPDIR`, or else in the system's folder for temporary files. Also deletes the folders that killed
    commands of this user left, because the files of Spark in such folders could fill the disk. Raises OSError if the
    new folder cannot be created.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with _alive(folder):
            _clear(folder.parent)
            yield folder


@contextlib.contextmanager
def _alive(folder: Path) -> Iterator[None]:
    coming = folder / "coming"
    with coming.open("w") as file:
        # Some network file systems have no locks. There, this file keeps its name, and `_clear` deletes nothing.
        with contextlib.suppress(OSError):
            if file_lock.take(file):
                # Rename the file only after it is locked, because no other process may see it unlocked.
                coming.rename(folder / _ALIVE)
        yield


def _clear(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        # Opening the file fails in a folder of another user, or in a folder that has just been deleted.
        with contextlib.suppress(OSError), (left / _ALIVE).open("r+") as file:
            if left.lstat().st_uid == os.getuid() and not left.is_symlink() and file_lock.take(file):
                shutil.rmtree(left, ignore_errors=True)


_HEAD: Final = 1000
_REPORT: Final = Parameter("report")


def check_report(path: Path, mark: str) -> None:
    """Raise Invalid if no report can be written to `path`.

    An existing file must be empty or have `mark` in its first `_HEAD` bytes.
    """
    place = path.resolve()
    try:
        if not place.parent.is_dir():
            raise Invalid(_REPORT, f" {path}: the folder {place.parent} does not exist. Create the folder")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise Invalid(_REPORT, f" {path}: the folder {place.parent} is not writable. Choose another folder")
        if place.exists() and not place.is_file():
            raise Invalid(_REPORT, f" {path}: is not a regular file. Choose another file")
        if place.exists() and (head := _head(place)) and mark.encode() not in head:
            raise Invalid(_REPORT, f" {path}: already exists and is not a kquota report. Choose another file")
    except OSError as error:
        raise Invalid(_REPORT, f" {path}: cannot be read: {error.strerror}. Choose another file") from error


def write_report(path: Path, page: str) -> None:
    """Write the report to `path`, completely or not at all. An existing file is replaced. If `path` is a symlink, the
    target of the symlink is replaced.

    Raises Refused if the report cannot be written or synced to the disk.
    """
    place = path.resolve()
    try:
        with durable.replacing(place) as file:
            file.write(page.encode())
    except OSError as error:
        reason = f" {path}: cannot be written or synced: {error.strerror}. Choose another file"
        raise Refused(_REPORT, reason) from error


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)
