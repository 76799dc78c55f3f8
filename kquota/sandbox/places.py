"""The folders of sandboxes, their names, and a lock so that only one kquota at a time changes a sandbox."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from kquota import folders
from kquota.errors import Busy, Invalid, Refused


def state_folder() -> Path:
    """Return the parent folder of sandboxes: `$XDG_STATE_HOME/kquota/sandbox`, otherwise
    `~/.local/state/kquota/sandbox`.
    """
    return folders.state(os.environ).resolve() / "sandbox"


def directory(name: str) -> Path:
    """Return the folder of the sandbox with this name, even if it does not exist.

    Raises Invalid for an invalid name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise Invalid(
            f"{name!r} is not a valid sandbox name: use up to 64 letters, digits, '.', '_' and '-', and begin with a "
            "letter or digit"
        )
    return state_folder() / name


def names() -> list[str]:
    """Return the names of all sandboxes, running or not, sorted."""
    folder = state_folder()
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


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
    """Let only one kquota at a time start or stop a sandbox. Raises Busy if another kquota is doing so.

    The lock ends when the process that holds it ends for any reason.
    """
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"another kquota is starting or stopping sandbox {name}. Try again later") from error
        yield
