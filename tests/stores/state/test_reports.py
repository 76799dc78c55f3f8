"""A report is complete or absent, and overwrites nothing but a report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kquota.errors import Invalid, Refused
from kquota.stores.state.command_files import check_report, write_report

MARK = "made by a test"


def test_a_report_is_written_and_overwritten(tmp_path: Path) -> None:
    path, link = tmp_path / "move.html", tmp_path / "link.html"
    link.symlink_to(path)
    for page in (f"<{MARK}> one", f"<{MARK}> two \u00e9"):
        check_report(link, MARK)
        write_report(link, page)
        assert path.read_text(encoding="utf-8") == page
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.html", "move.html"]


def test_an_empty_file_can_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "move.html").touch()
    check_report(tmp_path / "move.html", MARK)


def test_paths_that_cannot_hold_a_report(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    refused = {
        "plan.json": "already exists and is not a kquota report",
        "pipe": "is not a regular file",
        ".": "is not a regular file",
        "nowhere/move.html": "the folder .* does not exist",
        "plan.json/move.html": "the folder .* does not exist",
    }
    for name, reason in refused.items():
        with pytest.raises(Invalid, match=reason):
            check_report(tmp_path / name, MARK)
    assert (tmp_path / "plan.json").read_text() == "{}"


def test_a_folder_that_disappeared_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be written or synced: No such file or directory"):
        write_report(tmp_path / "gone" / "move.html", MARK)
