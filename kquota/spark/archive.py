"""Spark's classes as a JVM has them in memory, kept in one file: starting from it takes half the time.

The file fits one JVM and one class path only. It is made by a process of its own, once, after a command that went well,
and never in anybody's way; without it everything works, only later. One that is cut off is not used; of a whole one the
JVM checks the sums, and goes on without it where they do not fit.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kquota import folders, java
from kquota.errors import Refused
from kquota.java import Java
from kquota.spark import jvm

SETTING: Final = "KQUOTA_SPARK_ARCHIVE"
_AOT: Final = 25
"""The first Java that makes the newer kind of file in one run."""
_SPARE: Final = 2 << 30
_DAY: Final = 86_400
_MAKE: Final = "make:"
_END: Final = b"\nkquota: whole\n"
"""Behind what the JVM wrote, which it passes over."""
EXIT_SECONDS: Final = 300
_WORDS: Final = (
    *("--history", "sizes.jsonl.gz", "--reassignment-json-file", "plan.json"),
    *("--bytes-in", "1=1MB/s", "--throttle", "50MB/s"),
)
_PARTITION: Final = {"topic": "t", "partition": 0}
_ROW: Final = {
    "version": 1,
    "cluster": "c",
    "time": "2026-01-01T00:00:00Z",
    "log_dir": "/d",
    "size": 1_000_000,
    "future": False,
    "in_sync": True,
}


def flags() -> tuple[str, ...]:
    """The options with which the JVM starts from the file, where it is there; or with which it makes one."""
    if _setting() == "off":
        return ()
    found = java.find()
    if (made := making()) is not None:
        return (f"-XX:{'AOTCacheOutput' if found.version >= _AOT else 'ArchiveClassesAtExit'}={made}",)
    file = place(found)
    if not _whole(file):
        return ()
    # The newer kind does not start beside -Xshare.
    use = (f"-XX:AOTCache={file}",) if found.version >= _AOT else (f"-XX:SharedArchiveFile={file}", "-Xshare:auto")
    # Sums that do not fit are no reason to say anything.
    return (*use, "-XX:+VerifySharedSpaces", "-Xlog:disable", "-Xlog:all=off")


def making() -> Path | None:
    """The file that this command is the rehearsal for: its JVM writes it when it ends, and must be let."""
    return Path(_setting().removeprefix(_MAKE)) if _setting().startswith(_MAKE) else None


def wanted(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether a command may leave a process behind that makes the file.

    One at a terminal may; what cron, a build server or a container starts may not. There KQUOTA_SPARK_ARCHIVE=on asks
    for it, and `off` neither makes nor uses one anywhere.
    """
    setting = environment.get(SETTING) or "auto"
    return setting == "on" or (setting == "auto" and terminal and not environment.get("CI"))


def build_later() -> None:
    """Starts the making of the file, unless it is there or not wanted; returns at once."""
    if not wanted(os.environ, terminal=sys.stderr.isatty()):
        return
    with contextlib.suppress(OSError, Refused):
        file = place(java.find())
        if not _whole(file) and not _tried(file) and _room(file.parent):
            quiet = subprocess.DEVNULL
            command = [sys.executable, "-m", "kquota.spark.archive"]
            subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True)


def build() -> Path | None:
    """Makes the file and returns it; None when another process is at it. Raises Refused when there is no Spark or Java.

    Older ones of the same Java and PySpark go.
    """
    file = place(java.find())
    file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(file.parent) as alone:
        if not alone or _whole(file):
            return file if alone else None
        _tried_mark(file).touch()
        for left in file.parent.glob(".building-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".building-") as folder:
            made = Path(folder) / "archive"
            said = _rehearsed(Path(folder), made)
            if not made.exists():
                raise Refused(f"Spark's JVM wrote no archive: {said}")
            _end(made)
            made.replace(file)
        _tried_mark(file).unlink()
        for old in file.parent.glob(f"{file.name.partition('-')[0]}-*"):
            if old != file:
                old.unlink(missing_ok=True)
    return file


def _setting() -> str:
    return os.environ.get(SETTING) or "auto"


def place(found: Java) -> Path:
    """Where the file is, or will be.

    It is named for where the Java and PySpark are, so that an older one is found, and for all that it depends on.
    """
    spark = jvm.home()
    where = [str(found.home), str(spark)]
    release = found.home / "release"
    what = [*where, release.read_text() if release.exists() else "", *jvm.MODULE_OPTIONS, *jvm.QUICK]
    for path in (found.executable, *sorted((spark / "jars").iterdir())):
        about = path.stat()
        what.append(f"{path.name} {about.st_size} {about.st_mtime_ns}")
    return folders.cache(os.environ) / "spark" / f"{_digest(where)}-{_digest(what)}.archive"


def _whole(file: Path) -> bool:
    """Whether it is there to its end: the JVM maps it as it is, and one that is cut off would kill it (SIGBUS)."""
    try:
        with file.open("rb") as found:
            found.seek(-len(_END), os.SEEK_END)
            return found.read() == _END
    except OSError:
        return False


def _end(made: Path) -> None:
    made.chmod(0o600)
    with made.open("ab") as file:
        file.write(_END)
        file.flush()
        os.fsync(file.fileno())


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _rehearsed(folder: Path, made: Path) -> str:
    """The command itself on two rows: the JVM remembers just what it needs. Returns what it said."""
    (folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": [{**_PARTITION, "replicas": [1, 3]}]}))
    with gzip.open(folder / "sizes.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({**_ROW, **_PARTITION, "broker": b, "leader": b == 1}) + "\n" for b in (1, 2))
    command = [sys.executable, "-m", "kquota", "move", "estimate", *_WORDS]
    own = {key: value for key, value in os.environ.items() if not key.startswith("KQUOTA_") or key == "KQUOTA_JAVA"}
    # A folder on the class path is not for archives; one that is made without fits a command that has it.
    own.pop("HADOOP_CONF_DIR", None)
    own |= {SETTING: f"{_MAKE}{made}", "TMPDIR": str(folder)}
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=2 * EXIT_SECONDS)
        return done.stderr.strip().replace("\n", " | ")
    return f"it did not end within {2 * EXIT_SECONDS} s"


def _tried_mark(file: Path) -> Path:
    return file.with_suffix(".tried")


def _tried(file: Path) -> bool:
    """Whether it failed, or somebody began, less than a day ago."""
    mark = _tried_mark(file)
    return mark.exists() and time.time() - mark.stat().st_mtime < _DAY


def _room(folder: Path) -> bool:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free > _SPARE


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether no other process makes one now."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


if __name__ == "__main__":
    os.nice(19)
    # Nobody looks at this process: what it could not do costs nothing but time.
    with contextlib.suppress(OSError, Refused):
        build()
