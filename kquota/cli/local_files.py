"""The files that commands read and write on this machine: snapshots of sizes and of quota use, the history of sizes,
reports, past moves, and a temporary folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from kquota import folders
from kquota.errors import KquotaError
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.sizes import snapshot as text
from kquota.sizes.history import Listing, SnapshotKey
from kquota.sizes.replica import LogDir
from kquota.stores.state import history, past_moves, usage_files
from kquota.stores.state.command_files import check_report as check_report
from kquota.stores.state.command_files import workspace as workspace
from kquota.stores.state.command_files import write_report as write_report
from kquota.stores.state.history import HistoryBatch as HistoryBatch
from kquota.stores.state.history import check_snapshots as check_snapshots
from kquota.stores.state.history import listing as listing
from kquota.stores.state.history import rolling as rolling
from kquota.stores.state.history import spent_snapshots as spent_snapshots
from kquota.stores.state.past_moves import PastMovesFile as PastMovesFile


def snapshot(directory: Path, cluster_id: str, time: datetime, log_dirs: Iterable[LogDir]) -> Path:
    """Write the replicas of all log dirs as one snapshot file, and return its path.

    Raises the errors of `write_snapshot`.
    """
    with _of_option("--snapshot"):
        return history.write_snapshot(directory, cluster_id, time, text.lines(cluster_id, time, log_dirs))


def usage_snapshot(
    directory: Path, cluster_id: str, time: datetime, found: Iterable[tuple[QuotaBucket, BucketUse]]
) -> tuple[Path | None, int]:
    """Add one reading to the usage snapshots in a folder. Return the new file (None if there are no rows) and the
    number of rows.

    Raises the errors of `usage_files.add`.
    """
    with _of_option("--snapshot"):
        return usage_files.add(directory, cluster_id, time, found)


def usage(directories: Iterable[Path]) -> Listing:
    """Return the batches in folders, and the usage snapshots that are not compacted yet.

    Raises the errors of `usage_files.found`. The message begins with `--usage`.
    """
    with _of_option("--usage"):
        return usage_files.found(directories)


@contextmanager
def _of_option(option: str) -> Iterator[None]:
    try:
        yield
    except KquotaError as error:
        error.args = (f"{option}: ", *error.args)
        raise


def newest_snapshot(paths: Iterable[Path]) -> tuple[Path, SnapshotKey, Iterator[bytes]]:
    """Return the newest snapshot among files and folders, its key, and its lines.

    Raises Invalid for a missing or invalid path, for a folder without snapshots, for two snapshots with the same key,
    and for snapshots of several clusters. The iterator of the lines raises Invalid if the snapshot is damaged.
    """
    path, taken = history.newest(paths)
    return path, taken, history.lines(path)


def past_moves_of(state_dir: Path | None, cluster_id: str | None) -> PastMovesFile | None:
    """Return the file of the past moves of a cluster, or None if the cluster id is unknown or not valid.

    If `state_dir` is None, the file is in the user's XDG state folder.
    """
    return past_moves.past_moves(state_dir if state_dir is not None else folders.state(os.environ), cluster_id)
