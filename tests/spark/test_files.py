"""The files that are read, and those that are refused before Spark starts."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, cast

import pytest

from kquota.errors import Invalid
from kquota.spark import files
from kquota.spark.reader import uploaded
from tests.spark.rows import log_dirs


def test_globs_plain_and_packed_and_odd_names(tmp_path: Path) -> None:
    (tmp_path / "_a:[1].txt").write_text(log_dirs((1, {"t-0": 1})))
    (tmp_path / "b.txt").write_bytes(gzip.compress(log_dirs((2, {"t-0": 1})).encode()))
    found = files.log_dirs([str(tmp_path / "_a:[1].txt"), str(tmp_path / "*.txt")], tmp_path)
    assert [Path(name).name for name in found.names.values()] == ["_a:[1].txt", "b.txt"]
    assert [Path(link).suffix for link in found.names] == [".json", ".gz"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "contains no JSON line"),
        (b"Querying brokers\n", "contains no JSON line"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
    ],
)
def test_a_file_that_is_not_log_dirs_output(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(Invalid, match=f"/x: {complaint}"):
        files.log_dirs([str(tmp_path / "x")], tmp_path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="the file does not exist"):
        files.log_dirs([str(tmp_path / "*.json")], tmp_path)
    with pytest.raises(Invalid, match=r"^log_dirs xxx.*: cannot be read: File name too long\. Check the path"):
        files.log_dirs(["x" * 300], tmp_path)


def packed(text: bytes) -> bytes:
    return gzip.compress(text, mtime=0)


DAMAGED = {
    "cut off": (packed(b"a line\n")[:-9], "x.gz", "Compressed file ended"),
    "a sum that does not fit": (packed(b"a line\n")[:-8] + bytes(8), "x.gz", "CRC check failed"),
    "not what gzip packs": (packed(b"")[:10] + b"\xff" * 20, "x.gz", "Error -3 while decompressing"),
    "no text": (b"caf\xe9\n", "x", "can't decode byte 0xe9"),
}


@pytest.mark.parametrize(("content", "name", "complaint"), DAMAGED.values(), ids=DAMAGED.keys())
def test_files_that_cannot_be_sent_are_reported(tmp_path: Path, content: bytes, name: str, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    found = files.laid_out([tmp_path / name], tmp_path / "laid", ".json")
    with pytest.raises(Invalid, match=f"{tmp_path}/{name}: cannot be read: .*{complaint}"):
        uploaded(cast("Any", None), found)
