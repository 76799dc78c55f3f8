"""Kafka's jars: downloaded from Maven Central by the Ivy that PySpark contains, and kept in the cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota import folders, java
from kquota.errors import Invalid, KquotaError, Parameter, Refused, Unreachable

Tell = Callable[[str, float | None], None]
"""Receives the current step and the share of it that is done (0 to 1), None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A Kafka release that the sandbox runs. `jars` is its number of files, to show the progress of a download."""

    version: str
    on_zookeeper: bool
    tools: bool
    jars: int


RELEASES: Final = {
    r.version: r
    for r in (
        Release(version="4.3.1", on_zookeeper=False, tools=True, jars=47),
        Release(version="3.9.1", on_zookeeper=True, tools=True, jars=57),
        Release(version="2.8.2", on_zookeeper=True, tools=False, jars=37),
    )
}
NEWEST: Final = "4.3.1"

_PATIENCE: Final = 40.0
"""Seconds without output after which Maven Central counts as unreachable."""

# `kafka-tools` depends on all of Kafka Connect, which our tools do not need; slf4j-simple sends logs to stderr.
_MODULE: Final = """<ivy-module version="2.0">
  <info organisation="kquota" module="sandbox"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}" conf="default->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="default->default"/>
    {tools}
  </dependencies>
</ivy-module>
"""
_TOOLS: Final = (
    '<dependency org="org.apache.kafka" name="kafka-tools" rev="{version}" conf="default->default" transitive="false"/>'
)


def release(version: str) -> Release:
    """The release of this version. Raises Invalid, naming the supported versions."""
    if version not in RELEASES:
        raise Invalid(Parameter("kafka"), f" {version}: the sandbox runs {', '.join(RELEASES)}")
    return RELEASES[version]


def pyspark_jars() -> Path:
    """The folder of PySpark's jars, which contains a ZooKeeper server and Ivy. Raises Refused without PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Refused(
            "ZooKeeper is part of PySpark's jars, but PySpark is not installed. Install it with: pip install "
            "'kquota[spark]'"
        )
    return Path(spec.origin).parent / "jars"


def kafka(version: str, tell: Tell) -> Path:
    """The folder of Kafka's jars, which are downloaded first if they are missing (about 30 s).

    Concurrent downloads take turns. A folder is complete or absent. Raises Unreachable if Maven Central cannot be
    reached.
    """
    wanted = release(version)
    folder = folders.cache(os.environ) / "kafka" / version
    if folder.is_dir():
        return folder
    with _turn(folder.with_name(f".{version}.lock"), version, tell) as turn:
        if not folder.is_dir():
            partial = folder.with_name(f".{version}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                _download(wanted, partial, turn, tell)
                (partial / "jars").rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _turn(lock: Path, version: str, tell: Tell) -> Iterator[int]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"waiting for another kquota that downloads Kafka {version}", None)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _download(wanted: Release, partial: Path, turn: int, tell: Tell) -> None:
    what = f"downloading Kafka {wanted.version} from Maven Central"
    tell(what, None)
    partial.mkdir(parents=True)
    tools = _TOOLS.format(version=wanted.version) if wanted.tools else ""
    (partial / "ivy.xml").write_text(_MODULE.format(version=wanted.version, tools=tools))
    ivy = subprocess.Popen(
        _command(partial),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A session of its own: Ctrl-C must reach only us, so that we stop Ivy and clean up.
        start_new_session=True,
        # If we are killed, Ivy continues for a while. It keeps our lock, so no other process uses its folder then.
        pass_fds=[turn],
    )
    try:
        said = _watched(ivy, lambda files: tell(what, min(1.0, files / (2 * wanted.jars))))
    finally:
        ivy.kill()
        ivy.wait()
    if ivy.returncode != 0 or not (partial / "jars" / f"kafka_2.13-{wanted.version}.jar").exists():
        raise _failure(wanted, ivy.returncode, said)
    tell(f"downloaded Kafka {wanted.version}", 1.0)


def _command(partial: Path) -> list[str]:
    """Ivy's command line, with limited waits, without the user's own Ivy, and with the proxy of the environment."""
    found = java.find()
    waits = ["-Dsun.net.client.defaultConnectTimeout=10000", "-Dsun.net.client.defaultReadTimeout=30000"]
    home = [f"-Divy.default.ivy.user.dir={partial / 'ivy'}"]
    ivy = next(iter(pyspark_jars().glob("ivy-*.jar")), None)
    if ivy is None:
        raise Refused(f"{pyspark_jars()} contains no ivy-*.jar. The sandbox needs PySpark 4.1 or newer")
    retrieve = ["-types", "jar", "bundle", "-retrieve", f"{partial / 'jars'}/[artifact]-[revision].[ext]"]
    where = ["-ivy", str(partial / "ivy.xml"), "-cache", str(partial / "cache"), "-confs", "default"]
    return [str(found.executable), *waits, *home, *java.trust(found), *_proxy(), "-jar", str(ivy), *where, *retrieve]


def _proxy() -> list[str]:
    """The proxy of the environment, as pip uses it, as Java options."""
    address = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
    match = re.fullmatch(r"(?:https?://)?(?:[^@/]*@)?([^:/@]+):(\d+)/?", address)
    return [f"-Dhttps.proxyHost={match[1]}", f"-Dhttps.proxyPort={match[2]}"] if match else []


def _watched(ivy: subprocess.Popen[bytes], arrived: Callable[[int], None]) -> list[str]:
    """The output of Ivy, which names each file when it is found and when it has arrived.

    Silence for too long ends it.
    """
    assert ivy.stdout is not None
    said = ""
    # Ivy prints dots while a file arrives, so a slow network is not silent.
    while select.select([ivy.stdout], [], [], _PATIENCE)[0]:
        if not (piece := os.read(ivy.stdout.fileno(), 65536)):
            ivy.wait()
            break
        said += piece.decode(errors="replace")
        arrived(len(re.findall(r"^\s*(?:found |\[SUCCESSFUL \])", said, re.MULTILINE)))
    return said.splitlines()


_NO_ANSWER: Final = (
    r"UnknownHost|ConnectException|timed out|NoRouteToHost|Connection refused|unreachable|Host .* not found"
)


def _failure(wanted: Release, code: int, said: list[str]) -> KquotaError:
    why = next((line.strip() for line in said if re.search(_NO_ANSWER, line)), None)
    why = why or next((line.strip() for line in said if "Exception" in line or "Server access" in line), None)
    if code == -signal.SIGKILL:
        why = f"no answer for {_PATIENCE:.0f} s"
    return Unreachable(
        f"Kafka {wanted.version} could not be downloaded from Maven Central ({why or f'Ivy ended with {code}'}). "
        "Try again when the network is available, or use ",
        Parameter("zookeeper_only"),
        ", which downloads nothing",
    )
