"""The folders of sandboxes, their names, and a lock so that only one kquota at a time changes a sandbox."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from kquota import file_lock, folders
from kquota.errors import AGAIN_LATER, Busy, Invalid, Refused

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def state_folder() -> Path:
    """Return the parent folder of sandboxes: `$XDG_STATE_HOME/kquota/sandbox`, otherwise
    `~/.local/state/kquota/sandbox`. Raises Invalid as `folders.state` does.
    """
    return folders.state(os.environ).resolve() / "sandbox"


def directory(name: str) -> Path:
    """Return the folder of the sandbox with this name, even if it does not exist.

    Raises Invalid for an invalid name, and as `folders.state` does.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{name!r} is not a valid sandbox name: use up to 64 letters, digits, '.', '_' and '-', and begin with a "
            "letter or digit"
        )
    return state_folder() / name


def names() -> list[str]:
    """Return the names of all sandboxes, running or not, sorted. A folder whose name is not a valid sandbox name is
    left out.
    """
    folder = state_folder()
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path.name for path in found if path.is_dir() and _NAME.fullmatch(path.name))


def remove(folder: Path) -> None:
    """Remove a sandbox's folder. Raises Refused if something remains after 5 s.

    A process that has just ended may still be closing its files, so kquota repeats the removal.
    """
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
    raise Refused(f"{folder} could not be removed, but its servers are stopped. Try again later")


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Let only one kquota at a time start or stop a sandbox. Raises Busy if another kquota is doing so, and Refused if
    the folder of sandboxes cannot be written or locked.

    The lock ends when the process that holds it ends for any reason.
    """
    with opened(state_folder() / f".{name}.lock", "XDG_STATE_HOME") as file:
        if not take(file, "XDG_STATE_HOME"):
            raise Busy(f"another kquota is starting or stopping sandbox {name}", AGAIN_LATER)
        yield


def opened(lock: Path, variable: str) -> TextIO:
    """Open a lock file in a folder that is created if necessary. `variable` is the environment variable that sets the
    folder. Raises Refused if the folder cannot be written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        return lock.open("w")
    except OSError as error:
        raise _unusable(lock.parent, "written", variable, error) from error


def take(lock: TextIO, variable: str) -> bool:
    """Take the lock of a file from `opened` without waiting. Return False if another process holds the lock. Raises
    Refused if the file system of the folder has no locks.
    """
    try:
        return file_lock.take(lock)
    except OSError as error:
        raise _unusable(Path(lock.name).parent, "locked", variable, error) from error


def _unusable(folder: Path, verb: str, variable: str, error: OSError) -> Refused:
    return Refused(f"{folder}: cannot be {verb}: {error.strerror}. Set {variable} to another folder")
