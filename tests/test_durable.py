"""A file is replaced completely or stays unchanged, and no other file is left."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kquota import durable

BEFORE = {"nothing": None, "a file": "before"}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("synced", [True, False])
def test_the_new_file_exists_at_the_end_of_the_block(tmp_path: Path, before: str | None, synced: bool) -> None:
    path = tmp_path / ("n" * 255)
    if before is not None:
        path.write_text(before)
    with durable.replacing(path, synced=synced) as file:
        file.write(b"after")
        assert (path.read_text() if path.exists() else None) == before
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("failed", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, before: str | None, failed: BaseException) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    with pytest.raises(type(failed)), durable.replacing(path) as file:
        file.write(b"after")
        raise failed
    assert [each.read_text() for each in tmp_path.iterdir()] == ([] if before is None else [before])


def test_an_obstacle_is_reported_and_no_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), durable.replacing(tmp_path / "folder"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_link_is_replaced_and_its_target_is_not(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    with durable.replacing(tmp_path / "link") as file:
        file.write(b"after")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "precious").read_text()) == (False, "precious")


MODES = {"private": (True, 0o600), "as the umask has it": (False, 0o640)}


@pytest.mark.parametrize(("private", "mode"), MODES.values(), ids=MODES)
def test_the_permissions_of_the_file(tmp_path: Path, private: bool, mode: int) -> None:
    umask = os.umask(0o027)
    try:
        with durable.replacing(tmp_path / "file", private=private) as file:
            assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {mode}
            file.write(b"")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


KILLED = """
import os, pathlib, signal, sys
from kquota import durable
with durable.replacing(pathlib.Path(sys.argv[1])) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_partial_file_of_a_killed_process_is_removed_after_a_day(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "file")], check=False)
    old, new = sorted(tmp_path.iterdir())
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    others = (".another.unfinished", "another.unfinished")
    for other in others:
        (tmp_path / other).touch()
        os.utime(tmp_path / other, (two_days_ago, two_days_ago))
    with durable.replacing(tmp_path / "file"):
        pass
    (tmp_path / "file").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([new.name, *others])
