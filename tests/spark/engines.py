"""Real Spark servers: a Spark Connect server, a standalone cluster, and a client that has only the small client.

Neither server has a file system: kquota sends the data to it. Both end with this process, even if it is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kquota import folders, java
from kquota.sandbox.servers import free_ports
from kquota.spark import jvm

BLIND: Final = ("--conf", "spark.hadoop.fs.file.impl=no.such.FileSystem")
_HOST: Final = "127.0.0.1"
_REPOSITORY: Final = Path(__file__).parents[2]
_PATIENCE: Final = 120.0
# The shell reads this pipe to its end, and then stops the server.
_LIVES_WITH_US: Final = '"$@" </dev/null & server=$!; cat >/dev/null; kill -9 $server'


@contextlib.contextmanager
def _server(folder: Path, name: str, port: int, *words: str) -> Iterator[None]:
    spark, found = jvm.home(), java.find()
    own = {**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": _HOST, "SPARK_SCALA_VERSION": "2.13"}
    command = [str(found.executable), "-cp", f"{spark}/jars/*", "-Xmx768m", *jvm.MODULE_OPTIONS, *jvm.QUICK, *words]
    with (folder / f"{name}.log").open("wb") as log:
        keeper = subprocess.Popen(
            ["sh", "-c", _LIVES_WITH_US, "sh", *command],
            cwd=folder,
            env=own | {"JAVA_HOME": str(found.home)},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(port, folder / f"{name}.log")
        yield
    finally:
        keeper.communicate()


def _await(port: int, log: Path) -> None:
    give_up = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        assert time.monotonic() < give_up, jvm.last_words(log)
        time.sleep(0.05)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server."""
    folder, (port,) = tmp_path_factory.mktemp("connect-server"), free_ports(1)
    words = (
        "org.apache.spark.deploy.SparkSubmit",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    )
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": _HOST,
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
    }
    conf = (word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))
    with _server(folder, "connect", port, *words, *conf, *BLIND, "spark-internal"):
        yield f"sc://{_HOST}:{port}"


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone cluster with a master and one worker of one core."""
    folder, (port, worker) = tmp_path_factory.mktemp("standalone"), free_ports(2)
    at = ("--host", _HOST, "--webui-port", "0", "--port")
    address = f"spark://{_HOST}:{port}"
    own = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder))
    with (
        _server(folder, "master", port, "org.apache.spark.deploy.master.Master", *at, str(port)),
        _server(folder, "worker", worker, "org.apache.spark.deploy.worker.Worker", *at, str(worker), *own, address),
    ):
        yield address


@pytest.fixture(scope="session")
def small_client() -> str:
    """A Python with kquota[connect] and without Spark, created once and kept in the cache."""
    wanted = hashlib.sha256((_REPOSITORY / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()[:16]
    place = folders.cache(os.environ) / "tests" / f"connect-{wanted}"
    python = str(place / "bin" / "python")
    place.parent.mkdir(parents=True, exist_ok=True)
    # Several workers may need it: one creates it, and the others wait.
    with (place.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            if os.environ.get("KQUOTA_OFFLINE") == "1":
                pytest.skip("KQUOTA_OFFLINE=1, and Spark Connect's client is not in the cache")
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", f"{_REPOSITORY}[connect]"], check=True)
            # The code is the current one, not the code at the time of the installation.
            subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "kquota"], check=True)
            (place / "complete").touch()
    return python
