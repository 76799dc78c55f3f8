"""A folder for the temporary files of one command. If the command is killed, the next command deletes it."""

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
"""A file that is locked while the folder's process lives. The system releases the lock when the process ends."""


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """Yield a new folder in TMPDIR. Spark writes its files there, so folders of killed commands would fill the disk."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with _alive(folder):
            _clear(folder.parent)
            yield folder


@contextlib.contextmanager
def _alive(folder: Path) -> Iterator[None]:
    coming = folder / "coming"
    with coming.open("w") as file:
        # Without locks, as on some network file systems, no folder is deleted either.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It gets its name only after it is locked, so that no other process sees it unlocked.
            coming.rename(folder / _ALIVE)
        yield


def _clear(parent: Path) -> None:
    for left in parent.glob(f"{_PREFIX}*"):
        # The open fails for a folder of another user, or for one that has just been deleted.
        with contextlib.suppress(OSError), (left / _ALIVE).open("r+") as file:
            if left.lstat().st_uid == os.getuid() and not left.is_symlink():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
