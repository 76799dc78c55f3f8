"""A command's temporary folder is removed, however the command ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.stores.state.command_files import workspace
from tests.cli.run import python

WORKS = """
import signal
from kquota.stores.state.command_files import workspace
with workspace() as folder:
    (folder / "shuffled").mkdir()
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path


def test_the_folder_is_removed_also_after_an_error(temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), workspace() as folder:
        assert folder.parent == temporary
        (folder / "rows").touch()
        raise ZeroDivisionError
    assert list(temporary.iterdir()) == []


def test_the_next_command_removes_only_folders_of_dead_commands(temporary: Path) -> None:
    killed, alive = python(WORKS), python(WORKS)
    left, used = (Path(process.stdout.readline().strip()) for process in (killed, alive) if process.stdout)
    foreign = temporary / "kquota-work-notes"
    foreign.mkdir()
    link = temporary / "kquota-work-link"
    link.symlink_to(left)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with workspace() as folder:
        assert sorted(temporary.iterdir()) == sorted({used, foreign, link, folder})
    alive.send_signal(signal.SIGINT)
    alive.communicate()
    assert not used.exists()


def test_the_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = temporary / "kquota-work-other"
    other.mkdir()
    (other / "alive").touch()
    monkeypatch.setattr(os, "getuid", lambda: other.stat().st_uid + 1)
    with workspace():
        assert other.exists()
