"""Contracts of `move watch`: the table, the lines, JSON, exit codes, and the words of each finding."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.cli.output import plain
from kquota.cli.watching.answer import MovesWatched
from kquota.cli.watching.wording import MoveNamed, shown
from kquota.terms import BrokerId
from kquota.watch.link_pace import Trend
from kquota.watch.symptom import NotSubmitted, RunPaused, StarvedCopies, ThrottleSide, Undo
from kquota.watch.view import DestinationView, WatchedBroker, WatchedMoveView
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ZOOKEEPER, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.reassign.fake import Ticks
from tests.watch.fake import CopyingCluster
from tests.watch.stage import MB, brokers, name
from tests.watch.test_diagnosis import CASES

pytestmark = pytest.mark.unit


@pytest.fixture
def copying(house: InMemory) -> CopyingCluster:
    """Two partitions on brokers 1 and 2, and a cluster that copies while commands wait."""
    cluster = CopyingCluster(alive=set(brokers(1, 2, 3)))
    for number in range(2):
        cluster.partition(name(number), (1, 2), 60 * MB)
    house.cluster = cluster
    house.clock = Ticks(cluster.pass_seconds)
    return cluster


def drain(folder: Path) -> str:
    return plan(folder, {("orders", 0): [1, 3], ("orders", 1): [1, 3]})


def test_a_move_from_start_to_end(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    session.kquota(f"move watch {BROKER}")
    session.kquota(f"move watch {BROKER} --once --output json")
    file = drain(tmp_path)
    reassign(session, file, "--execute --throttle 4MB/s --force", ["text"])
    for form in ("text", "json"):
        session.kquota(f"move watch {BROKER} {file} --once --output {form}")
    session.kquota(f"move watch {ZOOKEEPER} {file} --once")
    for form in ("text", "json"):
        session.kquota(f"move status {BROKER} --output {form}")
    session.kquota(f"move watch {BROKER} --interval 8s")
    session.kquota(f"move watch {BROKER} {file} --output json")
    reassign(session, file, "--verify", ["text"])
    session.kquota(f"move watch {BROKER} {file}")
    session.must_be("contract-watch")


def test_execute_and_wait(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    file = drain(tmp_path)
    for form in ("text", "json"):
        reassign(session, file, "--execute --wait --throttle 4MB/s --force", [form])
        assert copying.configs == {}
        copying.partition(name(0), (1, 2), 60 * MB)
        copying.partition(name(1), (1, 2), 60 * MB)
    reassign(session, file, "--verify --wait", ["text"])
    session.must_be("contract-wait")


def test_execute_and_wait_interrupted_names_the_command_that_ends_the_run(
    house: InMemory, copying: CopyingCluster, tmp_path: Path
) -> None:
    def interrupted(seconds: float) -> None:
        if any(now.moving for now in copying.partitions.values()) and copying.configs:
            raise KeyboardInterrupt
        copying.pass_seconds(seconds)

    house.clock = Ticks(interrupted)
    plan_file = f"--reassignment-json-file {drain(tmp_path)}"
    ran = kquota_here(*f"reassign-partitions {BROKER} {plan_file} --execute --wait --throttle 4MB/s --force".split())
    verify = f"reassign-partitions {BROKER} --verify {plan_file}"
    assert ran.code == 130
    then = (
        f" undoes one of them. Running moves continue. Run `kquota {verify}` until it exits with 0: it then ends the "
        "run\n"
    )
    assert then in ran.err
    house.clock = Ticks(copying.pass_seconds)
    while (ran := kquota_here(*verify.split())).code == 8:
        house.clock.sleep(10)
    assert (ran.code, copying.configs) == (0, {})


def test_execute_and_wait_reads_a_pipe_once(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, Path(drain(tmp_path)).read_bytes())
    os.close(writer)
    asked = f"reassign-partitions {BROKER} --execute --wait --throttle 4MB/s --force --output json"
    ran = session.kquota(f"{asked} --reassignment-json-file /dev/fd/{reader}")
    os.close(reader)
    assert (ran.code, copying.configs) == (0, {})
    assert json.loads(ran.out.splitlines()[-1])["verdict"] == "done"


def test_wrong_options(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    file = drain(tmp_path)
    session.kquota(f"move watch {BROKER} --run nobody")
    session.kquota(f"move watch {BROKER} --run nobody {file}")
    session.kquota(f"move watch {BROKER} --interval 0.5s")
    session.kquota(f"move watch {BROKER} {tmp_path}/no-plan.json")
    session.must_be("contract-watch-refused")


def test_each_reading_is_one_json_document_on_a_line(
    copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    copying.submit({name(0): brokers(1, 3)})
    copying.throttle(5 * MB, (1, 2, 3))
    lines = session.kquota(f"move watch {BROKER} --interval 5s --output json").out.splitlines()
    left = [json.loads(line)["moves"][0]["left"] for line in lines]
    assert left == [60 * MB, 35 * MB, 10 * MB, 0]


def test_the_destination_of_another_tool_does_not_abort_our_run(
    copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    reassign(session, drain(tmp_path), "--execute --throttle 4MB/s --force", ["text"])
    copying.partition(name(0, "payments"), (1, 2), 60 * MB)
    copying.alive |= set(brokers(4))
    copying.submit({name(0, "payments"): brokers(1, 4)})
    copying.lose(4)
    [down] = json.loads(session.kquota(f"move watch {BROKER} --once --output json").out)["findings"]
    assert (down["finding"], down["values"]["broker"]) == ("destination down", 4)
    assert "--run" not in down["do"]
    assert "`kquota move status " in down["do"]


@pytest.mark.parametrize(("cancelled", "code"), [(0, 8), (1, 8), (2, 1)])
def test_a_throttle_that_is_left_does_not_hide_that_replicas_are_elsewhere(
    copying: CopyingCluster, session: Transcript, tmp_path: Path, cancelled: int, code: int
) -> None:
    """While another partition moves, the move has not failed."""
    reassign(session, drain(tmp_path), "--execute --throttle 4MB/s --force", ["text"])
    for number in range(cancelled):
        copying.cancel(name(number))
    ran = session.kquota(f"move watch {BROKER} --once")
    assert (ran.code, "throttle left" in ran.out) == (code, cancelled == 2)


def test_no_line_of_the_table_is_wider_than_a_terminal() -> None:
    """With the longest progress, and a lag of many brokers."""
    move = WatchedMoveView(
        run="20260301T123000Z-00b3e5b3524b",
        partitions=12_000,
        done=3_500,
        elsewhere=12,
        waiting=8_000,
        moving=488,
        log_dirs=7,
        copied=8_000 * MB,
        left=9_000 * MB,
        throughput=50.0 * MB,
        seconds_left=7_500.0,
        drift=-4_000.0,
        open=True,
        destinations=(),
    )
    lagging = tuple(
        WatchedBroker(
            broker=broker,
            alive=True,
            lag=120_000_000,
            trend=Trend.GROWING,
            sent=None,
            leader_rate=None,
            received=None,
            follower_rate=None,
        )
        for broker in brokers(*range(1, 13))
    )
    reading = MovesWatched(time=datetime.now(UTC), ended=False, moves=(move,), brokers=lagging, findings=())
    lines = list(reading.text())
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines).count(" growing") == 12
    undoing = replace(move, undoing=True)
    first = next(iter(replace(reading, moves=(undoing,)).text()))
    assert first.startswith("run 20260301T123000Z-00b3e5b3524b, being undone: 3,500 of 12,000 ")
    lane = DestinationView(
        broker=BrokerId(3),
        copies=2,
        done=1,
        copied=MB,
        left=MB,
        throughput=None,
        throttle=None,
        throttled=False,
        seconds_left=None,
        written=0.0,
        slowest=None,
    )
    log = replace(reading, moves=(replace(undoing, destinations=(lane,)), move), lines=True).text()
    assert sum("run 20260301T123000Z-00b3e5b3524b to broker 3: 1 of 2 copies done" in line for line in log) == 1


@pytest.mark.parametrize(
    ("rate", "written", "raised"),
    [(0, 0.0, "1"), (1, 0.5, "2"), (1, 2.35, "5"), (7, 0.0, "14"), (50, 49.0, "100"), (8 * MB, 8.12 * MB, "16MB/s")],
)
def test_the_rate_that_a_finding_suggests(rate: int, written: float, raised: str) -> None:
    starved = StarvedCopies(
        broker=BrokerId(1), side=ThrottleSide.LEADER, rate=rate, used=0.0, followers=0.0, written=written
    )
    assert shown(starved, MoveNamed(run="r1", plan=None)).do.endswith(f" --throttle {raised}`")


def test_the_words_of_each_finding(session: Transcript) -> None:
    """Each finding is a sentence with its values, and a command that helps: with a run, with a plan, with neither."""
    run = "20260301T123000Z-00b3e5b3524b"
    known = [MoveNamed(run=run, plan=None), MoveNamed(run=None, plan="my plan.json")]
    symptoms = [expected for _, expected in CASES.values()]
    told: list[str] = []
    for symptom in (*symptoms, NotSubmitted(run=run, partitions=2, first=name(7)), RunPaused(run=run, left=88 * MB)):
        both = [MoveNamed(run=run, plan="my plan.json")] if getattr(symptom, "undo", None) is Undo.RUNNING else []
        for named in (*known, *both, MoveNamed(run=None, plan=None)):
            one = shown(symptom, named)
            assert "`kquota " in one.do
            assert plain(one)["values"]
            told.append(f"{one.finding}: {one.line}")
    for line in dict.fromkeys(told):
        session.note(line)
    session.must_be("contract-watch-findings")
