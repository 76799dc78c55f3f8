"""What it takes until a file is there as a whole, and until it survives a power cut."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False, synced: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block has ended; nothing is left of it if that fails.

    `synced`: its bytes are on the disk before it has its name, and the name is before this returns; else a power cut
    may leave the name with nothing, or zeros, behind it. `private`: only its owner may read it. A symlink is replaced,
    not followed. Raises OSError.
    """
    # Not a process's id: in two containers over one volume both may have the same.
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
    """A new name in a folder is only safe once the folder is. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
