"""A history's folder: rolled, pending and late snapshots. A batch is complete or absent."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.errors import Busy, Incomplete, Invalid, Refused
from kquota.sizes.history import SnapshotKey
from kquota.stores.state import history
from tests.spark.rows import row, written


def taken(day: int, cluster: str = "c") -> SnapshotKey:
    return SnapshotKey(cluster, datetime(2026, 11, day, tzinfo=UTC))


def snapshot(folder: Path, day: int, cluster: str = "c", name: str = "") -> Path:
    one = taken(day, cluster)
    path = folder / f"{name or cluster}-{day}.jsonl.gz"
    written(path, [row(1, "t", 0, 5, cluster=one.cluster, time=one.stamp)])
    return path


def batch(folder: Path, *snapshots: SnapshotKey) -> Path:
    """A batch of them, without the rows of the tables."""
    with history.rolling(folder) as made:
        tables = {name: made.unfinished / name for name in ("replicas", "brokers")}
        for table in tables.values():
            part = table / "cluster=c" / "date=2026-11-01" / "part-0.parquet"
            part.parent.mkdir(parents=True)
            part.write_bytes(b"")
        return made.commit(tables, snapshots)


def test_pending_and_late_snapshots(tmp_path: Path) -> None:
    paths = {day: snapshot(tmp_path, day) for day in (1, 2, 3, 4)}
    other = snapshot(tmp_path, 1, "other")
    (tmp_path / ".c-5.jsonl.gz.77").write_bytes(b"still being written")
    found = history.listing([tmp_path])
    assert (found.rolled, found.late, len(found.waiting)) == ((), (), 5)
    assert [span.seconds for span in found.of("c").spans()] == [None, 86400, 86400, 86400]
    batch(tmp_path, taken(1), taken(3))
    found = history.listing([tmp_path])
    assert found.rolled == (str(tmp_path / "rolled" / "v1"),)
    assert found.late == (paths[2],)
    assert dict(found.waiting) == {paths[4]: taken(4), other: taken(1, "other")}
    assert [span.before for span in found.spans()] == [taken(3), None]
    assert history.spent_snapshots(tmp_path, found.held) == [paths[1], paths[3]]


def test_the_newest_snapshot_of_each_cluster_stays_as_a_file(tmp_path: Path) -> None:
    paths = {day: snapshot(tmp_path, day) for day in (1, 2)}
    others = {day: snapshot(tmp_path, day, "other") for day in (1, 3)}
    batch(tmp_path, taken(1), taken(2), taken(1, "other"), taken(3, "other"))
    free = history.spent_snapshots(tmp_path, history.listing([tmp_path]).held)
    assert free == [paths[1], others[1]]
    for path in (*free, others[3]):
        path.unlink()
    assert history.newest([tmp_path]) == (paths[2], taken(2))


def test_a_batch_is_named_by_its_content(tmp_path: Path) -> None:
    made = batch(tmp_path, taken(2), taken(1))
    assert made.name == "batch=20261102T000000Z-f828b107"
    files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    assert files == [
        "_batch.json",
        *(f"cluster=c/date=2026-11-01/{table}-0.parquet" for table in ("brokers", "replicas")),
    ]
    assert json.loads((made / "_batch.json").read_text()) == {
        "version": 1,
        "snapshots": [
            {"cluster": "c", "time": "2026-11-01T00:00:00Z"},
            {"cluster": "c", "time": "2026-11-02T00:00:00Z"},
        ],
    }
    assert [path.name for path in (tmp_path / "rolled").iterdir() if not path.name.startswith(".")] == ["v1"]


def test_two_concurrent_batches(tmp_path: Path) -> None:
    with history.rolling(tmp_path) as first:
        (first.unfinished / "x").write_text("")
        with pytest.raises(Busy, match="another kquota is compacting"), history.rolling(tmp_path):
            pytest.fail("both")
        assert (first.unfinished / "x").exists()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*given: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(Refused, match=r"cannot be locked: No locks available\. The history is unchanged"),
        history.rolling(tmp_path),
    ):
        pytest.fail("locked")


def test_leftovers_of_a_dead_process_are_removed(tmp_path: Path) -> None:
    left = tmp_path / "rolled" / ".unfinished" / "replicas"
    left.mkdir(parents=True)
    with history.rolling(tmp_path) as made:
        assert list(made.unfinished.iterdir()) == []
    assert not left.parent.exists()


def test_a_batch_is_not_created_twice(tmp_path: Path) -> None:
    batch(tmp_path, taken(1))
    with pytest.raises(Refused, match="The history is unchanged"):
        batch(tmp_path, taken(1))


@pytest.mark.parametrize("broken", ["rolled/v1", "rolled", "."])
def test_a_batch_that_may_not_survive_a_power_failure(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / broken

    def fsync(descriptor: int, sync: Callable[[int], None] = os.fsync) -> None:
        if folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat()):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Incomplete, match=f"the batch is in the history, but {folder} could not be synced") as error:
        batch(tmp_path, taken(1))
    (place,) = error.value.done
    assert Path(place).is_dir()
    assert history.listing([tmp_path]).held == {taken(1)}


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ("{", "does not list the snapshots of its batch"),
        ("{}", "does not list the snapshots of its batch"),
        ('{"version": 2}', "unknown version 2 .this kquota reads 1.. Use a newer kquota"),
        (None, "cannot be read: No such file"),
        ("\udcff", "cannot be read: it is not UTF-8. Restore the batch from a backup"),
    ],
    ids=["cut off", "empty", "newer", "missing", "no text"],
)
def test_a_batch_without_a_manifest_is_refused(tmp_path: Path, manifest: str | None, complaint: str) -> None:
    path = batch(tmp_path, taken(1)) / "_batch.json"
    path.unlink() if manifest is None else path.write_bytes(manifest.encode(errors="surrogateescape"))
    with pytest.raises(Invalid, match=f"_batch.json: .*{complaint}"):
        history.listing([tmp_path])


def test_files_that_are_not_snapshots(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="the file or folder does not exist"):
        history.listing([tmp_path / "x"])
    with pytest.raises(Invalid, match=r"/xxx.*: cannot be read: File name too long"):
        history.listing([tmp_path / ("x" * 300)])
    snapshot(tmp_path, 1)
    twin = snapshot(tmp_path, 1, name="twin")
    with pytest.raises(Invalid, match=r"twin-1.jsonl.gz: has the same cluster and time as"):
        history.listing([tmp_path])
    twin.write_bytes(twin.read_bytes()[:20])
    with pytest.raises(Invalid, match=r"twin-1.jsonl.gz: cannot be read"):
        history.listing([tmp_path])
    twin.write_text("a line\n")
    with pytest.raises(Invalid, match=r"twin-1.jsonl.gz: its first line is not a row of a snapshot"):
        history.listing([tmp_path])


def test_several_clusters(tmp_path: Path) -> None:
    snapshot(tmp_path, 1, "a")
    batch(tmp_path, taken(1, "b"))
    found = history.listing([tmp_path])
    assert found.clusters() == ["a", "b"]
    assert found.of("a").held == frozenset()
    with pytest.raises(Invalid, match=r"the history contains 2 clusters. Name one with cluster_id: a, b"):
        found.of(None)
    with pytest.raises(Invalid, match="cluster_id x: not in the history, which contains a, b"):
        found.of("x")


def test_the_newest_snapshot_is_found_rolled_or_not(tmp_path: Path) -> None:
    paths = {day: snapshot(tmp_path, day) for day in (19, 21, 20)}
    (tmp_path / ".c-22.jsonl.gz.77").write_bytes(b"still being written")
    assert history.newest([tmp_path]) == (paths[21], taken(21))
    batch(tmp_path, *map(taken, paths))
    assert history.newest([tmp_path]) == (paths[21], taken(21))
    assert history.newest([paths[19], paths[20]]) == (paths[20], taken(20))


def test_histories_without_a_newest_snapshot(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="/x: the file or folder does not exist"):
        history.newest([tmp_path / "x"])
    with pytest.raises(Invalid, match=r"/xxx.*: cannot be read: File name too long"):
        history.newest([tmp_path / ("x" * 300)])
    with pytest.raises(Invalid, match="the folder contains no snapshot"):
        history.newest([tmp_path])
    one, other = (snapshot(tmp_path, 1, cluster) for cluster in ("a", "b"))
    with pytest.raises(Invalid, match=r"contains snapshots of 2 clusters \(a, b\)"):
        history.newest([one, other])
    with pytest.raises(Invalid, match="its first line is not a row of a snapshot"):
        history.newest([Path(written(tmp_path / "x.jsonl.gz", []))])
