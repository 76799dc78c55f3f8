"""Which files are read, and which are refused before Spark starts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kquota.errors import Invalid
from kquota.spark import files
from tests.spark.rows import log_dirs, row, written


def test_globs_plain_and_packed_and_odd_names(tmp_path: Path) -> None:
    (tmp_path / "_a:[1].txt").write_text(log_dirs((1, {"t-0": 1})))
    (tmp_path / "b.txt").write_bytes(gzip.compress(log_dirs((2, {"t-0": 1})).encode()))
    found = files.log_dirs([str(tmp_path / "_a:[1].txt"), str(tmp_path / "*.txt")], tmp_path)
    assert [Path(name).name for name in found.names.values()] == ["_a:[1].txt", "b.txt"]
    assert [Path(link).suffix for link in found.names] == [".json", ".gz"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"", "holds no line"), (b"Querying brokers\n", "holds no line"), (b"\x1f\x8bnot gzip", "cannot be read")],
)
def test_a_file_that_is_not_log_dirs_output(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(Invalid, match=f"/x: {complaint}"):
        files.log_dirs([str(tmp_path / "x")], tmp_path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="there is no such file"):
        files.log_dirs([str(tmp_path / "*.json")], tmp_path)
    with pytest.raises(Invalid, match="there is no such file or folder"):
        files.snapshots([str(tmp_path / "x")], tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(Invalid, match="the folder holds no snapshot"):
        files.snapshots([str(tmp_path / "empty")], tmp_path)


def test_the_newest_snapshot_is_taken(tmp_path: Path) -> None:
    history = tmp_path / "h"
    history.mkdir()
    for day in (19, 21, 20):
        written(history / f"{day}.jsonl.gz", [row(1, "t", 0, 5, time=f"2026-11-{day}T00:00:00Z")])
    (history / ".22.jsonl.gz.77").write_bytes(b"still being written")
    assert list(files.snapshots([str(history)], tmp_path).names.values()) == [str(history / "21.jsonl.gz")]


def test_two_clusters_are_refused(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{c}.jsonl.gz", [row(1, "t", 0, 5, cluster=c)]) for c in ("a", "b")]
    with pytest.raises(Invalid, match=r"snapshots of 2 clusters \(a, b\)"):
        files.snapshots(paths, tmp_path)


def test_a_snapshot_without_a_row(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="its first line is not a row of a snapshot"):
        files.snapshots([written(tmp_path / "x.jsonl.gz", [])], tmp_path)
