"""The same job in a local JVM, on a cluster and on a Spark Connect server, and the errors that prevent it."""

from __future__ import annotations

import json
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kquota.cli.contract import worded
from kquota.errors import Invalid
from kquota.spark.engine import Engine, engine
from kquota.spark.jvm import jvm
from kquota.spark.master import own_address
from tests.cli.run import Ran, run
from tests.spark.engines import BLIND
from tests.spark.rows import log_dirs, row, written
from tests.spark.test_history import roll

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[2]
MOVED = [{"topic": "t", "partition": n, "replicas": [n % 3 + 1, 4]} for n in range(6)]


def estimate(python: str, folder: Path, *words: str) -> Ran:
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": MOVED}))
    command = [python, "-m", "kquota", "move", "estimate", "--reassignment-json-file", str(plan)]
    own = {"PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "default::FutureWarning"}
    return run([*command, "--throttle", "50MB/s", "--output", "json", *words], own)


def stored(folder: Path) -> list[str]:
    """Sizes in kafka-log-dirs' output, and the write rates of a history."""
    for broker in (1, 2, 3):
        held = {f"t-{n}": 10**6 * n for n in range(6) if n % 3 != broker - 1}
        (folder / f"{broker}.txt").write_text(log_dirs((broker, held)))
    history = folder / "history"
    history.mkdir()
    for hour, size in enumerate((10**6, 3 * 10**6)):
        rows = [row(1, "t", n, size, time=f"2026-11-21T0{hour}:00:00Z", end_offset=size, leader=True) for n in range(6)]
        written(history / f"{hour}.jsonl.gz", rows)
    return ["--log-dirs", str(folder / "*.txt"), "--bytes-in", "2=1MB/s", "--history", str(history)]


@pytest.mark.spark
def test_every_engine_gives_the_same_answer(
    spark: SparkSession, tmp_path: Path, connect_server: str, master: str, small_client: str
) -> None:
    """Neither the server nor the cluster can read a file, and the small client cannot run Spark."""
    words = stored(tmp_path)
    here = estimate(sys.executable, tmp_path, *words)
    assert here.code == 0, here.err
    cluster = estimate(
        sys.executable, tmp_path, *words, "--spark-master", master, "--conf", "spark.executor.memory=512m", *BLIND
    )
    assert (cluster.code, cluster.out) == (0, here.out), cluster.err
    assert cluster.err.replace(f"connecting to Spark ({master}) ...", "starting Spark ...") == here.err
    roll(spark, tmp_path / "rolling", tmp_path / "history")
    for snapshot in (tmp_path / "history").glob("*.jsonl.gz"):
        snapshot.unlink()
    there = estimate(small_client, tmp_path, *words, "--spark-remote", f"{connect_server}/;user_agent=a-secret")
    assert (there.code, there.out) == (0, here.out), there.err
    assert there.err.replace(f"connecting to Spark ({connect_server}) ...", "starting Spark ...") == here.err


@pytest.mark.spark
def test_a_refused_setting_and_a_job_that_needs_the_full_client(
    tmp_path: Path, connect_server: str, small_client: str
) -> None:
    words = stored(tmp_path)
    fixed = estimate(
        small_client, tmp_path, *words, "--spark-remote", connect_server, "--conf", "spark.sql.warehouse.dir=/x"
    )
    assert (fixed.code, fixed.out) == (2, "")
    assert "error: --conf spark.sql.warehouse.dir: the server refuses it: [CANNOT_MODIFY_STATIC_CONFIG]" in fixed.err
    here = estimate(small_client, tmp_path, *words)
    assert (here.code, here.out) == (1, "")
    assert here.err.endswith("install Spark in a separate environment with: pip install 'kquota[spark]'\n")


@pytest.mark.skipif(find_spec("grpc") is not None, reason="Spark Connect's client is here")
def test_without_the_small_client_the_extra_is_named(tmp_path: Path) -> None:
    ran = estimate(sys.executable, tmp_path, *stored(tmp_path), "--spark-remote", "sc://127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert "error: --spark-remote needs the client of Spark Connect (missing: grpc, pandas, pyarrow). " in ran.err
    assert "pip install 'kquota[connect]'" in ran.err


def test_an_unreachable_master_prints_one_line(tmp_path: Path) -> None:
    ran = estimate(sys.executable, tmp_path, *stored(tmp_path), "--spark-master", "spark://127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "kquota: error: no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused). "
        "Check the address, that the master is running, and that no firewall blocks the connection\n"
    )


PLACES = {
    "an empty label": "spark://.example.com:7077",
    "two dots": "spark://b1..example.com",
    "a long label": f"spark://{'x' * 64}:7077",
    "no host": "spark://:7077",
    "a port above all": "spark://localhost:65536",
    "port 0": "spark://localhost:0",
    "more digits than int() takes": f"spark://localhost:{'9' * 5_000}",
    "the second": "spark://127.0.0.1:1,b1..example.com:7077",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_an_invalid_master_address(place: str) -> None:
    with pytest.raises(Invalid, match=r"^spark_master: '.*' is not HOST:PORT\. Write spark://HOST:PORT$"):
        own_address(Engine(master=place))


def test_a_silent_server_prints_one_line(tmp_path: Path, small_client: str) -> None:
    """It listens and never answers: the wait ends."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"sc://127.0.0.1:{mute.getsockname()[1]}"
        ran = estimate(small_client, tmp_path, *stored(tmp_path), "--spark-remote", f"{address}/;token=s3cret")
    assert (ran.code, ran.out) == (1, "")
    assert f"error: no Spark Connect server answered at {address} within 10 s. " in ran.err
    assert "s3cret" not in ran.err


WRONG = {
    "both": (("spark://h:1", "sc://h"), [], "give --spark-master or --spark-remote, not both"),
    "no master": (("h:7077", None), [], "--spark-master 'h:7077': not a Spark master. Write spark://HOST:PORT"),
    "no server": ((None, "h:15002"), [], "--spark-remote 'h:15002': not a Spark Connect server. Write sc://HOST:PORT"),
    "no setting": ((None, None), ["spark.x"], "--conf 'spark.x': not a valid Spark setting"),
    "not Spark's": ((None, None), ["x=1"], "--conf 'x=1': not a valid Spark setting"),
    "twice": ((None, None), ["spark.x=1", "spark.x=2"], "spark.x is given twice"),
    "ours": ((None, None), ["spark.master=local"], "--conf spark.master: cannot be set. Use --spark-master"),
    "ours on a server": (
        (None, "sc://h"),
        ["spark.driver.extraJavaOptions=-Xss1m"],
        "spark.driver.extraJavaOptions: is fixed when a Spark Connect server starts",
    ),
    "the master of a server": ((None, "sc://h"), ["spark.master=local"], "Set it on the server"),
    "another server": ((None, "sc://h"), ["spark.remote=sc://x"], "spark.remote: cannot be set. Use --spark-remote"),
    "a server's": ((None, "sc://h"), ["spark.driver.memory=8g"], "is fixed when a Spark Connect server starts"),
}


@pytest.mark.parametrize(("where", "conf", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_invalid_engine_names(where: tuple[str | None, str | None], conf: list[str], complaint: str) -> None:
    with pytest.raises(Invalid) as refused:
        engine(*where, conf)
    assert complaint in worded(refused.value)


def test_remote_engines_receive_local_files() -> None:
    assert [Engine(master=m).local for m in (None, "local", "local[2]", "yarn", "spark://h:1")] == [True] * 3 + [
        False
    ] * 2
    assert not Engine(remote="sc://h").local
    assert Engine(remote="sc://h:1/;token=x").name == "sc://h:1"


def test_settings_are_not_visible_in_the_process_list(tmp_path: Path) -> None:
    """An access key in Spark's settings is passed in a file that only its owner can read."""
    with jvm({"spark.hadoop.fs.s3a.secret.key": "gehéim=\n"}, (), tmp_path) as started:
        conf = tmp_path / "spark.conf"
        assert conf.stat().st_mode & 0o077 == 0
        assert conf.read_text() == "spark.hadoop.fs.s3a.secret.key=geh\\u00e9im=\\u000a\n"
        assert b"s3a" not in Path(f"/proc/{started.pid}/cmdline").read_bytes()
