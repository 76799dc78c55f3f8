"""Writes files completely or not at all, by default even if the power fails."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

_PARTIAL: Final = ".{}.unfinished"
_DIGITS: Final = 16
_ABANDONED_SECONDS: Final = 24 * 3600.0
"""The age in seconds after which kquota removes a partial file, because writing a file never takes that long."""


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` at the end of the block. If the block fails, `path` does not change.

    With `synced`, the bytes are on the disk before the file gets its name, and the name is on the disk when the block
    has ended. Otherwise a power failure may leave the name with an empty or zeroed file. With `private`, only the owner
    may read or write the file. A symlink is replaced, not followed. Also removes old partial files of killed processes
    in the folder of `path`. Raises OSError if the file cannot be written, renamed or synced. If syncing the folder
    fails, `path` is already replaced.
    """
    remove_abandoned(path.parent)
    # The name is random, because processes in two containers with a shared volume may have the same process id.
    partial = path.with_name(_PARTIAL.format(os.urandom(_DIGITS // 2).hex()))
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
    descriptor = os.open(partial, flags, 0o600 if private else 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if synced:
                os.fsync(descriptor)
        partial.replace(path)
        if synced:
            sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Remove partial files that killed processes left in this folder more than a day ago. Files that cannot be removed
    are ignored.
    """
    for partial in folder.glob(_PARTIAL.format("[0-9a-f]" * _DIGITS)):
        with contextlib.suppress(OSError):
            if time.time() - partial.stat().st_mtime > _ABANDONED_SECONDS:
                partial.unlink()


def storage_step(error: OSError, otherwise: str = "Check the disk") -> str:
    """Return the next step after a failed write: `otherwise`, unless the file would exceed the process's limit."""
    return "Raise the limit of the file size: `ulimit -f unlimited`" if error.errno == errno.EFBIG else otherwise


def sync(folder: Path) -> None:
    """Sync a folder or a file. A new name is durable only after its folder is synced. Raises OSError if the folder or
    file cannot be opened or synced.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
