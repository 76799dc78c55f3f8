"""The check for leaked secrets finds leaks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import canary
from tests.canary import CANARY
from tests.waiting import until

OTHER = CANARY.replace("7f3a", "of-this-test")
"""The check of the whole suite does not look for it."""


def test_a_line_with_a_secret_is_found() -> None:
    assert canary.leaks("fine\n", f"a\npassword={CANARY}\nb") == [f"password={CANARY}"]


@pytest.mark.parametrize(
    ("name", "found"), [("run.journal", True), ("spark/conf", True), ("client.properties", False), ("jaas", False)]
)
def test_a_file_with_a_secret_is_found(tmp_path: Path, name: str, found: bool) -> None:
    """Beside files for logins, which contain secrets on purpose."""
    folder = tmp_path / "state"
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"x {CANARY} y")
    (folder / "other").write_text("nothing")
    assert canary.files_with_canary(folder) == [file] * found
    file.unlink()


def test_a_command_line_with_a_secret_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", f"password={OTHER}"], stdin=subprocess.PIPE) as process:
        until(lambda: list(canary.command_lines(OTHER)) != [], "the process has its arguments")
        (line,) = canary.command_lines(OTHER)
        process.communicate(b"\n")
    assert f"password={OTHER}" in line
    assert list(canary.command_lines(OTHER)) == []
