"""`kquota move plan` for operators: goldens of the answer, wrong usage, and a real broker that is drained."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from kquota.cli.formats import document
from kquota.cli.move.plan.answer import MovePlan, plan_document
from kquota.cli.move.plan.explanation import explain
from kquota.cli.move.plan.log_dirs import explain_log_dirs, log_dirs_document
from kquota.errors import Invalid
from kquota.pace.log_dir_copy import LogDirPace, LogDirWork
from kquota.placement.cluster import ClusterLayout, Disk
from kquota.placement.goal import Goal
from kquota.placement.log_dir_balance import balanced
from kquota.placement.planned import LeftPartition
from kquota.placement.planner import plan
from kquota.reassign.plan import read
from kquota.sandbox.cluster import Sandbox as Servers
from kquota.sizes import snapshot
from kquota.sizes.replica import Cordon, cordons
from kquota.terms import BrokerId, TopicPartition
from tests.cli.run import kquota
from tests.placement.clusters import goal, ids, small
from tests.placement.test_log_dir_balance import GOAL, disks, held
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

GOLDEN = Path(__file__).parent / "golden"
GB = 10**9
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
MIXED = small(
    [[1, 3], [3, 1], [2, 4], [4, 2], [1, 2], [3, 4, 5], [4], [5]],
    sizes=[40 * GB, 30 * GB, 25 * GB, 60 * GB, 5 * GB, 1 * GB, 2 * GB, 0],
    brokers=(1, 2, 3, 4, 5),
    racks=RACKS,
    dead=[5],
    disks={1: (200 * GB, 90 * GB), 2: (200 * GB, 95 * GB), 3: (300 * GB, 80 * GB), 4: (200 * GB, 100 * GB)},
)
CORDONED = replace(
    MIXED,
    brokers={
        **MIXED.brokers,
        BrokerId(1): replace(
            MIXED.brokers[BrokerId(1)],
            cordon=Cordon(broker=BrokerId(1), log_dirs=("/data/b",), whole=False),
            open_disk=Disk(total=160 * GB, used=50 * GB),
        ),
        BrokerId(3): replace(
            MIXED.brokers[BrokerId(3)], cordon=Cordon(broker=BrokerId(3), log_dirs=("/data/a", "/data/b"), whole=True)
        ),
    },
)
NARROW = small([[1, 2]] * 30, sizes=[10 * GB] * 30, brokers=(1, 2, 3))
UNEVEN = small([[1, 2, 3]] * 6, sizes=[10 * GB] * 6, brokers=(1, 2, 3, 4), racks={1: "a", 2: "b", 3: "c", 4: "a"})
TOLD: dict[str, tuple[ClusterLayout, Goal, bool]] = {
    "move-plan-drain": (MIXED, goal(MIXED, drain=ids(4)), False),
    "move-plan-all-goals": (
        MIXED,
        goal(MIXED, drain=ids(5), replication_factor=2, repair_racks=True, balance=True),
        False,
    ),
    "move-plan-cordoned": (
        CORDONED,
        goal(CORDONED, brokers=frozenset(CORDONED.accepting), drain=ids(4)),
        False,
    ),
    "move-plan-nothing": (MIXED, goal(MIXED, replication_factor=2, topics=frozenset()), False),
    "move-plan-two-brokers-in-a-rack": (UNEVEN, goal(UNEVEN, add=ids(4)), False),
    "move-plan-first-20": (NARROW, goal(NARROW, replication_factor=3), False),
    "move-plan-explain": (NARROW, goal(NARROW, add=ids(3)), True),
}


@pytest.mark.parametrize("name", TOLD)
def test_the_text_and_the_json_document(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Compared with the file. REWRITE_GOLDEN=1 writes the file again, for review."""
    cluster, wanted, everything = TOLD[name]
    found = plan(cluster, wanted)
    explain(cluster, wanted, found, "a test", file=None, everything=everything)
    answer = MovePlan(plan=found.plan, values=lambda: plan_document(cluster, wanted, found, "a test"))
    told = json.dumps(json.loads(document(answer)))
    seen = f"--- stderr\n{capsys.readouterr().err}--- document\n{told}\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN") == "1":
        path.write_text(seen)
    assert seen == path.read_text()


def test_the_tables_fit_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("kquota.cli.move.plan.explanation.terminal_width", lambda stream: 80)
    cluster, wanted, everything = TOLD["move-plan-all-goals"]
    explain(cluster, wanted, plan(cluster, wanted), "a test", file=None, everything=everything)
    tables = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("kquota: ")]
    assert [line.split()[0] for line in tables if line.endswith(("why", "worst"))] == ["partition", "broker"]
    assert max(map(len, tables)) <= 80


def test_only_the_first_20_different_reasons_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    cluster, wanted, _ = TOLD["move-plan-drain"]
    left = tuple(LeftPartition(partition=TopicPartition("t", n), why=f"stays {n}") for n in range(25))
    found = replace(plan(cluster, wanted), left=left)
    for everything, shown, more in ((False, 20, 1), (True, 25, 0)):
        explain(cluster, wanted, found, "a test", file=None, everything=everything)
        seen = capsys.readouterr().err
        assert (seen.count("warning: t-"), seen.count("... and 5 more reasons. To show all, give")) == (shown, more)


SEVERAL = disks(
    [30 * GB, 30 * GB, 20 * GB, 40 * GB],
    [10 * GB],
    [],
    [5 * GB],
    volumes=[(200 * GB, 70 * GB), (300 * GB, 250 * GB), None, None],
)
WITHIN = {
    "move-plan-log-dirs": (
        [*SEVERAL[:2], replace(SEVERAL[2], error="KafkaStorage (56)"), replace(SEVERAL[3], cordoned=True)],
        50_000_000,
        GOAL,
    ),
    "move-plan-log-dirs-many": (disks([1 * GB] * 50, []), None, GOAL),
    "move-plan-log-dirs-outside": (disks([90 * GB], [], []), 50_000_000, GOAL),
    "move-plan-log-dirs-nothing": (disks([GB], [GB]), 50_000_000, GOAL),
    "move-plan-log-dirs-zero": (disks([9 * GB] * 5, []), 0, GOAL),
}


@pytest.mark.parametrize("name", WITHIN)
def test_the_text_and_the_json_document_within_a_broker(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Compared with the file. REWRITE_GOLDEN=1 writes the file again, for review."""
    dirs, throttle, wanted = WITHIN[name]
    found = balanced(wanted, dirs, held(dirs))
    pace = LogDirPace(work=LogDirWork(broker=1, copies=len(found.moves), bytes=found.bytes), throttle=throttle)
    explain_log_dirs(found, pace, cordons(dirs), file="my plan.json", everything=False)
    answer = MovePlan(plan=found.plan, values=lambda: log_dirs_document(wanted, found, pace, cordons(dirs)))
    told = json.dumps(json.loads(document(answer)))
    seen = f"--- stderr\n{capsys.readouterr().err}--- document\n{told}\n"
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN") == "1":
        path.write_text(seen)
    assert seen == path.read_text()


def test_the_tables_within_a_broker_fit_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kquota.cli.move.plan.log_dirs.terminal_width", lambda stream: 75)
    dirs, throttle, wanted = WITHIN["move-plan-log-dirs-many"]
    found = balanced(wanted, dirs, held(dirs))
    pace = LogDirPace(work=LogDirWork(broker=1, copies=len(found.moves), bytes=found.bytes), throttle=throttle)
    explain_log_dirs(found, pace, (), file=None, everything=False)
    tables = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("kquota: ")]
    assert [line.split()[0] for line in tables if line.rstrip().endswith(("to", "worst"))] == ["partition", "log"]
    assert max(map(len, tables)) <= 75


PLAN_FILE = """import sys
from kquota.cli.move.plan.explanation import plan_file
from kquota.cli.options import Output
print(plan_file(Output(sys.argv[1])), file=sys.stderr)
"""


def test_the_plan_file_is_the_one_that_stdout_goes_to(tmp_path: Path) -> None:
    def named(output: str, stdout: int | IO[str], folder: Path) -> str:
        words = [sys.executable, "-c", PLAN_FILE, output]
        return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, cwd=folder, text=True, check=True).stderr

    (tmp_path / "inside").mkdir()
    with (tmp_path / "my plan.json").open("w") as file:
        assert named("text", file, tmp_path) == "my plan.json\n"
        assert named("text", file, tmp_path / "inside") == f"{tmp_path / 'my plan.json'}\n"
        assert named("json", file, tmp_path) == "None\n"
        (tmp_path / "my plan.json").unlink()
        assert named("text", file, tmp_path) == "None\n"
    assert named("text", subprocess.PIPE, tmp_path) == "None\n"
    assert named("text", subprocess.DEVNULL, tmp_path) == "None\n"


WRONG = {
    "no goal": ([], "no goal is given"),
    "no percentage": (["--balance", "--tolerance", "10"], "--tolerance '10': write a percentage"),
    "more than all of a disk": (["--balance", "--disk-limit", "101%"], "--disk-limit '101%': write a percentage"),
    "an invalid disk size": (["--balance", "--disk", "2TBit"], "--disk '2TBit': unknown unit"),
    "a broker that is not a number": (["--drain", "a"], "--drain 'a': not a list of broker ids. Write broker ids"),
    "a broker id with too many digits": (["--drain", "9" * 5000], "Write broker ids joined by commas"),
    "no replica at all": (["--replication-factor", "0"], "--replication-factor"),
    "no cluster": (["--balance"], "no cluster is given"),
    "log dirs and another goal": (
        ["--balance-log-dirs", "1", "--drain", "3", "--history", "h"],
        "--balance-log-dirs cannot be combined with --drain, --history. Make two plans",
    ),
    "a throttle of log dirs without them": (
        ["--balance", "--replica-alter-log-dirs-throttle", "1MB/s"],
        "--replica-alter-log-dirs-throttle needs --balance-log-dirs",
    ),
    "log dirs of two brokers": (["--balance-log-dirs", "1,2"], "--balance-log-dirs"),
    "log dirs without a cluster": (["--balance-log-dirs", "1"], "no cluster is given"),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_usage_prints_one_line_and_exits_2(arguments: list[str], reason: str) -> None:
    ran = kquota("move", "plan", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("row", ["{}", "not JSON", '{"broker": 1}', "[]"])
def test_an_invalid_snapshot_is_reported_with_its_line(row: str) -> None:
    with pytest.raises(Invalid, match=r"h\.jsonl: line 1 is not a row of a snapshot"):
        snapshot.log_dirs([row], "h.jsonl")


@pytest.fixture
def hand(kafka_431: Servers) -> Iterator[OtherHand]:
    stage = OtherHand(kafka_431)
    yield stage
    stage.close()


@pytest.mark.kafka
def test_a_real_broker_is_drained(hand: OtherHand, tmp_path: Path) -> None:
    """Live sizes and a snapshot lead to the same plan.

    kquota executes it, and another client sees that broker 3 is empty.
    """
    topics = [
        hand.topic({0: [3], 1: [1]}),
        hand.topic({0: [1, 3], 1: [3, 2]}),
        hand.topic({0: [3, 1]}, size=300_000),
        hand.topic({0: [1, 2]}),
    ]
    at = ("--bootstrap-server", hand.servers.bootstrap)
    drain = ("move", "plan", *at, "--drain", "3", "--topics", ",".join(topics))
    found = kquota(*drain)
    assert found.code == 0, found.err
    path = tmp_path / "plan.json"
    path.write_text(found.out)
    assert {name.topic for name in read(path).targets} == set(topics[:3])

    assert kquota("log-dirs", *at, "--snapshot", str(tmp_path / "history")).code == 0
    assert kquota(*drain, "--history", str(tmp_path / "history")).out == found.out

    execute = (
        "reassign-partitions",
        *at,
        "--state-dir",
        str(tmp_path / "state"),
        "--reassignment-json-file",
        str(path),
    )
    assert kquota(*execute, "--execute").code == 0
    for name, replicas in read(path).targets.items():
        until(lambda name=name, replicas=replicas: hand.replicas(name) == list(replicas), f"{name} is on {replicas}")  # type: ignore[misc]
    until(lambda: not _held(hand, topics, BrokerId(3)), "broker 3 is empty")
    again = kquota(*drain)
    assert (again.code, again.out) == (0, "")
    assert "nothing to do" in again.err


def _held(hand: OtherHand, topics: list[str], broker: BrokerId) -> list[TopicPartition]:
    found = hand.admin.list_topics(timeout=10).topics
    return [
        TopicPartition(topic, number)
        for topic in topics
        for number, state in found[topic].partitions.items()
        if broker in state.replicas
    ]
