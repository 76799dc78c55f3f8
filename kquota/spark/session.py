"""One Spark session for one command: local, on loopback, silent, and gone without a trace afterwards."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.errors import Refused
from kquota.spark.files import Files
from kquota.spark.jvm import QUICK, Gateway, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS: Final = {
    "spark.app.name": "kquota",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The defaults, 200 partitions and a plan that adapts itself, cost seconds on small inputs.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
# Compiling a query takes longer than running it on fewer bytes of input than these (gzipped, ten times as much text).
_SMALL: Final = 16_000_000
_UNCOMPILED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextlib.contextmanager
def session(scratch: Path, inputs: Files, say: Callable[[str], None]) -> Iterator[SparkSession]:
    """A local Spark session, tuned to the size of `inputs`, which keeps all its files in the folder `scratch`.

    `say` is told in one line that Spark starts: that takes seconds. Raises Refused when there is no Spark or Java, and
    when a job fails in Spark: a damaged gzip, a full disk, a JVM that was killed.
    """
    places = {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    small = inputs.size() < _SMALL
    with jvm(_OPTIONS | places | (_UNCOMPILED if small else {}), QUICK if small else (), scratch) as gateway:
        say("starting Spark ...")
        # Inside the connection: a Java error is read over it.
        with _connected(gateway) as spark, _failures_in_one_line():
            yield spark


@contextlib.contextmanager
def _failures_in_one_line() -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise Refused(f"Spark could not finish: {_cause(str(error))}; nothing was written") from error


def _cause(text: str) -> str:
    """The innermost "Caused by" of a Java stack trace; without one, its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or ["its JVM went away"])[-1 if causes else 0]


@contextlib.contextmanager
def _connected(gateway: Gateway) -> Iterator[SparkSession]:
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # When a JVM is killed under it, py4j tells the log what our own error already says.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    interrupt = signal.getsignal(signal.SIGINT)
    link = None
    try:
        with _told_to_pyspark(gateway):
            link = launch_gateway()  # type: ignore[no-untyped-call]
        spark = SparkSession(SparkContext(gateway=link))
        yield spark
        spark.stop()
    finally:
        signal.signal(signal.SIGINT, interrupt)
        # PySpark keeps its gateway for the life of the process; ours dies now, and a next session needs its own.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        if link is not None:
            link.shutdown()


@contextlib.contextmanager
def _told_to_pyspark(gateway: Gateway) -> Iterator[None]:
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.secret}
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
