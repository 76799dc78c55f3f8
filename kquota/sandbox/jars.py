"""Kafka's jars: downloaded from Maven Central by the Ivy that PySpark contains, and kept in the cache folder."""

from __future__ import annotations

import contextlib
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

from kquota import file_lock, folders, java
from kquota.errors import Invalid, KquotaError, Parameter, Refused, Unreachable
from kquota.interrupt import deferred
from kquota.sandbox import places

ReportProgress = Callable[[str, float | None], None]
"""A callback that receives the current step and the share of it that is done (0 to 1), or None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Jars to download. `what` names them in messages, `module` is the text of their Ivy file, and `jars` is their
    number. `main` is the file name of the jar without which a download counts as failed.
    """

    what: str
    module: str
    jars: int
    main: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A Kafka release that the sandbox runs. `jars` is the number of its jars, to show the progress of a download.

    `tools` is true if Kafka's tools have their own jar, and `tiers` is true if the sandbox supports tiered topics.
    """

    version: str
    on_zookeeper: bool
    tools: bool
    jars: int
    tiers: bool = False


RELEASES: Final = {
    r.version: r
    for r in (
        Release(version="4.3.1", on_zookeeper=False, tools=True, jars=47, tiers=True),
        Release(version="3.9.1", on_zookeeper=True, tools=True, jars=57),
        Release(version="2.8.2", on_zookeeper=True, tools=False, jars=37),
    )
}
NEWEST: Final = "4.3.1"
_VARIABLE: Final = "XDG_CACHE_HOME"

_AGENT_VERSION: Final = "1.0.1"
_PATIENCE: Final = 40.0
"""Seconds without output after which Maven Central is considered unreachable."""

_IVY: Final = """<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">
  <info organisation="kquota" module="{module}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""


def _ivy(module: str, *dependencies: str, artifact: str = "") -> str:
    """Return the Ivy file of a module. `artifact` replaces the main jar of each dependency."""
    each = (f'<dependency {one} conf="default->default">{artifact}</dependency>' for one in dependencies)
    return _IVY.format(module=module, dependencies="".join(each))


def release(version: str) -> Release:
    """Return the release of a supported version. For any other version, raises Invalid with the supported versions."""
    if version not in RELEASES:
        raise Invalid(Parameter("kafka"), f" {version}: not supported. The sandbox supports {', '.join(RELEASES)}")
    return RELEASES[version]


def pyspark_jars() -> Path:
    """Return the folder of PySpark's jars, which contains a ZooKeeper server and Ivy.

    Raises Refused if PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Refused(
            "the sandbox needs PySpark's jars, but PySpark is not installed. Install it with: pip install "
            "'kquota[spark]'"
        )
    return Path(spec.origin).parent / "jars"


def kafka(version: str, report: ReportProgress) -> Path:
    """Return the folder of Kafka's jars. kquota downloads missing jars first (about 30 s).

    A second kquota that needs the same folder waits for the download. The folder gets its name only when it is
    complete. Raises Invalid for an unsupported version. A download raises Refused if PySpark or Java is missing or too
    old, or if the cache folder cannot be written. It raises Unreachable if it fails.
    """
    wanted = release(version)
    jars = [f'org="org.apache.kafka" name="kafka_2.13" rev="{version}"']
    jars.append('org="org.slf4j" name="slf4j-simple" rev="1.7.36"')  # logs to stderr
    if wanted.tools:
        # The dependencies of `kafka-tools` are left out, because they include all of Kafka Connect.
        jars.append(f'org="org.apache.kafka" name="kafka-tools" rev="{version}" transitive="false"')
    main = f"kafka_2.13-{version}.jar"
    return _folder(
        version, _Wanted(what=f"Kafka {version}", module=_ivy("sandbox", *jars), jars=wanted.jars, main=main), report
    )


def must_have_tiers(version: str | None) -> None:
    """Raise Invalid unless the sandbox has tiered topics with this version. None means ZooKeeper only."""
    if version is None or not release(version).tiers:
        able = ", ".join(each.version for each in RELEASES.values() if each.tiers)
        without = f"Kafka {version} has" if version is not None else "ZooKeeper alone has"
        raise Invalid(Parameter("tiered"), f": {without} no tiered topics in the sandbox. Choose Kafka {able}")


def tiers(version: str, report: ReportProgress) -> Path:
    """Return the folder with the jar of the remote storage for a release. It is downloaded like the jars of `kafka`.

    Raises Invalid for a release without tiered topics in the sandbox. A download raises the same errors as in `kafka`.
    """
    must_have_tiers(version)
    # This is the test jar, because only the test jar has LocalTieredStorage, a remote storage in a folder.
    artifact = '<artifact name="kafka-storage" type="jar" ext="jar" e:classifier="test"/>'
    jar = f'org="org.apache.kafka" name="kafka-storage" rev="{version}" transitive="false"'
    module = _ivy("sandbox-tiers", jar, artifact=artifact)
    main = f"kafka-storage-{version}.jar"
    what = f"the remote storage of Kafka {version}"
    return _folder(f"{version}-tiers", _Wanted(what=what, module=module, jars=1, main=main), report)


def metrics_agent(report: ReportProgress) -> Path:
    """Return the path of the Prometheus JMX exporter, a Java agent. It is downloaded like the jars of `kafka`.

    A download raises the same errors as in `kafka`.
    """
    main = f"jmx_prometheus_javaagent-{_AGENT_VERSION}.jar"
    jar = f'org="io.prometheus.jmx" name="jmx_prometheus_javaagent" rev="{_AGENT_VERSION}" transitive="false"'
    module = _ivy("sandbox-metrics", jar)
    what = "the Prometheus JMX exporter"
    return _folder("metrics-agent", _Wanted(what=what, module=module, jars=1, main=main), report) / main


def _folder(name: str, wanted: _Wanted, report: ReportProgress) -> Path:
    folder = folders.cache(os.environ) / "kafka" / name
    if folder.is_dir():
        return folder
    with _turn(folder.with_name(f".{name}.lock"), wanted.what, report) as turn:
        if not folder.is_dir():
            partial = folder.with_name(f".{name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                _download(wanted, partial, turn, report)
                (partial / "jars").rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _turn(lock: Path, what: str, report: ReportProgress) -> Iterator[int]:
    with places.opened(lock, _VARIABLE) as file:
        if not places.take(file, _VARIABLE):
            report(f"waiting while another kquota downloads {what}", None)
            file_lock.wait_for(file)
        yield file.fileno()


def _download(wanted: _Wanted, partial: Path, turn: int, report: ReportProgress) -> None:
    what = f"downloading {wanted.what} from Maven Central"
    report(what, None)
    partial.mkdir(parents=True)
    (partial / "ivy.xml").write_text(wanted.module)
    command, ivy = _command(partial), None
    try:
        with deferred():  # because an interrupt while Ivy starts would leave it running
            ivy = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Ivy runs in a separate session, because Ctrl-C must reach only kquota, which then stops Ivy and cleans
                # up.
                start_new_session=True,
                # If kquota is killed, Ivy continues for a while. Ivy keeps the lock, so no other process uses its
                # folder.
                pass_fds=[turn],
            )
        output = _watched(ivy, lambda files: report(what, min(1.0, files / (2 * wanted.jars))))
    finally:
        if ivy is not None:
            ivy.kill()
            ivy.wait()
    if ivy.returncode != 0 or not (partial / "jars" / wanted.main).exists():
        raise _failure(wanted, ivy.returncode, output)
    report(f"downloaded {wanted.what}", 1.0)


def _command(partial: Path) -> list[str]:
    """Return Ivy's command line, with timeouts and the proxy of the environment, but without the user's own Ivy
    settings.
    """
    found = java.find()
    waits = ["-Dsun.net.client.defaultConnectTimeout=10000", "-Dsun.net.client.defaultReadTimeout=30000"]
    home = [f"-Divy.default.ivy.user.dir={partial / 'ivy'}"]
    ivy = next(iter(pyspark_jars().glob("ivy-*.jar")), None)
    if ivy is None:
        raise Refused(
            f"{pyspark_jars()} contains no ivy-*.jar. The sandbox needs the jars of PySpark 4.1 or newer. In a "
            "separate environment, run: pip install 'kquota[spark]'"
        )
    retrieve = ["-types", "jar", "bundle", "-retrieve", f"{partial / 'jars'}/[artifact]-[revision].[ext]"]
    where = ["-ivy", str(partial / "ivy.xml"), "-cache", str(partial / "cache"), "-confs", "default"]
    return [str(found.executable), *waits, *home, *java.trust(found), *_proxy(), "-jar", str(ivy), *where, *retrieve]


def _proxy() -> list[str]:
    """Return the proxy in the environment as Java options. As in pip, the scheme sets the default port."""
    address = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
    match = re.fullmatch(r"(?:(https?)://)?(?:[^@/]*@)?([^:/@\s]+)(?::(\d+))?/?", address)
    if match is None:
        return []
    scheme, host, port = match.groups()
    return [f"-Dhttps.proxyHost={host}", f"-Dhttps.proxyPort={port or (443 if scheme == 'https' else 80)}"]


def _watched(ivy: subprocess.Popen[bytes], arrived: Callable[[int], None]) -> list[str]:
    """Return the output of Ivy. `arrived` receives the number of found files plus the number of downloaded files."""
    assert ivy.stdout is not None
    output = ""
    # Ivy prints dots while a file arrives, so a slow network is not silent.
    while select.select([ivy.stdout], [], [], _PATIENCE)[0]:
        if not (piece := os.read(ivy.stdout.fileno(), 65536)):
            ivy.wait()
            break
        output += piece.decode(errors="replace")
        arrived(len(re.findall(r"^\s*(?:found |\[SUCCESSFUL \])", output, re.MULTILINE)))
    return output.splitlines()


_NO_ANSWER: Final = (
    r"UnknownHost|ConnectException|timed out|NoRouteToHost|Connection refused|unreachable|Host .* not found"
)


def _failure(wanted: _Wanted, code: int, output: list[str]) -> KquotaError:
    why = next((line.strip() for line in output if re.search(_NO_ANSWER, line)), None)
    why = why or next((line.strip() for line in output if "Exception" in line or "Server access" in line), None)
    if code == -signal.SIGKILL:
        why = f"no answer for {_PATIENCE:.0f} s"
    what = wanted.what[0].upper() + wanted.what[1:]
    return Unreachable(
        f"{what} could not be downloaded from Maven Central ({why or f'Ivy ended with exit code {code}'}). "
        "Try again when the network is available, or start a sandbox with ",
        Parameter("zookeeper_only"),
        ", which downloads nothing",
    )
