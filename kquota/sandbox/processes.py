"""The process of a server in a sandbox.

The process outlives the kquota that started it, can be found after any crash, and is never confused with another
process.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_POLL: Final = 0.02
"""The seconds between two checks of a process. No signal announces its end, because it is not a child of kquota."""

_MOMENTS: Final = 25

# A shell starts the server, writes its pid and ends. The server therefore never becomes a zombie of kquota, and its pid
# is on disk even if kquota is killed during the start.
_LAUNCH: Final = 'cd "$1" || exit 1; log=$2; pid=$3; shift 3; "$@" >>"$log" 2>&1 </dev/null & echo $! >"$pid"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process of one server, running or not. `directory` is the folder of its sandbox."""

    name: str
    directory: Path

    @property
    def mark(self) -> str:
        """An argument that occurs only in the command line of this server, and that Java ignores."""
        return f"-Dkquota.sandbox={self.directory}/{self.name}"

    @property
    def log(self) -> Path:
        """The log file. Every start of the server appends its output to this file."""
        return self.directory / f"{self.name}.log"

    @property
    def _pid_file(self) -> Path:
        return self.directory / f"{self.name}.pid"

    @property
    def pid(self) -> int | None:
        """The process id while the server is running, otherwise None.

        A reused pid does not count.
        """
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None
        return pid if self.mark in _command_line(pid) else None

    def start(self, command: list[str]) -> None:
        """Start `command`, which must contain the mark, in a new session. The output goes to the log.

        Raises subprocess.CalledProcessError if the folder of the sandbox does not exist.
        """
        assert self.mark in command
        arguments = [str(self.directory), str(self.log), str(self._pid_file), *command]
        subprocess.run(["sh", "-c", _LAUNCH, "sh", *arguments], check=True, start_new_session=True)

    def stop(self) -> None:
        """Ask the process to end, and kill it if it has not ended after 20 s. The process need not be running."""
        self.signal(signal.SIGTERM)
        if not self.ended_within(20.0):
            self.kill()

    def kill(self) -> None:
        """Kill the process immediately, as in a crash, so that it flushes nothing. Wait at most 10 s for its end."""
        self.signal(signal.SIGKILL)
        self.ended_within(10.0)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it is running and is not the current process."""
        if (pid := self.pid) is not None and pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def ended_within(self, seconds: float) -> bool:
        """Wait at most `seconds` for the process to end. Return True if it has ended, or is the current process."""
        deadline = time.monotonic() + seconds
        while (pid := self.pid) is not None and pid != os.getpid():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True

    def last_words(self) -> str:
        """Return the last error in the log, otherwise the last line of the log or `no output`."""
        try:
            return named_error(self.log.read_text(errors="replace"))
        except OSError:
            return named_error("")


def named_error(text: str) -> str:
    """Return the last line of a Java program's output that names an error, otherwise the last line or `no output`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"(^|[\w.])(Exception|Error): ", line)]
    return (telling or lines or ["no output"])[-1]


def in_folder(directory: Path) -> list[Process]:
    """Return all processes that were ever started for a sandbox, according to the files on disk, sorted by name."""
    return [Process(name=path.stem, directory=directory) for path in sorted(directory.glob("*.pid"))]


def stop_folder(directory: Path, patience: float) -> None:
    """Stop all processes of a sandbox, brokers first, because a controlled shutdown of a broker needs ZooKeeper.

    kquota kills brokers that have not ended after `patience` seconds. The other processes then have the same time.
    """
    every = in_folder(directory)
    for group in ([p for p in every if p.name.startswith("broker-")], every):
        for process in group:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + patience
        for process in group:
            if not process.ended_within(max(0.0, deadline - time.monotonic())):
                process.kill()


def _command_line(pid: int) -> str:
    """Return the command line of a process. It is empty if the process does not exist, or has ended and waits for its
    parent.
    """
    if pid <= 0:
        return ""
    if not Path("/proc/self/cmdline").exists():
        return subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout
    # While a process executes another program, and while it ends, the kernel shows no arguments for a moment.
    for _ in range(_MOMENTS):
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_text(errors="surrogateescape")
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            return ""
        if arguments or state in ("Z", "X"):
            return arguments
        time.sleep(_POLL)
    return ""
