"""A file is replaced as a whole, or is what it was; and nothing else is left beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kquota import durable

BEFORE = {"nothing": None, "a file": "before"}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("synced", [True, False])
def test_the_new_file_is_there_when_the_block_has_ended(tmp_path: Path, before: str | None, synced: bool) -> None:
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
def test_one_that_failed_leaves_what_was_there(tmp_path: Path, before: str | None, failed: BaseException) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    with pytest.raises(type(failed)), durable.replacing(path) as file:
        file.write(b"after")
        raise failed
    assert [each.read_text() for each in tmp_path.iterdir()] == ([] if before is None else [before])


def test_what_stands_in_the_way_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), durable.replacing(tmp_path / "folder"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_link_is_replaced_and_what_it_names_is_not(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    with durable.replacing(tmp_path / "link") as file:
        file.write(b"after")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "precious").read_text()) == (False, "precious")


MODES = {"private": (True, 0o600), "as the umask has it": (False, 0o640)}


@pytest.mark.parametrize(("private", "mode"), MODES.values(), ids=MODES)
def test_who_may_read_it(tmp_path: Path, private: bool, mode: int) -> None:
    umask = os.umask(0o027)
    try:
        with durable.replacing(tmp_path / "file", private=private) as file:
            assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {mode}
            file.write(b"")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
