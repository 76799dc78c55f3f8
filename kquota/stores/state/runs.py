"""The journals of one host, and their lock: one file for each run, in a folder for each cluster.

The data is on disk when `write` returns.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Final

from kquota import bounded, durable, file_lock
from kquota.errors import AGAIN_LATER, Busy, Invalid, KquotaError, Parameter, Refused
from kquota.reassign.restoring import may_stay_set
from kquota.reassign.run import Run, Stamp
from kquota.stores.state import journal
from kquota.stores.state.journal import JournaledRun
from kquota.stores.state.process import Holder, holder, holder_of, me
from kquota.stores.state.run_fields import is_run_id

FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""The cluster ids that are valid names for a folder."""
_SUFFIX: Final = ".journal"
_LONGEST_LOCK: Final = 10_000


class RunFiles:
    """The journals of one cluster's runs, `root/<cluster id>/<run id>.journal`. Only their owner can read them.

    Raises Invalid for a cluster id that is not a valid name for a folder.
    """

    def __init__(self, root: Path, cluster_id: str) -> None:
        if not FOLDER_NAME.fullmatch(cluster_id):
            raise Invalid(f"cluster id {cluster_id!r} is not a valid name for a folder in {root}")
        self.cluster_id = cluster_id
        self.folder = root / cluster_id
        self._known: dict[str, tuple[Run, int]] = {}  # each run with the size of its journal in bytes
        self._seen: dict[str, tuple[tuple[int, int, int], JournaledRun | None]] = {}

    @contextmanager
    def hold(self, doing: str) -> Iterator[None]:
        """Lock this folder until the context ends, so that no other kquota writes. Creates the folder if it is missing.

        Raises Busy, which names the holder, if another process holds the lock. Raises Refused if the lock file cannot
        be written or locked, or if the folder belongs to another user. The operating system releases the lock when the
        process ends for any reason.
        """
        self._make_folder()
        path = self.folder / "lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self._not_held(path, "written", error) from error
        with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as file:
            try:
                taken = file_lock.take(file)
            except OSError as error:
                raise self._not_held(path, "locked", error) from error
            if not taken:
                text = file.read(_LONGEST_LOCK)
                who = _holder(text) if text else "another kquota, which is just starting or ending,"
                raise Busy(f"{who} holds the lock of {self.folder}", AGAIN_LATER)
            try:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(holder(doing).written()).encode(), 0)
            except OSError as error:
                raise self._not_held(path, "written", error) from error
            try:
                yield
            finally:
                with suppress(OSError):
                    os.ftruncate(descriptor, 0)

    def _not_held(self, path: Path, verb: str, error: OSError) -> Refused:
        """Return the error of an unusable lock. It names the open runs whose throttles may stay set, because the
        command could not begin.
        """
        unusable = _unusable(path, verb, error)
        with suppress(Refused):
            every = self.every(unread={}).values()
            return may_stay_set(unusable, [kept.run for kept in every if kept.run.finished is None])
        return unusable

    def writer(self) -> str | None:
        """Describe the process that holds the lock. Returns None if no process of this machine is known to hold it.

        This method does not try to take the lock, because another process could then fail to get the lock.
        """
        try:
            found = _holder(bounded.file_bytes(self.folder / "lock", _LONGEST_LOCK).decode(errors="replace"))
        except OSError:
            return None
        return str(found) if found.alive else None

    def every(self, unread: dict[str, KquotaError] | None = None) -> dict[str, JournaledRun]:
        """Return every run by id, in the order of the journals' names. Includes ended runs, because kquota keeps their
        journals.

        A journal is left out if it is empty or its only line is truncated or damaged, because its run never began.
        Raises Refused if the folder or a journal cannot be read, or if any other journal is damaged or has another
        version of the format. If `unread` is given, the errors of journals are not raised: the method adds each of them
        to `unread`, by the id of the run.
        """
        found = {}
        for file in self._files():
            try:
                kept = self._cached(file)
            except Refused as error:
                if unread is None:
                    raise
                unread[file.name.removesuffix(_SUFFIX)] = error
                continue
            if kept is not None:
                found[kept.run.id] = kept
        return found

    def must_be_writable(self) -> None:
        """Raise Refused if the folder belongs to another user, or if the folder, its lock or the journal of an open run
        cannot be written. Writes nothing.

        Also raises the errors of `every`.
        """
        there = next(each for each in (self.folder, *self.folder.parents) if os.access(each, os.F_OK))
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            number = errno.EACCES if there.is_dir() else errno.ENOTDIR
            raise _unusable(there, "written", OSError(number, os.strerror(number)))
        if there == self.folder:
            self._must_own_folder(there.stat().st_uid)
        still_open = [self._path(kept.run.id) for kept in self.every().values() if kept.run.finished is None]
        for path in (self.folder / "lock", *still_open):
            try:
                os.close(os.open(path, os.O_RDWR | os.O_NOFOLLOW))
            except FileNotFoundError:
                continue  # the lock is created by the first command that writes
            except OSError as error:
                raise _unusable(path, "written", error) from error

    def write(self, run: Run, record: str | None, version: int) -> Run:
        """Append the changes of a run, or the whole run if it has no journal on this host. Creates the folder if it is
        missing. Returns the stamped run.

        The stamp has `version` and `record`, which is the id of the shared record to which this version is sent, or
        None. Raises Busy if something other than a journal exists at the path of the journal, or if the version is 1
        and the run already has a journal. Raises Refused if the journal cannot be read or written, if the run id is not
        valid, or if the folder belongs to another user.
        """
        stamp = Stamp(version=version, by=me(), at=datetime.now(UTC).replace(microsecond=0), record=record)
        return self.copy(run, stamp)

    def copy(self, run: Run, stamp: Stamp) -> Run:
        """Append a version like `write`, but with the stamp of the process that wrote this version. Raises the errors
        of `write`.
        """
        path = self._path(run.id)
        self._make_folder()
        try:
            before, whole = self._before(run.id, path)
            line = journal.line(journal.first(run, stamp) if before is None else journal.change(before, run, stamp))
            if before is None:
                self._create(path, line)
            elif stamp.version == 1:
                raise Busy(f"{path}: another run with this id began within the same second. Try again")
            else:
                _grow(path, whole, line)
        except OSError as error:
            self._known.pop(run.id, None)  # part of the line may have been written
            raise _unusable(path, "written", error) from error
        self._known[run.id] = run, whole + len(line)
        return replace(run, stamp=stamp)

    def place(self, run: Run) -> str:
        """Return the path of the run's journal. Raises Refused if the run id is not valid."""
        return str(self._path(run.id))

    def has(self, run: Run) -> bool:
        """Return True if this host has a journal of the run. Raises Refused if the run id is not valid."""
        return self._path(run.id).is_file()

    def _path(self, run_id: str) -> Path:
        if not is_run_id(run_id):
            raise Refused(f"run id {run_id[:40]!r} is not valid (only letters, digits and '-')")
        return self.folder / f"{run_id}{_SUFFIX}"

    def _files(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as found:
                return sorted((file for file in found if file.name.endswith(_SUFFIX)), key=attrgetter("name"))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable(self.folder, "read", error) from error

    def _make_folder(self) -> None:
        try:
            make_private(self.folder)
            owner = self.folder.stat().st_uid
        except OSError as error:
            raise _unusable(self.folder, "written", error) from error
        self._must_own_folder(owner)

    def _must_own_folder(self, owner: int) -> None:
        if owner != os.geteuid():
            anothers = f"{self.folder} belongs to another user. Choose a folder of your own with "
            raise Refused(anothers, Parameter("state_dir"))

    def _create(self, path: Path, data: bytes) -> None:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        except FileExistsError as error:
            raise Busy(f"{path}: something other than a journal exists at this path. Move it away") from error
        try:
            with os.fdopen(descriptor, "wb") as file:
                _append(file.fileno(), data)
            durable.sync(self.folder)
            durable.sync(self.folder.parent)
        except OSError:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise

    def _before(self, run_id: str, path: Path) -> tuple[Run | None, int]:
        """Return the run of a journal and the number of its valid bytes, or None and 0 if there is no usable journal.
        Deletes a journal that is empty or whose only line is truncated or damaged, because its run never began.

        The journal is read again if its size changed, because another process of this host may have written to it while
        this process waited without the lock.
        """
        if path.is_symlink() or not path.is_file():
            return None, 0
        if run_id in self._known and path.stat().st_size == self._known[run_id][1]:
            return self._known[run_id]
        kept, whole = self._read(path)
        if kept is None:
            path.unlink()
            return None, 0
        return kept.run, whole

    def _cached(self, file: os.DirEntry[str]) -> JournaledRun | None:
        """Return the contents of a journal, or None if `every` leaves it out. The file is read again only if it
        changed, because commands call this often.
        """
        try:
            now = file.stat()
        except OSError as error:
            raise _unusable(Path(file.path), "read", error) from error
        mark = (now.st_ino, now.st_size, now.st_mtime_ns)
        if file.name not in self._seen or self._seen[file.name][0] != mark:
            self._seen[file.name] = (mark, self._read(Path(file.path))[0])
        return self._seen[file.name][1]

    def _read(self, path: Path) -> tuple[JournaledRun | None, int]:
        try:
            data = bounded.file_bytes(path, bounded.JOURNAL)
        except OSError as error:
            raise _unusable(path, "read", error) from error
        documents, whole = journal.lines(data, str(path))
        kept = journal.replay(documents, str(path)) if documents else None
        if kept is not None and f"{kept.run.id}{_SUFFIX}" != path.name:
            raise Refused(f"{path}: the journal contains another run ({kept.run.id}). Move this file away")
        return kept, whole


def make_private(folder: Path) -> None:
    """Create the folder of a cluster and its parent if they are missing. Only the owner can read a new folder."""
    for each in (folder.parent, folder):  # mkdir would give its mode only to the last of several new folders
        each.mkdir(mode=0o700, parents=True, exist_ok=True)


def _grow(path: Path, whole: int, data: bytes) -> None:
    with path.open("r+b") as file:
        # Remove a truncated last line first, because the new line would otherwise be joined to it.
        file.truncate(whole)
        file.seek(0, os.SEEK_END)
        _append(file.fileno(), data)


def _append(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _holder(text: str) -> Holder:
    try:
        return holder_of(bounded.json_object(text))
    except ValueError:
        return holder_of({})


def _unusable(path: Path, verb: str, error: OSError) -> Refused:
    why = error.strerror or str(error)
    step = "Check its permissions and the disk"
    if verb == "written":
        step = durable.storage_step(error, step)
    return Refused(f"{path}: cannot be {verb} ({why}). {step}, because kquota cannot continue without its journals")
