"""Spark dies, runs out of memory or finds no room: one line that says what and what to do, with no frame of the JVM."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
FAILURES = {
    "killed": "Spark's JVM went away: it was killed (SIGKILL), by somebody or by a kernel that is short of memory; ",
    "memory": "Spark's JVM went away: it ran out of memory; give it more, as --conf spark.driver.memory=8g; ",
    "disk": "File too large; Spark's scratch files are in TMPDIR (else /tmp), where files may not grow any more",
}


@pytest.mark.spark
@pytest.mark.parametrize(("what", "told"), FAILURES.items(), ids=FAILURES.keys())
def test_one_line(tmp_path: Path, what: str, told: str) -> None:
    script = LIMITED + JOB if what == "disk" else JOB
    ran = run([sys.executable, "-c", script, str(tmp_path), what])
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert told in ran.out
    assert ran.out.endswith("; nothing was written\n")
