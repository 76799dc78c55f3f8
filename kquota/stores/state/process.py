"""Identifies this process to other kquota processes, and checks whether a process of this machine is still alive."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kquota.reassign.run import Owner
from kquota.terms import HIGHEST_ID

_LONGEST_NAME: Final = 200
"""The maximum length of a name in characters. A name longer than `LONGEST_TEXT` would make the record of a run
unreadable.
"""
_START_FIELD: Final = 19
"""The index of the start time (in ticks since boot) among the fields that follow the command in `/proc/<pid>/stat`."""
_SAME_START: Final = timedelta(seconds=2)
"""Two calculations of the start time of one process differ by less than this, because `Owner.since` has no fractions of
a second.
"""


@functools.cache
def me() -> Owner:
    """Return the user, the host, the process id and the start time of this process.

    If the system does not report the user's name, `user` is the user id. Without `/proc`, the start time is the time of
    the first call.
    """
    began = _began(os.getpid()) or datetime.now(UTC)
    return Owner(user=_user(), host=socket.gethostname(), pid=os.getpid(), since=began.replace(microsecond=0))


def runs_here(owner: Owner) -> bool:
    """Return True if the process of this owner is known to run on this host.

    The start time must match as well, because containers can have the same host name and process ids. It does not match
    after the system clock was changed.
    """
    began = _began(owner.pid) if owner.host == socket.gethostname() else None
    return began is not None and abs(began - owner.since) < _SAME_START


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock, and its command."""

    owner: Owner
    doing: str
    """The kquota command that the process runs, for example `record share`."""
    machine: str | None = None
    """The ids of the machine's boot and of the process's container, because containers can have the same host name and
    process ids. None unless the system reports both.
    """
    started: str | None = None
    """The start time of the process in ticks since boot, or None if it is unknown. It distinguishes the process from a
    later process with the same id.
    """

    def __str__(self) -> str:
        since = self.owner.since.isoformat(timespec="seconds")
        who = f"pid {self.owner.pid} on {self.owner.host} as {self.owner.user}"
        return f"another kquota ({self.doing}, {who}, since {since})"

    @property
    def dead(self) -> bool:
        """True if the process ran in this boot and container and has ended. False if it is not known to have ended."""
        if self.machine is None or self.machine != _machine():
            return False
        now = _started(self.owner.pid)
        if now is None:
            return not _is_hidden(self.owner.pid)
        return self.started is not None and now != self.started

    @property
    def alive(self) -> bool:
        """True if the process runs in this boot and container. False if it is not known to run there."""
        return self.machine is not None and self.machine == _machine() and not self.dead

    def written(self) -> dict[str, Any]:
        """Return the holder as JSON values."""
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
    """Return this process as the holder of a lock for the command `doing`."""
    return Holder(owner=me(), doing=doing, machine=_machine(), started=_started(os.getpid()))


def holder_of(document: Mapping[str, Any]) -> Holder:
    """Return the holder that `written` stored.

    Missing and invalid values get defaults: "unknown", 0 or None, and the start time of this process for `since`.
    """
    pid = document.get("pid")
    since = me().since
    with contextlib.suppress(ValueError, TypeError):
        since = datetime.fromisoformat(document["since"]) if "since" in document else since
    return Holder(
        owner=Owner(
            user=_word(document.get("user")),
            host=_word(document.get("host")),
            pid=pid if type(pid) is int and 0 < pid <= HIGHEST_ID else 0,
            since=since,
        ),
        doing=_word(document.get("doing")),
        machine=_known(document.get("machine")),
        started=_known(document.get("started")),
    )


@functools.cache
def boot() -> str | None:
    """Return the id of this machine's current boot, or None if the system does not report it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _word(value: object) -> str:
    return value[:_LONGEST_NAME] if isinstance(value, str) else "unknown"


def _known(value: object) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) else None


def _user() -> str:
    try:
        return getpass.getuser()[:_LONGEST_NAME]
    except (OSError, KeyError, ImportError):
        return str(os.getuid())


@functools.cache
def _machine() -> str | None:
    found = boot()
    try:
        return None if found is None else f"{found} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _began(pid: int) -> datetime | None:
    ticks = _started(pid)
    if ticks is None:
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")
    return datetime.now(UTC) - timedelta(seconds=age)


def _is_hidden(pid: int) -> bool:
    """Return True if the process exists, but is hidden from this user in `/proc` (mount option `hidepid`)."""
    try:
        if not Path(f"/proc/{pid}/stat").exists():
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return False


def _started(pid: int) -> str | None:
    """Return the start time of a process on this machine. Returns None if the process does not exist, has ended or is
    hidden from this user, or if the system has no `/proc`.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    behind = stat.rpartition(")")[2].split()
    return None if behind[0] in "ZX" else behind[_START_FIELD]
