"""An archive of Spark's loaded classes in one file, which halves the start time of the JVM.

An archive works only with the Java and the jars with which it was created. A separate process creates it once, after a
successful command, so that no command waits. kquota ignores an incomplete file, and the JVM ignores a complete file
whose checksums do not match.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kquota import file_lock, folders, java
from kquota.errors import Refused
from kquota.java import Java
from kquota.reassign.plan import Plan
from kquota.sizes.snapshot import VERSION
from kquota.spark import jvm
from kquota.terms import BrokerId, TopicPartition

SETTING: Final = "KQUOTA_SPARK_ARCHIVE"
_AOT: Final = 25
"""The first Java version that creates the newer kind of archive (AOT cache) in one step."""
_SPARE: Final = 2 << 30
_DAY: Final = 86_400
_MAKE: Final = "make:"
_END: Final = b"\nkquota: whole\n"
"""The last bytes of a complete archive. They follow the JVM's data, and the JVM ignores them."""
EXIT_SECONDS: Final = 300
"""The time limit in seconds for a JVM that writes the archive while it exits."""
PLAN: Final = "plan.json"
"""The file name of the plan that a rehearsal (the kquota command that `build` runs) reads. The plan moves the only
partition in `HISTORY`.
"""
HISTORY: Final = "sizes.jsonl.gz"
"""The file name of the sizes that a rehearsal reads: a snapshot with two rows."""
_PARTITION: Final = TopicPartition("t", 0)
_ROW: Final = {
    "version": VERSION,
    "cluster": "c",
    "topic": _PARTITION.topic,
    "partition": _PARTITION.partition,
    "time": "2026-01-01T00:00:00Z",
    "log_dir": "/d",
    "size": 1_000_000,
    "future": False,
    "in_sync": True,
}


def flags() -> tuple[str, ...]:
    """Return the JVM options that use the archive, or that create it for `build`.

    The result is empty if `KQUOTA_SPARK_ARCHIVE` is `off`, or if there is no complete archive to use. Raises Refused if
    Spark or Java is missing.
    """
    if _setting(os.environ) == "off":
        return ()
    found = java.find()
    if (made := making()) is not None:
        return (f"-XX:{'AOTCacheOutput' if found.version >= _AOT else 'ArchiveClassesAtExit'}={made}",)
    file = place(found)
    if not _whole(file):
        return ()
    # An AOT cache, the newer kind of archive, does not work with -Xshare.
    use = (f"-XX:AOTCache={file}",) if found.version >= _AOT else (f"-XX:SharedArchiveFile={file}", "-Xshare:auto")
    # The JVM must not print anything about wrong checksums, because a damaged archive only costs time.
    return (*use, "-XX:+VerifySharedSpaces", "-Xlog:disable", "-Xlog:all=off")


def making() -> Path | None:
    """Return the path of the archive that this command creates, or None if it creates none.

    The JVM writes the archive when it exits, so kquota must not kill the JVM.
    """
    setting = _setting(os.environ)
    return Path(setting.removeprefix(_MAKE)) if setting.startswith(_MAKE) else None


def wanted(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Return True if a command may start a background process that creates the archive.

    A command at a terminal may start one, except in a CI build. Any other command may start one only with
    `KQUOTA_SPARK_ARCHIVE=on`. `off` prevents both creating and using an archive.
    """
    setting = _setting(environment)
    return setting == "on" or (setting == "auto" and terminal and not environment.get("CI"))


def build_later(rehearsal: Sequence[str]) -> None:
    """Start a background process that creates the archive, unless the archive exists.

    Nothing is started if `rehearsal` is empty, if an attempt began less than a day ago, or if less than 2 GiB are free.
    Errors are ignored, because Spark also starts without an archive.
    """
    if not rehearsal:
        return
    with contextlib.suppress(OSError, Refused):
        file = place(java.find())
        if not _whole(file) and not _tried(file) and _room(file.parent):
            quiet = subprocess.DEVNULL
            command = [sys.executable, "-m", "kquota.spark.archive", *rehearsal]
            subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True)


def build(rehearsal: Sequence[str]) -> Path | None:
    """Create the archive if it is missing, and return its path, or None if another process is creating it.

    `rehearsal` has the arguments of a kquota command that estimates `PLAN` with the sizes of `HISTORY`. Older archives
    of the same Java and PySpark are deleted. Raises Refused if Spark or Java is missing, or if the JVM does not write a
    complete archive.
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
            problem = _rehearsed(rehearsal, Path(folder), made)
            if problem is not None:
                raise Refused(f"Spark's JVM wrote no complete archive: {problem}")
            _end(made)
            made.replace(file)
        _tried_mark(file).unlink()
        for old in file.parent.glob(f"{file.name.partition('-')[0]}-*"):
            if old != file:
                old.unlink(missing_ok=True)
    return file


def _setting(environment: Mapping[str, str]) -> str:
    return environment.get(SETTING) or "auto"


def place(found: Java) -> Path:
    """Return the path of the archive, whether it exists or not.

    Its name contains a hash of the folders of Java and PySpark, so that `build` finds older archives, and a hash of
    everything that the archive depends on. Raises Refused if Spark is missing.
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
    """Return True if the file is complete. The JVM maps the file, so an incomplete file would kill it (SIGBUS)."""
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


def _rehearsed(rehearsal: Sequence[str], folder: Path, made: Path) -> str | None:
    """Run the command in `folder`, so that the JVM records the classes that Spark loads. Return why the archive is
    missing or may be incomplete, or None.
    """
    (folder / PLAN).write_text(Plan(targets={_PARTITION: (BrokerId(1), BrokerId(3))}).text())
    with gzip.open(folder / HISTORY, "wt") as file:
        file.writelines(json.dumps({**_ROW, "broker": b, "leader": b == 1}) + "\n" for b in (1, 2))
    command = [sys.executable, "-m", "kquota", *rehearsal]
    own = {key: value for key, value in os.environ.items() if not key.startswith("KQUOTA_") or key == "KQUOTA_JAVA"}
    # The JVM cannot create an archive if the class path has a folder, as with `HADOOP_CONF_DIR`. An archive created
    # without the folder also works for a class path with one.
    own.pop("HADOOP_CONF_DIR", None)
    own |= {SETTING: f"{_MAKE}{made}", "TMPDIR": str(folder)}
    try:
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=2 * EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"the kquota command did not end within {2 * EXIT_SECONDS} s"
    ended_well = done.returncode == 0 and made.exists()
    return None if ended_well else done.stderr.strip().replace("\n", " | ")


def _tried_mark(file: Path) -> Path:
    return file.with_suffix(".tried")


def _tried(file: Path) -> bool:
    mark = _tried_mark(file)
    return mark.exists() and time.time() - mark.stat().st_mtime < _DAY


def _room(folder: Path) -> bool:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free > _SPARE


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    with (folder / "lock").open("w") as lock:
        yield file_lock.take(lock)


if __name__ == "__main__":
    os.nice(19)
    # Ignore errors, because without an archive the next command is only slower.
    with contextlib.suppress(OSError, Refused):
        build(sys.argv[1:])
