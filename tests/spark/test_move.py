"""`kquota move estimate` for operators and scripts: exit code, stdout and stderr together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.rows import log_dirs, row, written

PLAN = '{"version":1,"partitions":[{"topic":"my-topic","partition":0,"replicas":[1,3]}]}'
MB = 10**6
ASSUMED = """kquota: starting Spark ...
kquota: moving partitions for which the sizes show no leader: 1. Assumed leader: the first broker in the plan that \
already holds the partition, otherwise the holder with the lowest broker id
kquota: moving partitions with replicas whose in-sync state is unknown: 1. Assumed: these replicas are in sync
"""
KEPT_UP = """Expected     about 43 s
90% band     38 s to 49 s (only the error of the model, because the percentiles of the write rates are unknown)
Can finish   yes
Bottleneck   broker 1, which sends 91 MB
Throttle     8 MB/s (8000000 bytes per second) on each broker

MoveRatio    1 = 1 partition to be moved / 1 partition
MoveTime     36 s = 1 MoveRatio
               x 60.7 MB TotalLogSizePerBroker x 3 brokers
               / (8 MB/s replication-quota - 3 MB/s max BytesInPerSec) (KIP-73, one copy at a time)
IN < T       3 MB/s < 8 MB/s: holds (KIP-73, for the whole cluster; for this move see Window)

Sizes        log-dirs, sizes.txt
Write rates  --bytes-in; a broker's rate is divided among the partitions that it leads, by size
To copy      91 MB in 1 copy

  broker         copies    bytes    followers    for copies    writes    time
       1  out         1    91 MB       3 MB/s        5 MB/s    3 MB/s    40 s
       3  in          1    91 MB                  7.33 MB/s    3 MB/s    19 s
  (followers: fetches of in-sync followers of the moving partitions, counted but never delayed)

Time         43 s = 3.1 s to start and end + 40 s to copy: 8.52 MB at once, then the rest at 100% of the throttle
               broker 1: 5 MB/s left for copies, minus 3 MB/s written meanwhile
At least     10 s = (bytes - bytes at once) / throttle

Window       T above        3 MB/s  IN, the highest write rate of one broker (KIP-73)
             T above        6 MB/s  follower traffic + writes to copies, on one broker
Fetch size   3 brokers x 10.5 MB / 24 MB/s = 1.31 s < 11 s window: holds (KIP-73, with Kafka's defaults)

Disk         not checked on broker 3, because the source of sizes has no disk sizes

Other throttles
      4 MB/s  never
      6 MB/s  never
      8 MB/s  43 s
     12 MB/s  15 s
     16 MB/s  8.91 s
     40 MB/s  3 s
"""


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kquota", "move", "estimate", "--reassignment-json-file", "plan.json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    held = {"my-topic-0": 91 * MB}
    (tmp_path / "sizes.txt").write_text(log_dirs((1, held), (2, held), (3, {})))
    (tmp_path / "plan.json").write_text(PLAN)
    return tmp_path


@pytest.mark.spark
def test_the_text_of_an_estimate(folder: Path) -> None:
    assert run(folder, "--log-dirs", "sizes.txt", "--throttle", "8MB/s", "--bytes-in", "1=3MB/s") == (
        0,
        KEPT_UP,
        ASSUMED,
    )


@pytest.mark.spark
def test_a_move_that_never_finishes_exits_1_with_the_reason(folder: Path) -> None:
    words = ("--log-dirs", "*.txt", "--throttle", "5MB/s", "--bytes-in", "1=3MB/s", "--output", "json")
    code, out, err = run(folder, *words)
    assert (code, err) == (
        1,
        ASSUMED + "kquota: error: the move can never finish (throttle 5 MB/s). Give a --throttle above 6 MB/s\n",
    )
    document = json.loads(out)
    assert document["refused"].startswith("the move can never finish: broker 1 has 2 MB/s left for the copies")
    assert document["kip73"]["in_below_throttle"] is True
    assert {key: document[key] for key in ("version", "feasible", "throttle_must_exceed", "expected_seconds")} == {
        "version": 1,
        "feasible": False,
        "throttle_must_exceed": 6 * MB,
        "expected_seconds": None,
    }
    assert document["bottleneck"] == {"broker": 1, "side": "leader"}


@pytest.mark.spark
def test_a_snapshot_without_write_rates_and_a_throttle_without_a_unit(folder: Path) -> None:
    rows = [row(b, "my-topic", 0, 91 * MB, leader=b == 2, in_sync=True) for b in (1, 2)]
    written(folder / "s.jsonl.gz", rows)
    code, out, err = run(folder, "--history", "s.jsonl.gz", "--throttle", "10000")
    assert code == 0
    assert err == (
        "kquota: warning: --throttle 10000 is 10 kB/s. If a unit is missing, write 10000kB/s or 10000MB/s\n"
        "kquota: starting Spark ...\n"
        "kquota: the plan names brokers that the sizes do not contain: 3. Assumed: they are empty\n"
    )
    assert "MoveTime     unknown" in out
    assert "Bottleneck   broker 2, which sends 91 MB (if nothing is written)\n" in out
    assert out.startswith("Expected     unknown; about 2 h 43 min if nothing is written meanwhile\n")
    assert "Can finish   not checked, because the write rates are unknown\n" in out
    assert "Other throttles (if nothing is written)\n      5 kB/s  5 h 27 min\n" in out


@pytest.mark.spark
def test_nothing_to_move(folder: Path) -> None:
    (folder / "plan.json").write_text(PLAN.replace("[1,3]", "[2,1]"))
    code, out, _ = run(folder, "--log-dirs", "sizes.txt", "--throttle", "8MB/s")
    assert (code, out.splitlines()[0]) == (0, "Nothing to copy: every replica of the plan is where it should be.")


SIZES = ("--log-dirs", "sizes.txt")
WRONG = {
    "rate 0": ([*SIZES, "--throttle", "0"], "--throttle '0': a rate must be at least 1 byte per second"),
    "unknown unit": ([*SIZES, "--throttle", "5MX"], "--throttle '5MX': unknown unit 'MX'"),
    "NaN": ([*SIZES, "--throttle", "NaN"], "--throttle 'NaN' is not a positive number"),
    "bytes-in without a broker": (
        [*SIZES, "--throttle", "5MB/s", "--bytes-in", "3MB/s"],
        "--bytes-in '3MB/s': is not a broker id with a rate",
    ),
    "bytes-in twice": (
        [*SIZES, "--throttle", "5MB/s", "--bytes-in", "1=1", "--bytes-in", "1=2"],
        "broker 1 already has a rate",
    ),
    "neither throttle nor deadline": (
        SIZES,
        "no throttle and no deadline is given. Give --throttle RATE or --deadline TIME",
    ),
    "an impact without a network": (
        [*SIZES, "--deadline", "1h", "--max-impact", "30%"],
        "--max-impact: the network bandwidth is missing",
    ),
    "no percentage": (
        [*SIZES, "--deadline", "1h", "--nic", "1GB/s", "--max-impact", "0.3"],
        "--max-impact '0.3': write a percentage",
    ),
    "no time": ([*SIZES, "--deadline", "soon"], "--deadline 'soon' is not a positive number, with or without a unit"),
    "no such file": (["--log-dirs", "x", "--throttle", "5MB/s"], "--log-dirs x: the file does not exist"),
    "no sizes": (
        ["--throttle", "5MB/s"],
        "no source of sizes is given. Give --bootstrap-server HOST:PORT, --cluster NAME, --log-dirs FILE",
    ),
    "two sources of sizes": (
        [*SIZES, "--bootstrap-server", "localhost:1", "--throttle", "5MB/s"],
        "two sources of sizes are given: --log-dirs and a live cluster. Give only one of them",
    ),
    "no such history": (
        [*SIZES, "--history", "h", "--throttle", "5MB/s"],
        "--history h: the file or folder does not exist",
    ),
    "a window of nothing": (
        [*SIZES, "--history-window", "7d", "--throttle", "5MB/s"],
        "--history-window needs a history",
    ),
    "bytes-in, a file that is none": (
        [*SIZES, "--throttle", "5MB/s", "--bytes-in", "plan.json"],
        "--bytes-in plan.json: 'version' is not a broker id",
    ),
    "two ways to cut": (
        [*SIZES, "--throttle", "5MB/s", "--waves", "2", "--max-in-flight", "1GB"],
        "--waves and --max-in-flight cannot be combined",
    ),
    "no waves": ([*SIZES, "--throttle", "5MB/s", "--waves", "0"], "--waves 0: not a valid number of waves"),
}


@pytest.mark.parametrize(("words", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_prints_one_line_before_spark_starts(folder: Path, words: list[str], complaint: str) -> None:
    code, out, err = run(folder, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("kquota: error: ")
    assert complaint in err


def test_a_malformed_plan_prints_one_line_before_spark_starts(folder: Path) -> None:
    (folder / "plan.json").write_text('{"version":1,')
    code, out, err = run(folder, *SIZES, "--throttle", "5MB/s")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("kquota: error: plan.json: line 1 column ")


@pytest.mark.spark
def test_a_file_that_is_damaged_far_from_its_start_prints_one_line(folder: Path) -> None:
    """Only Spark reads that far, so only Spark can find it."""
    file = folder / "history.jsonl.gz"
    written(file, [row(n % 3 + 1, "my-topic", n, n * n % 9973) for n in range(20_000)])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    code, out, err = run(folder, "--history", "history.jsonl.gz", "--throttle", "8MB/s")
    assert (code, out) == (1, "")
    assert err == (
        "kquota: starting Spark ...\n"
        "kquota: error: Spark could not finish: java.io.EOFException: Unexpected end of input stream. "
        "Nothing was written\n"
    )


@pytest.mark.spark
def test_the_minimum_throttle_for_a_deadline_and_the_remaining_bandwidth(folder: Path) -> None:
    limits = ("--deadline", "60s", "--nic", "100MB/s", "--max-impact", "30%", "--output", "json")
    code, out, err = run(folder, *SIZES, "--bytes-in", "1=3MB/s", *limits)
    assert code == 0, err
    document = json.loads(out)
    assert document["expected_seconds"] <= 60
    assert document["throttle"] == document["window"]["above"][-1]["rate"] == 7_412_154
    assert [bound["rate"] for bound in document["window"]["below"]] == [98.5 * MB, 30 * MB]
    assert (document["window"]["empty"], document["window"]["broken"]) == (False, [])
    assert document["fetch"]["holds"] is True


@pytest.mark.spark
def test_a_deadline_that_the_network_cannot_meet_exits_1_with_the_reason(folder: Path) -> None:
    limits = ("--deadline", "10s", "--nic", "50MB/s", "--max-impact", "20%")
    code, out, err = run(folder, *SIZES, "--bytes-in", "1=3MB/s", *limits)
    assert code == 1
    assert "empty: no throttle meets all bounds" in out
    assert err.endswith(
        "error: no throttle is within the limits: the throttle must be at most 10 MB/s (--max-impact, 20% of --nic) "
        "and at least 14.8 MB/s (the deadline, 10 s). Change a limit\n"
    )


@pytest.mark.spark
def test_an_operators_own_limits_exit_1_after_the_estimate(folder: Path) -> None:
    limits = ("--throttle", "50MB/s", "--deadline", "1s")
    code, out, err = run(folder, *SIZES, "--bytes-in", "1=3MB/s", *limits)
    assert (code, "Deadline     1 s: missed\n" in out) == (1, True)
    assert "error: the deadline, 1 s, is missed: the expected time is " in err
    impact = ("--throttle", "50MB/s", "--nic", "100MB/s", "--max-impact", "20%")
    code, out, err = run(folder, *SIZES, "--bytes-in", "1=3MB/s", *impact)
    assert (code, "--max-impact, 20% of --nic: NOT MET\n" in out) == (1, True)
    assert err.endswith(
        "error: the throttle is 50 MB/s, but it must be at most 20 MB/s (--max-impact, 20% of --nic). "
        "Give a lower --throttle\n"
    )
