"""A canary: every secret in the tests contains it. Nothing that kquota prints, writes or runs may contain it.

The check covers the whole suite: stdout and stderr of each command, its state folder, the other files of each test, the
folders of Spark, and the command lines of all processes. `tests/test_canary.py` shows that it finds a leak.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

CANARY: Final = "CANARY-7f3a"
ON_PURPOSE: Final = "A_TEST_GIVES_A_SECRET"
"""The environment variable that marks a command with a secret in its arguments. The command must refuse it."""
LOGIN_FILES: Final = (
    ".properties",
    ".pem",
    ".p12",
    ".jaas",
    ".conf",
    ".toml",
    ".key",
    "jaas",
    "token",
    "secret",
    "users",
)
"""The ends of the names of files into which tests write secrets."""
_LOOK_SECONDS: Final = 1.0  # kquota itself gets only the arguments that tests give it; its children live longer
_LARGEST: Final = 4_000_000


def leaks(*texts: str) -> list[str]:
    """Return the lines with the canary."""
    return [line for text in texts for line in text.splitlines() if CANARY in line]


def environment(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variable that marks a command whose arguments contain a secret on purpose."""
    return {ON_PURPOSE: "1"} if leaks(*arguments) else {}


def files_with_canary(folder: Path) -> list[Path]:
    """Return the files below `folder` with the canary, without files for logins. Spark may delete folders meanwhile."""
    files = (Path(above, name) for above, _, names in os.walk(folder) for name in names)
    return [file for file in files if not file.name.endswith(LOGIN_FILES) and _has_canary(file)]


def command_lines(secret: str = CANARY, proc: Path = Path("/proc")) -> Iterator[str]:
    """Yield the running command lines that contain the secret, without those that a test marks with ON_PURPOSE."""
    for process in proc.iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes()
            if secret.encode() not in words or ON_PURPOSE.encode() in (process / "environ").read_bytes():
                continue
        except OSError:
            continue  # it has ended
        yield words.decode(errors="replace").replace("\0", " ")


class Lookout:
    """Looks at all command lines and at the folders of Spark until it is stopped."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="canary", daemon=True)
        self._thread.start()

    def stop(self) -> Sequence[str]:
        """Return what was found."""
        self._over.set()
        self._thread.join()
        return self.found

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.found += (line for line in command_lines() if line not in self.found)
            self.found += (str(file) for file in _of_spark() if str(file) not in self.found)


def _of_spark() -> Iterable[Path]:
    for folder in Path(tempfile.gettempdir()).glob("kquota-work-*"):
        yield from files_with_canary(folder)


def _has_canary(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size < _LARGEST and CANARY.encode() in file.read_bytes()
    except OSError:
        return False
