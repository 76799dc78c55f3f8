"""The master of a Spark cluster: whether it answers, the local address that it can reach, and its executors."""

from __future__ import annotations

import re
import socket
import time
from typing import TYPE_CHECKING, Final

from kquota.addresses import is_host, is_port
from kquota.errors import Invalid, Parameter, Refused, Unreachable
from kquota.spark.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_SECONDS: Final = 10.0
_EXECUTOR_SECONDS: Final = 60.0


def own_address(engine: Engine) -> str | None:
    """Return the local address at which a standalone master reaches this machine. None if only Spark knows it (yarn,
    k8s).

    The given masters are tried in order until one of them answers. Raises Unreachable if none answers, because Spark
    would retry for minutes. Raises Invalid if the address of a tried master is invalid.
    """
    assert engine.master is not None
    if not engine.master.startswith("spark://"):
        return None
    tried = []
    for place in engine.master.removeprefix("spark://").split(","):
        try:
            return _reached(place)
        except OSError as error:
            tried.append(f"{place}: {error.strerror or error}")
    raise Unreachable(
        f"no Spark master answers at {engine.master} ({'; '.join(tried)}). Check the address, that the "
        "master is running, and that no firewall blocks the connection"
    )


def _reached(place: str) -> str:
    """Return the local address of a connection to `place`, which is `HOST:PORT`, or `HOST` for port 7077."""
    host, _, port = place.rpartition(":") if re.search(r":[0-9]+$", place) else (place, ":", "7077")
    host = host.strip("[]")
    if not is_host(host) or not is_port(port):
        raise Invalid(Parameter("spark_master"), f": {place!r} is not HOST:PORT. Write spark://HOST:PORT")
    with socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS) as connection:
        return str(connection.getsockname()[0])


def await_executors(spark: SparkSession) -> None:
    """Wait until an executor exists. Raises Refused if none starts within 60 s, because Spark would wait forever."""
    context = spark.sparkContext
    deadline = time.monotonic() + _EXECUTOR_SECONDS
    # The driver also counts as an executor.
    while len(context._jsc.sc().statusTracker().getExecutorInfos()) < 2:
        if time.monotonic() > deadline:
            raise Refused(
                f"Spark's master {context.master} provided no executor within {_EXECUTOR_SECONDS:.0f} s. Check that "
                "its workers have free cores and memory (",
                Parameter("conf"),
                " spark.executor.memory=…), and can reach this machine",
            )
        time.sleep(0.1)
