"""A text file is UTF-8, read once, and limited to a size above any plan."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kquota.errors import Invalid
from kquota.text_file import read

TEXT = '{"a": 1}'
ENCODED = {
    "utf-8": (TEXT.encode(), None),
    "utf-8 with a byte order mark": (TEXT.encode("utf-8-sig"), None),
    "utf-16": (TEXT.encode("utf-16"), "is UTF-16, not UTF-8. Save it as UTF-8"),
    "utf-16 without a mark": (TEXT.encode("utf-16-be"), "is UTF-16, not UTF-8. Save it as UTF-8"),
    "latin-1": ('{\n"ä"'.encode("latin-1"), "line 2 column 2: is not UTF-8. Save the file as UTF-8"),
    "a mark and latin-1": (b'\xef\xbb\xbf"\xff', "line 1 column 2: is not UTF-8. Save the file as UTF-8"),
    "empty": (b"", "is empty. Give a plan"),
    "what a power cut leaves": (bytes(4096), "is empty. Give a plan"),
}


@pytest.mark.parametrize(("data", "complaint"), ENCODED.values(), ids=ENCODED)
def test_a_file_is_utf_8(tmp_path: Path, data: bytes, complaint: str | None) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    if complaint is None:
        assert read(path, "a plan") == (TEXT, str(path))
        return
    with pytest.raises(Invalid) as raised:
        read(path, "a plan")
    assert str(raised.value) == f"{path}: {complaint}"


@pytest.mark.parametrize(
    ("name", "why"),
    [("absent.json", "No such file or directory"), (".", "Is a directory")],
    ids=["no file", "a folder"],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(Invalid) as raised:
        read(tmp_path / name, "a plan")
    assert str(raised.value) == f"{tmp_path / name}: cannot be read: {why}. Give a plan"


def test_a_file_may_have_the_name_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stdin").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    assert read(Path("stdin"), "a plan") == (TEXT, "stdin")


def test_a_pipe() -> None:
    reads, writes = os.pipe()
    os.write(writes, TEXT.encode())
    os.close(writes)
    try:
        assert read(Path(f"/dev/fd/{reads}"), "a plan")[0] == TEXT
    finally:
        os.close(reads)


def test_a_file_larger_than_any_plan_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with path.open("wb") as file:
        file.truncate(10**12)  # more than the memory of any machine that runs this test
    with pytest.raises(Invalid) as raised:
        read(path, "a plan")
    assert (
        str(raised.value) == f"{path}: is 1,000,000,000,000 bytes long, and kquota reads at most 100,000,000. Split it"
    )


def test_a_pipe_without_end() -> None:
    with pytest.raises(Invalid, match="/dev/zero: is more than 100,000,000 bytes long"):
        read(Path("/dev/zero"), "a plan")
