"""The archive of Spark's classes: created once, only for a person, and harmless if it is damaged."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from pathlib import Path

import pytest

from kquota import java
from kquota.cli.engine_options import SparkOptions, engine, rehearsal
from kquota.errors import Refused
from kquota.spark import archive
from tests.cli.run import run

WANTED = {
    "a person": ({}, True, True),
    "cron": ({}, False, False),
    "a build server with a terminal": ({"CI": "true"}, True, False),
    "off": ({"KQUOTA_SPARK_ARCHIVE": "off"}, True, False),
    "on": ({"KQUOTA_SPARK_ARCHIVE": "on", "CI": "true"}, False, True),
    "while one is made": ({"KQUOTA_SPARK_ARCHIVE": "make:/x"}, True, False),
}
RUN = """
import pathlib, sys
from kquota.spark.files import Files
from kquota.spark.session import session
folder = pathlib.Path(sys.argv[1])
with session(folder, Files(folder=folder, names={}), print) as spark:
    path = f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/maps"
    print(spark.range(10).selectExpr("sum(id)").collect()[0][0], sys.argv[2] in open(path).read())
"""


@pytest.mark.parametrize(("environment", "terminal", "expected"), WANTED.values(), ids=WANTED.keys())
def test_commands_that_leave_a_process_behind(
    environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.wanted(environment, terminal=terminal) is expected
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert engine(SparkOptions(), environment).rehearsal == (rehearsal() if expected else ())


def test_only_one_process_creates_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "kquota" / "spark").mkdir(parents=True)
    with (tmp_path / "kquota" / "spark" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert archive.build(rehearsal()) is None


CONTENTS = {
    "none": (None, False),
    "empty": (b"", False),
    "cut off": (b"what a JVM wrote\nkquota: wh", False),
    "whole": (b"what a JVM wrote\nkquota: whole\n", True),
}


@pytest.mark.parametrize(("content", "expected"), CONTENTS.values(), ids=CONTENTS.keys())
def test_only_a_complete_archive_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, expected: bool
) -> None:
    """A JVM crashes with a truncated one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(archive.SETTING, raising=False)
    place = archive.place(java.find())
    place.parent.mkdir(parents=True)
    if content is not None:
        place.write_bytes(content)
    assert bool(archive.flags()) is expected


UNRELIABLE_JAVA = """\
#!/bin/sh
case "$1" in
-XshowSettings*) printf ' java.home = %s\\n java.specification.version = %s\\n' '{home}' '{version}' >&2 ;;
*) '{java}' "$@"; exit 3 ;;
esac
"""


@pytest.mark.spark
def test_an_archive_is_installed_only_if_the_jvm_ended_with_code_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another JVM may have been killed while it wrote the archive."""
    real, fake = java.find(), tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text(UNRELIABLE_JAVA.format(home=tmp_path, version=real.version, java=real.executable))
    fake.chmod(0o700)
    monkeypatch.setenv("KQUOTA_JAVA", "own")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(archive.SETTING, raising=False)
    with pytest.raises(Refused, match=r"wrote no complete archive: .*Spark's JVM ended: code 3"):
        archive.build(rehearsal())
    assert not archive.place(java.find()).exists()


def used(folder: Path, file: Path) -> str:
    """The output of a session without stderr, and whether its JVM had the file open."""
    folder.mkdir()
    ran = run([sys.executable, "-c", RUN, str(folder), str(file)], {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]})
    assert (ran.code, ran.err) == (0, "")
    return ran.out.removeprefix("starting Spark ...\n").strip()


@pytest.mark.spark
@pytest.mark.parametrize("which", [pytest.param("own", id="any Java"), pytest.param("bundled", id="the wheel's Java")])
def test_the_archive_is_created_used_and_harmless_if_damaged(
    class_archive: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Before Java 25, the archive is of another kind, with other options. All tests share the archive of this run's
    Java.
    """
    made = archive.place(java.find())
    monkeypatch.setenv("KQUOTA_JAVA", which)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(archive.SETTING, raising=False)
    place = archive.place(java.find())
    place.parent.mkdir(parents=True)
    if made.name == place.name and made.exists():
        shutil.copy(made, place)
    else:
        (place.parent / ".building-killed").mkdir()
        place.with_name(f"{place.name.partition('-')[0]}-before.archive").touch()
    assert archive.build(rehearsal()) == place
    assert archive.build(rehearsal()) == place
    assert sorted(path.name for path in place.parent.iterdir()) == sorted([place.name, "lock"])
    assert used(tmp_path / "whole", place) == "45 True"
    whole = place.read_bytes()
    place.unlink()
    middle = len(whole) // 2
    place.write_bytes(whole[:middle] + bytes(1_000_000) + whole[middle + 1_000_000 :])
    assert used(tmp_path / "holes", place).startswith("45 ")
    place.write_bytes(whole[:middle])
    assert used(tmp_path / "cut off", place) == "45 False"
