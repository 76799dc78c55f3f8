"""The contents of a history: snapshots (each of one cluster at one time), and batches of snapshots in Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from kquota import bounded
from kquota.errors import Invalid, NextStep, Parameter
from kquota.sizes.snapshot import STAMP

VERSION: Final = 1
"""The version of the columns and folders, in the folder name (`rolled/v1`) and in a column of every row."""

ROLLED: Final = f"rolled/v{VERSION}"
"""The subfolder with the batches of a history."""


@dataclass(frozen=True, slots=True, order=True)
class SnapshotKey:
    """The cluster of a snapshot, and the time when it was taken: UTC, to the second."""

    cluster: str
    time: datetime

    @property
    def stamp(self) -> str:
        """The time, in the format of snapshot rows."""
        return self.time.strftime(STAMP)


def taken(row: str | bytes, where: str) -> SnapshotKey:
    """Return the key of the snapshot that begins with `row`.

    Raises Invalid for an invalid row. The message begins with `where`.
    """
    try:
        return _taken(bounded.json_object(row))
    except (ValueError, KeyError) as error:
        problem = f"{where}: its first line is not a row of a snapshot"
        raise Invalid(f"{problem}. Give another file, or move this file out of the folder") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time from the previous snapshot of a cluster to this one. `before` is None for the first snapshot."""

    taken: SnapshotKey
    before: SnapshotKey | None

    @property
    def seconds(self) -> int | None:
        """The length of the span in seconds, or None for the first snapshot."""
        return None if self.before is None else int((self.taken.time - self.before.time).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a history. A snapshot is rolled when a batch contains it."""

    rolled: tuple[str, ...]
    """The folders that contain the batches."""
    held: frozenset[SnapshotKey]
    """The rolled snapshots: those that the manifests of the batches list."""
    waiting: Mapping[Path, SnapshotKey]
    """The files of snapshots that are not rolled yet."""
    late: tuple[Path, ...] = ()
    """The files of snapshots that are never rolled, because they are older than the newest rolled snapshot of their
    cluster.
    """

    def clusters(self) -> list[str]:
        """Return the ids of all clusters in the listing, sorted."""
        return sorted({each.cluster for each in (*self.held, *self.waiting.values())})

    def of(self, asked: str | None) -> Listing:
        """Return the listing of the cluster `asked`, or of the only cluster if `asked` is None.

        `rolled` and `late` still cover all clusters. Raises the errors of `chosen`.
        """
        cluster = chosen(self.clusters(), asked)
        return replace(
            self,
            held=frozenset(each for each in self.held if each.cluster == cluster),
            waiting={path: each for path, each in self.waiting.items() if each.cluster == cluster},
        )

    def since(self, day: date) -> Listing:
        """Return the listing without the waiting snapshots that are older than `day` (UTC)."""
        return replace(self, waiting={path: each for path, each in self.waiting.items() if each.time.date() >= day})

    def newest(self) -> dict[str, SnapshotKey]:
        """Return the last rolled snapshot of each cluster."""
        return {each.cluster: each for each in sorted(self.held)}

    def spans(self) -> list[Span]:
        """Return the span of each waiting snapshot, sorted by cluster and time."""
        before, spans = self.newest(), []
        for each in sorted(set(self.waiting.values())):
            spans.append(Span(taken=each, before=before.get(each.cluster)))
            before[each.cluster] = each
        return spans


def chosen(clusters: Collection[str], asked: str | None) -> str:
    """Return the cluster `asked`, or the only cluster of a history if `asked` is None.

    Raises Invalid for an empty history, for an unknown cluster, and for several clusters without `asked`.
    """
    known = ", ".join(clusters)
    if not clusters:
        raise Invalid("the history contains no snapshot. ", NextStep.TAKE_SNAPSHOT)
    if asked is None and len(clusters) > 1:
        raise Invalid(
            f"the history contains {len(clusters)} clusters. Name one with ", Parameter("cluster_id"), f": {known}"
        )
    if asked is not None and asked not in clusters:
        raise Invalid(Parameter("cluster_id"), f" {asked}: not in the history, which contains {known}")
    return asked or next(iter(clusters))


def listing(rolled: Iterable[str], held: Collection[SnapshotKey], snapshots: Mapping[Path, SnapshotKey]) -> Listing:
    """Return the listing of a history. Snapshots that are not in `held` are divided into waiting and late.

    `rolled` are the folders of the batches. Raises Invalid if two snapshots that are not in `held` have the same key.
    """
    rolled_to = {each.cluster: each.time for each in sorted(held)}
    waiting: dict[Path, SnapshotKey] = {}
    late: list[Path] = []
    first: dict[SnapshotKey, Path] = {}
    for path, each in sorted(snapshots.items()):
        if each in held:
            continue
        if (other := first.setdefault(each, path)) != path:
            raise Invalid(f"{path}: has the same cluster and time as {other}. Keep only one of them")
        if each.cluster in rolled_to and each.time < rolled_to[each.cluster]:
            late.append(path)
        else:
            waiting[path] = each
    return Listing(rolled=tuple(rolled), held=frozenset(held), waiting=waiting, late=tuple(late))


def batch_name(snapshots: Collection[SnapshotKey]) -> str:
    """Return the folder name of a batch: the time of its last snapshot and a hash of all its snapshots.

    The hash distinguishes the batches of different histories, because operators can merge the folders.
    """
    mark = hashlib.sha256("\n".join(f"{each.cluster} {each.stamp}" for each in sorted(snapshots)).encode())
    return f"batch={max(each.time for each in snapshots):%Y%m%dT%H%M%SZ}-{mark.hexdigest()[:8]}"


def manifest(snapshots: Collection[SnapshotKey]) -> str:
    """Return the manifest of a batch: one JSON object that lists its snapshots."""
    rows = [{"cluster": each.cluster, "time": each.stamp} for each in sorted(snapshots)]
    return json.dumps({"version": VERSION, "snapshots": rows}, indent=1) + "\n"


def manifested(text: str, where: str) -> frozenset[SnapshotKey]:
    """Return the snapshots that a manifest lists.

    Raises Invalid if the manifest is not valid or has an unknown version. The message begins with `where`.
    """
    try:
        found = bounded.json_object(text)
        if found["version"] == VERSION:
            return frozenset(map(_taken, found["snapshots"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Invalid(f"{where}: does not list the snapshots of its batch. Restore it from a backup") from error
    raise Invalid(f"{where}: unknown version {found['version']} (this kquota reads {VERSION}). Use a newer kquota")


def _taken(row: Mapping[str, str]) -> SnapshotKey:
    return SnapshotKey(str(row["cluster"]), datetime.strptime(str(row["time"]), STAMP).replace(tzinfo=UTC))
