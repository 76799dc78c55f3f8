"""`log-dirs --compact` as a process: killed, run again, and run on a folder without a history."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.cli.run import Ran, kquota, started
from tests.spark.rows import row
from tests.spark.test_history import facts, snapshot

pytestmark = pytest.mark.spark


def compact(folder: Path) -> Ran:
    return kquota("log-dirs", "--compact", str(folder))


def killed(folder: Path) -> bool:
    """Starts a compaction and kills it during a write. Returns true if it had not ended before the kill."""
    process = started("log-dirs", "--compact", str(folder))
    rolled = folder / "rolled"
    while process.poll() is None and not (rolled / ".unfinished" / "replicas").exists():
        time.sleep(0.01)
    process.kill()
    _, err = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), err
    return not (rolled / "v1").exists()


def test_a_kill_leaves_the_history_unchanged_and_the_next_run_continues(tmp_path: Path) -> None:
    for attempt in range(3):
        folder = tmp_path / f"h{attempt}"
        for hour in range(3):
            snapshot(folder, hour, [row(1, "t", n, n * hour, leader=True) for n in range(2_000)])
        before = facts(folder)
        # On a busy machine everything may be written before the kill.
        if killed(folder):
            break
    else:
        raise AssertionError("it was not killed while it wrote")
    assert facts(folder) == before
    ran = compact(folder)
    (batch,) = (folder / "rolled" / "v1").iterdir()
    rolled = "".join(f"{path}\n" for path in sorted(folder.glob("*.gz"))[:-1])
    assert (ran.code, ran.out) == (0, rolled)
    assert ran.err == (
        f"kquota: starting Spark ...\nkquota: wrote 6,000 rows from 3 snapshots of c to {batch}\n"
        "kquota: snapshot files that you can delete after this compaction: 2 (all except the newest of each cluster)\n"
    )
    late = snapshot(folder, -1, [row(1, "t", 0, 5)])
    after = facts(folder)
    again = compact(folder)
    assert (again.code, again.out) == (0, rolled)
    nothing = "kquota: nothing to compact: no snapshot is newer than the compacted ones\n"
    assert again.err.startswith(f"{nothing}kquota: warning: ")
    assert f"{late} is older than the compacted snapshots of its cluster, so kquota leaves it out" in again.err
    assert facts(folder) == after


def test_usage(tmp_path: Path) -> None:
    assert (
        compact(tmp_path / "x").err
        == f"kquota: error: --compact {tmp_path}/x: not an existing folder. Give the folder of the snapshots\n"
    )
    empty = compact(tmp_path)
    assert (empty.code, empty.out) == (2, "")
    assert empty.err.startswith(f"kquota: error: --compact {tmp_path}: the folder contains no snapshot")
    both = kquota("log-dirs", "--compact", str(tmp_path), "--describe")
    assert both.err == (
        "kquota: error: give exactly one of --describe, --snapshot DIR and --compact DIR"
        " (given: --describe and --compact)\n"
    )
    assert list(tmp_path.iterdir()) == []
