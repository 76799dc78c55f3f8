"""The record of runs: one journal a run, in a folder a cluster, safe from the moment a method returns; and its lock."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kquota import durable
from kquota.errors import Busy, Invalid, KquotaError, Refused
from kquota.reassign.run import Run
from kquota.stores import journal

_SAFE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_SUFFIX: Final = ".journal"


def holder(doing: str) -> dict[str, object]:
    """This process, as another one names it that has to wait for it."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"doing": doing, "pid": os.getpid(), "host": socket.gethostname(), "since": since}


def held_by(told: Mapping[str, object]) -> str:
    """The same, in words."""
    names = [str(told.get(key, "unknown")) for key in ("doing", "pid", "host", "since")]
    return "another kquota ({}, pid {} on {}, since {})".format(*names)


class RunFiles:
    """Runs on one cluster, in `root`/<cluster id>/<run id>.journal; readable by their owner only. Implements `Runs`.

    Raises Invalid for a cluster id that cannot name a folder.
    """

    def __init__(self, root: Path, cluster_id: str) -> None:
        if not _SAFE.fullmatch(cluster_id):
            raise Invalid(f"cluster id {cluster_id!r} cannot name a folder of {root}")
        self._folder = root / cluster_id
        self._known: dict[str, Run] = {}

    @contextmanager
    def hold(self, doing: str) -> Iterator[None]:
        """Keep every other kquota of this folder from writing. Raises Busy, naming who holds it.

        The system lets go of it when the process ends, however it does.
        """
        self._make_folder()
        try:
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unusable(self._folder / "lock", "written", error) from error
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise _unusable(self._folder / "lock", "locked", error) from error
                raise Busy(f"{held_by(_object(file.read()))} holds {self._folder}; try again later") from error
            try:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(holder(doing)).encode(), 0)
            except OSError as error:
                raise _unusable(self._folder / "lock", "written", error) from error
            yield

    def unfinished(self) -> tuple[Run, ...]:
        """Oldest first. Raises Refused for a journal that cannot be read or that a newer kquota wrote."""
        return tuple(run for run in self.every() if run.finished is None)

    def every(self) -> tuple[Run, ...]:
        """Finished runs, too: a run's record is never deleted by kquota. One whose first line is torn never began.

        Raises Refused when the folder or a record cannot be read.
        """
        try:
            paths = sorted(self._folder.glob(f"*{_SUFFIX}"))
        except OSError as error:
            raise _unusable(self._folder, "read", error) from error
        runs = [run for path in paths if (run := self._read(path)[0]) is not None]
        return tuple(sorted(runs, key=lambda run: (run.begun, run.id)))

    def begin(self, run: Run) -> None:
        """Raises Busy when there is a record of this id, Refused when the folder cannot be written."""
        path = self._path(run)
        self._make_folder()
        try:
            if path.is_file() and not path.is_symlink() and self._read(path)[0] is None:
                path.unlink()  # torn before it began
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                _append(file.fileno(), journal.line(journal.first(run)))
            durable.sync(self._folder)
            durable.sync(self._folder.parent)
        except FileExistsError as error:
            raise Busy(f"{path}: this plan was begun in this very second; try again") from error
        except OSError as error:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise _unusable(path, "written", error) from error
        self._known[run.id] = run

    def update(self, run: Run) -> None:
        """Append what has changed. A run that is on record elsewhere only is written as a whole. Raises as `begin`."""
        path = self._path(run)
        if not path.exists():
            self.begin(run)
            return
        try:
            before, whole = (self._known[run.id], None) if run.id in self._known else self._read(path)
            changed = journal.change(before, run) if before else journal.first(run)
            with path.open("r+b") as file:
                if whole is not None:
                    file.truncate(whole)  # a torn line would hide the one after it
                file.seek(0, os.SEEK_END)
                if changed:
                    _append(file.fileno(), journal.line(changed))
        except OSError as error:
            self._known.pop(run.id, None)  # part of the line may be there
            raise _unusable(path, "written", error) from error
        self._known[run.id] = run

    def place(self, run: Run) -> str:
        """The path of its journal."""
        return str(self._path(run))

    def steps(self, run: Run) -> int:
        """How many lines its journal has."""
        path = self._path(run)
        return len(journal.lines(path.read_bytes(), str(path))[0]) if path.exists() else 0

    def _path(self, run: Run) -> Path:
        return self._folder / f"{run.id}{_SUFFIX}"

    def _make_folder(self) -> None:
        try:
            for folder in (self._folder.parent, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self._folder.stat().st_uid
        except OSError as error:
            raise _unusable(self._folder, "written", error) from error
        if owner != os.geteuid():
            raise Refused(f"{self._folder} belongs to somebody else: name a folder of your own with --state-dir")

    def _read(self, path: Path) -> tuple[Run | None, int]:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _unusable(path, "read", error) from error
        documents, whole = journal.lines(data, str(path))
        return (journal.replay(documents, str(path)) if documents else None), whole


def _append(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unusable(path: Path, verb: str, error: OSError) -> KquotaError:
    why = error.strerror or str(error)
    return Refused(f"{path}: cannot be {verb}: {why}; the record of a run must be safe before a move starts")
