"""Writes files completely or not at all, and so that they survive a power cut."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """A new file that replaces `path` at the end of the block; if this fails, nothing is left of it.

    `synced`: its bytes are on the disk before it gets its name, and the name before this returns. Otherwise a power cut
    may leave the name with an empty or zeroed file. `private`: only its owner may read it. A symlink is replaced, not
    followed. Raises OSError.
    """
    # Not a process id, because two containers with a shared volume may have the same.
    partial = path.with_name(f".{os.urandom(8).hex()}.unfinished")
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


def sync(folder: Path) -> None:
    """Sync a folder, because a new name is durable only after its folder is synced. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
