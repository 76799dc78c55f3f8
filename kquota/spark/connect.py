"""A connection to a Spark Connect server without a local JVM. The server cannot see local files."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kquota.errors import Invalid, Parameter, Refused, Unreachable
from kquota.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READY_SECONDS: Final = 10.0
_NEEDED: Final = ("pyspark", "grpc", "pandas", "pyarrow")
_OURS: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "MASTER")


@contextlib.contextmanager
def starting(engine: Engine, options: Mapping[str, str]) -> Iterator[Callable[[], SparkSession]]:
    """Yield a function that connects, and that sets `options` and the operator's settings for its session. The session
    ends with the block. In the block, the environment lacks Spark's variables that could redirect the connection.

    Raises Refused if the client is not installed. The function raises Unreachable if the server does not answer, and
    Invalid if the address is invalid, or if the server rejects the connection or a setting.
    """
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise Refused(
            Parameter("spark_remote"),
            f" needs the client of Spark Connect (missing: {', '.join(missing)}). In an environment without Spark, "
            "run: pip install 'kquota[connect]'. In an environment with Spark, run: pip install 'pyspark[connect]'",
        )
    before = {name: os.environ.pop(name) for name in _OURS if name in os.environ}
    opened: list[SparkSession] = []

    def connect() -> SparkSession:
        spark = _connected(engine, options)
        opened.append(spark)
        return spark

    try:
        yield connect
    finally:
        for spark in opened:
            with contextlib.suppress(Exception):
                spark.stop()
        for name in _OURS:
            os.environ.pop(name, None)
        os.environ |= before


def _connected(engine: Engine, options: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException

    assert engine.remote is not None
    logging.getLogger("pyspark.sql.connect").setLevel(logging.CRITICAL)
    # PySpark's warnings about the pandas version are hidden, because they do not help an operator.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    try:
        _await(engine.remote, engine.name)
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark: SparkSession = SparkSession.builder.remote(engine.remote).create()
    except PySparkException as error:
        raise Invalid(Parameter("spark_remote"), f" {engine.name!r}: {str(error).splitlines()[0]}") from error
    # Retry only a few times, because kquota must report a stopped server as quickly as a missing one.
    spark.client.set_retry_policies([DefaultPolicy(max_retries=6)])
    _set(spark, {"spark.sql.session.timeZone": "UTC", **options, **engine.conf})
    return spark


def _await(remote: str, name: str) -> None:
    """Wait until the server answers. Raises Unreachable after 10 s, because the client would retry for ten minutes."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_READY_SECONDS)
    except grpc.FutureTimeoutError as error:
        raise Unreachable(
            f"no Spark Connect server answered at {name} within {_READY_SECONDS:.0f} s. Check the address, the port "
            "(default 15002) and TLS (;use_ssl=true), that the server is running, and that no firewall blocks it"
        ) from error
    finally:
        channel.close()


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    from pyspark.errors import PySparkException

    for key, value in settings.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            refusal = f" {key}: the server refuses it: {str(error).splitlines()[0]}"
            raise Invalid(Parameter("conf"), refusal) from error
