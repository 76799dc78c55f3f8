"""The lock of an open file, between two open files of the same path."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from kquota import file_lock

pytestmark = pytest.mark.unit


def test_only_one_open_file_has_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("r") as second:
        assert file_lock.take(first)
        assert not file_lock.take(second)
        first.close()
        assert file_lock.take(second)


def test_waiting_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("r") as second:
        assert file_lock.take(first)
        waiting = threading.Thread(target=file_lock.wait_for, args=(second,))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        first.close()
        waiting.join(60)
        assert not waiting.is_alive()


@pytest.mark.parametrize(("number", "taken"), [(errno.EWOULDBLOCK, False), (errno.EACCES, False), (errno.ENOLCK, None)])
def test_a_lock_that_cannot_be_taken_differs_from_a_held_lock(
    number: int, taken: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (tmp_path / "lock").open("w") as file:
        if taken is None:
            with pytest.raises(OSError, match="No locks available"):
                file_lock.take(file)
        else:
            assert file_lock.take(file) is taken
