"""The folder of a history: snapshots as they were taken and, in `rolled/v1`, complete batches of Parquet files."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import shutil
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from kquota import bounded, durable, file_lock
from kquota.errors import AGAIN_LATER, Busy, Incomplete, Invalid, NextStep, Refused
from kquota.sizes import history
from kquota.sizes.history import Listing, SnapshotKey
from kquota.text_file import is_folder, looking_at

_GZIP: Final = b"\x1f\x8b"
_SNAPSHOTS: Final = (".jsonl.gz", ".json.gz", ".jsonl", ".json")
# This folder is outside rolled/v1, so that neither Spark nor a glob over rolled/v1 sees an incomplete batch.
_UNFINISHED: Final = "rolled/.unfinished"
# A chunk is larger than a line, because each gzip call costs more than compressing one line.
_CHUNK: Final = 2**17
_LEVEL: Final = 3
"""The gzip level of a snapshot. Level 6, the default of zlib, takes twice as long for files that are 15% smaller."""
_MANIFEST: Final = "_batch.json"


def listing(paths: Iterable[Path]) -> Listing:
    """Return the history in these folders and snapshot files.

    Raises Invalid if a path is missing or unreadable, or if a snapshot or the manifest of a batch is unreadable or not
    valid. Also raises Invalid if two snapshots that are not in a batch have the same key.
    """
    rolled, held, snapshots = [], set[SnapshotKey](), dict[Path, SnapshotKey]()
    for path in paths:
        if not _is_folder(path):
            snapshots[path] = key_of(path)
            continue
        batches = _batches(path / history.ROLLED)
        rolled += [str(path / history.ROLLED)] if batches else []
        for batch in batches:
            held |= _manifested(batch / _MANIFEST)
        snapshots |= {each: key_of(each) for each in _snapshots_in(path)}
    return history.listing(rolled, held, snapshots)


def spent_snapshots(directory: Path, held: Collection[SnapshotKey]) -> list[Path]:
    """Return the snapshots to delete in a folder: each compacted snapshot that is not the newest one of its cluster.

    The newest snapshot of each cluster stays for the function `newest`, which does not read batches. `held` has the
    keys of the compacted snapshots. Raises Invalid if the folder cannot be read, or if a snapshot in it cannot be
    read or is not valid.
    """
    keys = {path: key_of(path) for path in _snapshots_in(directory)}
    last = {key.cluster: key for key in sorted(keys.values())}
    return [path for path, key in keys.items() if key in held and key != last[key.cluster]]


def newest(paths: Iterable[Path]) -> tuple[Path, SnapshotKey]:
    """Return the newest snapshot file among these files and folders, and its key.

    Raises Invalid if a path is missing or invalid, if a folder contains no snapshot, if two snapshots have the same
    key, or if the snapshots are of several clusters.
    """
    every: dict[Path, SnapshotKey] = {}
    for path in paths:
        files = _snapshots_in(path) if _is_folder(path) else [path]
        if not files:
            raise Invalid(f"{path}: the folder contains no snapshot (*.jsonl.gz). ", NextStep.TAKE_SNAPSHOT)
        every |= {file: key_of(file) for file in files}
    found = history.listing((), (), every)
    if len(clusters := found.clusters()) > 1:
        names = ", ".join(clusters)
        raise Invalid(f"contains snapshots of {len(clusters)} clusters ({names}). Give snapshots of only one cluster")
    return max(found.waiting.items(), key=lambda item: item[1])


def lines(path: Path) -> Generator[bytes]:
    """Yield the lines of a snapshot, with their newlines. The file can be compressed with gzip.

    Raises Invalid if the file is unreadable or damaged, or has a line of more than `bounded.LINE` bytes.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == _GZIP
            with gzip.open(raw) if packed else contextlib.nullcontext(raw) as file:
                yield from bounded.lines(cast(BinaryIO, file))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Invalid(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def check_snapshots(paths: Iterable[Path]) -> None:
    """Raise Invalid for the first snapshot that is unreadable or damaged. Reads each file to its end."""
    for path in paths:
        with contextlib.closing(lines(path)) as every:
            for _ in every:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBatch:
    """A new batch for the history in `directory`. The caller writes its tables into the empty folder `unfinished`."""

    directory: Path
    unfinished: Path

    def commit(self, tables: Mapping[str, Path], snapshots: Collection[SnapshotKey]) -> Path:
        """Add one batch to the history, completely or not at all, and return the path of the batch.

        `tables` has the folder of each table by the table's name. The files `cluster=…/date=…/*.parquet` of these
        folders are moved into the batch. `snapshots` are the keys for the manifest. Raises Refused if the batch cannot
        be written. Raises Incomplete if the batch is in the history, but a power failure could still remove the batch.
        """
        place = self.directory / history.ROLLED / history.batch_name(snapshots)
        batch = self.unfinished / "batch"
        try:
            for table, folder in tables.items():
                for number, file in enumerate(sorted(folder.glob("cluster=*/date=*/*.parquet"))):
                    target = batch / file.parent.relative_to(folder) / f"{table}-{number}.parquet"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    file.rename(target)
            (batch / _MANIFEST).write_text(history.manifest(snapshots))
            for each in [batch, *batch.rglob("*")]:
                durable.sync(each)
            place.parent.mkdir(exist_ok=True)
            batch.rename(place)
        except OSError as error:
            raise _unwritable(place, error) from error
        for folder in (place.parent, place.parent.parent, self.directory):
            try:
                durable.sync(folder)
            except OSError as error:
                raise Incomplete(
                    f"{place}: the batch is in the history, but {folder} could not be synced ({error.strerror}), so a "
                    "power failure may remove the batch. Check the disk before you delete the snapshots",
                    done=[str(place)],
                    undone=[],
                ) from error
        return place


@contextlib.contextmanager
def rolling(directory: Path) -> Iterator[HistoryBatch]:
    """Lock the history until the context ends, and yield a new batch.

    Deletes the unfinished files of earlier processes at the start, and those of this batch at the end. Raises Busy if
    another kquota is compacting this history. Raises Refused if the folder cannot be written or its file system has no
    locks.
    """
    unfinished = directory / _UNFINISHED
    try:
        unfinished.parent.mkdir(exist_ok=True)
        lock = (unfinished.parent / ".lock").open("w")
    except OSError as error:
        raise _unwritable(unfinished.parent, error) from error
    with lock:
        try:
            if not file_lock.take(lock):
                raise Busy(f"another kquota is compacting {directory}", AGAIN_LATER)
        except OSError as error:
            raise Refused(f"{directory}: cannot be locked: {error.strerror}. The history is unchanged") from error
        try:
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
        except OSError as error:
            raise _unwritable(unfinished, error) from error
        try:
            yield HistoryBatch(directory=directory, unfinished=unfinished)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _manifested(path: Path) -> frozenset[SnapshotKey]:
    try:
        return history.manifested(bounded.file_text(path, bounded.STATE), str(path))
    except OSError as error:
        problem = f"{path}: cannot be read: {error.strerror}"
        raise Invalid(f"{problem}. Check its permissions, or restore the batch from a backup") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: cannot be read: it is not UTF-8. Restore the batch from a backup") from error


def key_of(path: Path) -> SnapshotKey:
    """Return the key of a snapshot file. Raises Invalid if the file cannot be read, or does not begin with a snapshot
    row.
    """
    with contextlib.closing(lines(path)) as every:
        return history.taken(next(every, b""), str(path))


def _snapshots_in(directory: Path) -> list[Path]:
    # The names of unfinished snapshots begin with a dot.
    with looking_at(directory):
        return sorted(p for p in directory.iterdir() if p.name.endswith(_SNAPSHOTS) and not p.name.startswith("."))


def _batches(rolled: Path) -> list[Path]:
    if not is_folder(rolled):
        return []
    # A glob would return nothing for a folder that cannot be read.
    with looking_at(rolled):
        return sorted(p for p in rolled.iterdir() if p.name.startswith("batch="))


def _is_folder(path: Path) -> bool:
    if (found := is_folder(path)) is None:
        raise Invalid(f"{path}: the file or folder does not exist. Check the path")
    return found


def _unwritable(path: Path, error: OSError) -> Refused:
    step = durable.storage_step(error, "Check its permissions and the disk")
    return Refused(f"{path}: cannot be written: {error.strerror}. The history is unchanged. {step}")


FILE_TIME: Final = "%Y%m%dT%H%M%SZ"
"""The format of times in the names of snapshots."""


def safe(cluster_id: str) -> str:
    """Return a cluster id for a file name. `_` replaces every character except ASCII letters, digits, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", cluster_id)


def write_snapshot(directory: Path, cluster_id: str, time: datetime, lines: Iterable[str]) -> Path:
    """Write one snapshot as `<cluster>-<UTC time>.jsonl.gz`, completely or not at all. Returns the path of the file.

    `lines` have no newlines. Creates `directory` if it is missing, and removes partial files that killed processes left
    there more than a day ago. Raises Invalid if `directory` cannot be created, and Refused if the file exists or cannot
    be written. Raises Incomplete if the file is saved, but a power failure could still remove it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid(f"{directory}: the folder cannot be created: {error.strerror}. Choose another folder") from error
    path = directory / f"{safe(cluster_id)}-{time.astimezone(UTC):{FILE_TIME}}.jsonl.gz"
    if path.exists():
        raise Refused(f"{path} already exists: kquota takes at most one snapshot per second. Try again")
    try:
        with (
            durable.replacing(path) as raw,
            gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
            io.BufferedWriter(cast(io.RawIOBase, packed), _CHUNK) as chunks,
        ):
            for line in lines:
                chunks.write(line.encode() + b"\n")
    except OSError as error:
        if path.exists():
            lost = f"{directory} could not be synced ({error.strerror}), so a power failure may remove the snapshot"
            raise Incomplete(f"{path}: was saved, but {lost}. Check the disk", done=[str(path)], undone=[]) from error
        problem = f"{path}: cannot be written: {error.strerror}. Nothing was saved"
        step = durable.storage_step(error, "Check the folder's permissions and the disk")
        raise Refused(f"{problem}. {step}") from error
    return path
