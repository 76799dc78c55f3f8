"""The folder of usage snapshots: one folder for each day, with one file for each reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kquota import durable
from kquota.quota.usage import BucketUse, QuotaBucket, usage_lines, weight
from kquota.sizes.history import Listing
from kquota.stores.state import history
from kquota.stores.state.history import FILE_TIME, safe, write_snapshot
from kquota.text_file import looking_at

_SUFFIX: Final = ".jsonl.gz"
_RECENT_DAYS: Final = 3
"""The number of newest folders from which `add` removes partial files. `write_snapshot` removes them only from the
folder to which it writes, and later readings go to other folders.
"""


def add(
    directory: Path, cluster_id: str, time: datetime, found: Iterable[tuple[QuotaBucket, BucketUse]]
) -> tuple[Path | None, int]:
    """Write one reading as `date=YYYY-MM-DD/<cluster>-<UTC time>.jsonl.gz`, completely or not at all.

    Returns the path of the file and its number of rows. A bucket without a used amount and without tokens has no row.
    For a reading without rows, does nothing and returns None and 0. Otherwise also removes partial files that killed
    processes left in the newest `_RECENT_DAYS` folders more than a day ago. Raises Invalid if a folder cannot be
    created or read. Also raises the other errors of `write_snapshot`.
    """
    rows = [(bucket, use) for bucket, use in found if use.used is not None or use.tokens is not None]
    if not rows:
        return None, 0
    days = _days(directory)
    for recent in days[-_RECENT_DAYS:]:
        durable.remove_abandoned(recent)
    before = _newest(days, cluster_id, time)
    day = directory / f"date={time.astimezone(UTC):%Y-%m-%d}"
    path = write_snapshot(day, cluster_id, time, usage_lines(cluster_id, time, weight(time, before), rows))
    return path, len(rows)


def found(directories: Iterable[Path]) -> Listing:
    """Return the batches in these folders, and the usage snapshots that are not compacted yet.

    Raises Invalid if a folder is missing or cannot be read, or if a usage snapshot or the manifest of a batch is not
    valid.
    """
    folders = tuple(directories)
    compacted = history.listing(folders)
    snapshots = {
        path: history.key_of(path) for folder in folders for day in _days(folder) for path in _snapshots_of(day)
    }
    return replace(compacted, waiting={path: each for path, each in snapshots.items() if each not in compacted.held})


def _days(directory: Path) -> list[Path]:
    return sorted(directory.glob("date=*")) if directory.is_dir() else []


def _snapshots_of(day: Path) -> list[Path]:
    # A glob would return nothing for a folder that cannot be read.
    with looking_at(day):
        return sorted(path for path in day.iterdir() if path.name.endswith(_SUFFIX))


def _newest(days: Sequence[Path], cluster_id: str, time: datetime) -> datetime | None:
    """Return the time of a cluster's last reading before `time`, or None. Looks only into the two newest folders."""
    start = f"{safe(cluster_id)}-"
    for day in reversed(days[-2:]):
        names = (path.name for path in _snapshots_of(day))
        times = _times(name[len(start) : -len(_SUFFIX)] for name in names if name.startswith(start))
        if earlier := [one for one in times if one < time]:
            return max(earlier)
    return None


def _times(texts: Iterable[str]) -> Sequence[datetime]:
    found = []
    for text in texts:
        try:
            found.append(datetime.strptime(text, FILE_TIME).replace(tzinfo=UTC))
        except ValueError:
            continue
    return found
