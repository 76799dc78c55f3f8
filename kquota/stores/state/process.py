"""This process as other kquotas name it, and whether another process of this machine still lives."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kquota.reassign.run import Owner

_BEGUN: Final = datetime.now(UTC).replace(microsecond=0)
_START_FIELD: Final = 19
"""Of /proc/<pid>/stat behind the command's name: when the process started, in ticks since boot."""


@functools.cache
def me() -> Owner:
    """Who runs this process, where, and since when."""
    return Owner(user=_user(), host=socket.gethostname(), pid=os.getpid(), since=_BEGUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock, and for which command.

    `machine` names one boot of one machine and one container on it, None where the system does not tell: host names
    and process numbers repeat between containers. `started` tells a process from a later one of its number.
    """

    owner: Owner
    doing: str
    machine: str | None = None
    started: str | None = None

    def __str__(self) -> str:
        since = self.owner.since.isoformat(timespec="seconds")
        who = f"pid {self.owner.pid} on {self.owner.host} as {self.owner.user}"
        return f"another kquota ({self.doing}, {who}, since {since})"

    @property
    def dead(self) -> bool:
        """Whether it ran on this machine and has ended. False where that cannot be known."""
        if self.machine is None or self.machine != _machine():
            return False
        now = _started(self.owner.pid)
        return now is None or (self.started is not None and now != self.started)

    def written(self) -> dict[str, Any]:
        """As JSON values."""
        owner = self.owner
        return {
            "doing": self.doing,
            "user": owner.user,
            "host": owner.host,
            "pid": owner.pid,
            "since": owner.since.isoformat(timespec="seconds"),
            "machine": self.machine,
            "started": self.started,
        }


def holder(doing: str) -> Holder:
    """This process, while it runs a command."""
    return Holder(owner=me(), doing=doing, machine=_machine(), started=_started(os.getpid()))


def holder_of(document: Mapping[str, Any]) -> Holder:
    """What `written` gave; "unknown" for each part that is not there or not valid, so that any lock can be named."""
    pid = document.get("pid")
    since = _BEGUN
    with contextlib.suppress(ValueError, TypeError):
        since = datetime.fromisoformat(document["since"]) if "since" in document else since
    return Holder(
        owner=Owner(
            user=_word(document.get("user")),
            host=_word(document.get("host")),
            pid=pid if type(pid) is int and pid > 0 else 0,
            since=since,
        ),
        doing=_word(document.get("doing")),
        machine=_known(document.get("machine")),
        started=_known(document.get("started")),
    )


def boot() -> str | None:
    """The id of this boot of this machine, None where the system does not tell it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _word(value: object) -> str:
    return value[:200] if isinstance(value, str) else "unknown"


def _known(value: object) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return str(os.getuid())


@functools.cache
def _machine() -> str | None:
    found = boot()
    try:
        return None if found is None else f"{found} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When a process of this machine started; None when there is none of this number, or it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    behind = stat.rpartition(")")[2].split()
    return None if behind[0] in "ZX" else behind[_START_FIELD]
