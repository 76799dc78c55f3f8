"""A folder for one command's own files, gone with it: at its end, or, where it was killed, when the next one begins."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PREFIX: Final = "kquota-work-"
_ALIVE: Final = "alive"
"""Locked for as long as the folder's process lives; the system lets go of it, however that ends."""


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A new one in TMPDIR. Spark's files lie in it: what killed commands leave would fill the disk."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with _alive(folder):
            _clear(folder.parent)
            yield folder


@contextlib.contextmanager
def _alive(folder: Path) -> Iterator[None]:
    coming = folder / "coming"
    with coming.open("w") as file:
        # Where nothing can be locked, as on some network file systems, nothing is cleared, either.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Under its name only once it is locked: nobody sees it free in between.
            coming.rename(folder / _ALIVE)
        yield


def _clear(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        # Of another user's no file can be opened, or it goes with its folder.
        with contextlib.suppress(OSError), (left / _ALIVE).open("r+") as file:
            if left.lstat().st_uid == os.getuid() and not left.is_symlink():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
