"""Spark crashes, runs out of memory or has no disk space: kquota prints one line with the next step."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kquota.cli.contract import worded
from kquota.errors import Refused
from kquota.spark.engine import Engine
from kquota.spark.failure import cause, in_one_line
from tests.cli.run import run

JOB = """
import os, pathlib, signal, sys
from kquota.errors import KquotaError
from kquota.spark.engine import engine
from kquota.spark.files import Files
from kquota.spark.session import session

folder, what = pathlib.Path(sys.argv[1]), sys.argv[2]
nothing, conf = Files(folder=folder, names={}), ["spark.driver.memory=512m"]
try:
    with session(folder, nothing, lambda _: None, engine=engine(None, None, conf)) as spark:
        if what == "killed":
            os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        if what == "memory":
            spark.sql("SELECT max(size(sequence(1, 200000000 + id))) FROM range(2)").collect()
        print(spark.range(4_000_000).repartition(2, "id").selectExpr("sum(id)").collect())
except KquotaError as error:
    print(error)
"""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
"""
# As py4j does when the connection is reset while it waits: on the root logger, from a module of that name.
LOGGED = """
import logging, pathlib, sys
from kquota.spark.files import Files
from kquota.spark.session import session

folder = pathlib.Path(sys.argv[1])
with session(folder, Files(folder=folder, names={}), lambda _: None):
    exec(compile("logging.exception('Exception while sending command.')", sys.argv[2], "exec"))
    logging.error("another's")
"""
FAILURES = {
    "killed": "Spark's JVM ended: it was killed (SIGKILL), by a user, or by the kernel because memory ran out. ",
    "memory": "Spark's JVM ended: it ran out of memory. Give Spark more memory with conf spark.driver.memory=8g. ",
    "disk": "File too large. Spark's temporary files, in TMPDIR (default /tmp), exceed the maximum file size",
}


CAUSES = {
    "one line": ("no such table", "no such table"),
    "nothing": ("", "no reason was reported"),
    "Java": ("a: b\n\tat x.Y\nCaused by: c: d\n\tat x.Z\nCaused by: e: f\n\t... 9 more\n", "e: f"),
    "Python in Java": (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "worker.py", line 9, in process\n    run()\nValueError: too few columns\n\tat x.Y\n',
        "ValueError: too few columns",
    ),
    "Python on a server": (
        "[UDTF_EXEC_ERROR] failed: Traceback (most recent call last):\n"
        "ValueError: too few columns\n SQLSTATE: 38000\n\tat x.Y\n",
        "ValueError: too few columns",
    ),
}


@pytest.mark.parametrize(("text", "told"), CAUSES.values(), ids=CAUSES)
def test_the_cause(text: str, told: str) -> None:
    assert cause(text) == told


ON_A_SERVER = {
    "java.lang.OutOfMemoryError: Java heap space": "Start the Spark Connect server with more memory",
    "java.io.IOException: No space left on device": "Free space there, or change spark.local.dir of the server",
    "java.io.IOException: File too large": "Start the server with a higher `ulimit -f`",
}


@pytest.mark.parametrize(("text", "step"), ON_A_SERVER.items())
def test_the_advice_for_a_server_is_not_about_this_machine(text: str, step: str) -> None:
    with pytest.raises(Refused) as raised, in_one_line(None, Engine(remote="sc://h:1")):
        raise ConnectionError(text)
    said = worded(raised.value)
    assert said.startswith(f"Spark could not finish: {text}. ")
    assert step in said
    assert not any(here in said for here in ("TMPDIR", "--conf"))


@pytest.mark.spark
@pytest.mark.parametrize(("what", "told"), FAILURES.items(), ids=FAILURES.keys())
def test_one_line(tmp_path: Path, what: str, told: str) -> None:
    script = LIMITED + JOB if what == "disk" else JOB
    ran = run([sys.executable, "-c", script, str(tmp_path), what])
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert told in ran.out
    assert ran.out.endswith(". Nothing was written\n")


@pytest.mark.spark
def test_errors_that_py4j_logs_are_not_printed(tmp_path: Path) -> None:
    ran = run([sys.executable, "-c", LOGGED, str(tmp_path), java_gateway()])
    assert (ran.code, ran.err, ran.out) == (0, "ERROR:root:another's\n", "")


def java_gateway() -> str:
    """The module that logs it, which still has this name."""
    found = find_spec("py4j")
    assert found is not None and found.origin is not None
    module = Path(found.origin).with_name("java_gateway.py")
    assert "logging.exception(" in module.read_text()
    return str(module)
