"""Spark's JVM: started like Spark's own launcher starts it, silent, and never left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from kquota import java
from kquota.errors import Refused
from kquota.spark import jvm

RUN = """
import sys, pathlib
from kquota.spark.files import Files
from kquota.spark.session import session
folder = pathlib.Path(sys.argv[1])
with session(folder, Files(folder=folder, names={}), lambda line: print(line, file=sys.stderr)) as spark:
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(pid, flush=True)
    sys.stdin.read()
"""


def test_the_options_are_those_of_sparks_own_launcher() -> None:
    (jar,) = (jvm.home() / "jars").glob("spark-launcher_*.jar")
    with zipfile.ZipFile(jar) as archive:
        compiled = archive.read("org/apache/spark/launcher/JavaModuleOptions.class")
    theirs = {option.decode() for option in re.findall(rb"-(?:-|XX:|D)[\w.:/=+-]+", compiled)}
    assert theirs - {"--add-modules=jdk.incubator.vector"} == set(jvm.MODULE_OPTIONS)


def test_without_pyspark_the_error_names_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(Refused, match=re.escape("pip install 'kquota[spark]'")):
        jvm.home()


def test_the_error_of_a_jvm_that_does_not_start_has_the_reason(tmp_path: Path) -> None:
    complaint = r"ended while starting: code 1: .*Too small maximum heap"
    with jvm.jvm({}, ["-Xmx1"], tmp_path) as started, pytest.raises(Refused, match=complaint):
        started.gateway()


FAKE_JAVA = """#!/bin/sh
if [ "$2" = -version ]; then
  printf '    java.home = %s\\n    java.specification.version = 21\\n' "$JAVA_HOME" >&2
else
  echo "$2 $HADOOP_CONF_DIR"
fi
"""


@pytest.mark.parametrize("given", ["conf", "conf:/etc/hadoop", "/etc/hadoop"])
def test_a_relative_hadoop_configuration_is_in_the_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (tmp_path / "home" / "bin").mkdir(parents=True)
    fake = tmp_path / "home" / "bin" / "java"
    fake.write_text(FAKE_JAVA)
    fake.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    monkeypatch.delenv("KQUOTA_JAVA", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HADOOP_CONF_DIR", given)
    monkeypatch.chdir(tmp_path)
    found = re.sub("^conf", f"{tmp_path}/conf", given)
    with jvm.jvm({}, [], tmp_path / "scratch") as started, pytest.raises(Refused) as refused:
        started.gateway()
    assert f"{jvm.home()}/jars/*:{found} {found}" in str(refused.value)


def start(folder: Path, **environment: str) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def has_ended(pid: int) -> bool:
    """True if a process ends within 60 s. A zombie that was not reaped has also ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.spark
@pytest.mark.parametrize("which", [pytest.param("own", id="any Java"), pytest.param("bundled", id="the wheel's Java")])
def test_a_session_is_silent_and_leaves_nothing(tmp_path: Path, which: str) -> None:
    if which == "bundled":
        assert java.find().version >= java.OLDEST
    process, pid = start(tmp_path, KQUOTA_JAVA=which)
    out, err = process.communicate("")
    assert (process.returncode, out, err) == (0, "", "starting Spark ...\n")
    assert has_ended(pid)


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_the_jvm_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    process, pid = start(tmp_path)
    # A terminal sends Ctrl-C to the whole process group, which does not include the JVM.
    os.killpg(process.pid, number)
    process.communicate()
    assert has_ended(pid)
