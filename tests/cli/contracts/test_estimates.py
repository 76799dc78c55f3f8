"""The output of `move estimate` that scripts read: its JSON and text, and the whole command on Spark once.

The files `golden/contract-estimate-*.txt` hold the output. REWRITE_GOLDEN=1 writes them again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kquota.cli.connection import Connection
from kquota.cli.engine_options import SparkOptions
from kquota.cli.formats import document, text
from kquota.cli.move.estimate.command import EstimateOptions
from kquota.cli.move.estimate.report.page import page
from kquota.cli.move.estimate.run import cordon_remarks, next_step
from kquota.cli.move.log_dir_time import never
from kquota.pace.log_dir_copy import LogDirPace, LogDirWork
from kquota.pace.work import Link
from kquota.reassign.plan import Plan
from kquota.reassign.running_copies import MoveUnderWay, RunningCopy
from kquota.sizes.bytes_in import BytesIn
from kquota.sizes.replica import Cordon
from kquota.spark import plan_files
from kquota.terms import BrokerId, TopicPartition
from tests.cli.contracts.transcript import Transcript
from tests.cli.pages import MB, Case, Page, ticket
from tests.cli.run import Ran, kquota
from tests.cli.test_explain import golden
from tests.spark.rows import log_dirs, row, written

TWO = tuple(Link(leader=1, destination=d, copies=1, bytes=91 * MB, writes=5.0 * MB) for d in (3, 4))
ORDERS = TopicPartition("orders", 0)
CASES = {
    "plain": Case(),
    "deadline": Case(throttle=None, deadline="10m"),
    "late": Case(deadline="20s"),
    "never": Case(throttle="5MB/s"),
    "no-room": Case(throttle="20MB/s", disk=50 * MB),
    "room": Case(disk=900 * MB),
    "waves": Case(links=TWO, writes=0.0, each_link=True),
    "limits": Case(nic="50MB/s", impact="14%"),
    "percentiles": Case(traffic=BytesIn(mean=3.0 * MB, low=1.0 * MB, high=5.0 * MB, peak=20.0 * MB)),
    "writes-unknown": Case(writes=None),
    "nothing-moves": Case(links=()),
    "all-exist": Case(links=(), behind=1),
    "only-removals": Case(links=(), running=MoveUnderWay(partitions=(ORDERS,), elsewhere=(), others=0, copies={})),
    "running": Case(
        links=(Link(leader=1, destination=3, copies=1, bytes=21 * MB, writes=3.0 * MB),),
        running=MoveUnderWay(
            partitions=(ORDERS,),
            elsewhere=(TopicPartition("orders", 1),),
            others=2,
            copies={(ORDERS, BrokerId(3)): RunningCopy(copied=70 * MB, left=21 * MB)},
        ),
    ),
    "running-unknown": Case(
        running=MoveUnderWay(
            partitions=(ORDERS,),
            elsewhere=(),
            others=0,
            copies={(ORDERS, BrokerId(3)): RunningCopy(copied=None, left=None)},
        ),
    ),
}


@pytest.mark.unit
@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_the_text_and_the_json_of_an_estimate(name: str, case: Case) -> None:
    answer = ticket(case).answer
    told = text(answer) + document(answer)
    golden(f"contract-estimate-{name}", Ran(0 if answer.verdict.refused is None else 1, told, ""), "")


NONE_RUNNING = MoveUnderWay(partitions=(), elsewhere=(), others=0, copies={})
NEXT = {
    "nothing is moving": (Case(running=NONE_RUNNING), {}, " --throttle 8MB/s`"),
    "with a limit": (Case(running=NONE_RUNNING), {"max_in_flight": "5GB"}, " --throttle 8MB/s --max-in-flight 5GB`"),
    "with a limit that has a space": (
        Case(running=NONE_RUNNING),
        {"max_in_flight": "5 GB"},
        " --throttle 8MB/s --max-in-flight '5 GB'`",
    ),
    "for a deadline": (Case(running=NONE_RUNNING, throttle=None, deadline="10m"), {}, " --throttle 6093705`"),
    "only waves are compared": (Case(running=NONE_RUNNING), {"waves": 3}, None),
    "nothing is copied": (Case(running=NONE_RUNNING, links=()), {}, None),
    "the plan is moving": (CASES["running"], {}, None),
    "other moves are running": (Case(running=replace(NONE_RUNNING, others=1)), {}, None),
    "running moves are unknown": (Case(running=None), {}, None),
}


@pytest.mark.unit
@pytest.mark.parametrize(("case", "options", "end"), NEXT.values(), ids=NEXT)
def test_an_estimate_names_the_command_that_starts_the_move(
    case: Case, options: dict[str, Any], end: str | None
) -> None:
    file = Path("a plan.json")
    asked = EstimateOptions(connection=Connection(), reassignment_json_file=file, spark=SparkOptions(), **options)
    lines = list(next_step(asked, Plan(targets={}), ticket(case).answer))
    start = "next: start the move: `kquota move run --bootstrap-server HOST:PORT PLAN"
    assert lines == ([] if end is None else [f"{start}{end} (replace PLAN with the file of the plan)"])


@pytest.mark.unit
def test_no_command_starts_the_move_of_a_plan_that_only_the_estimate_reads(tmp_path: Path) -> None:
    file = tmp_path / "plan.jsonl"
    file.write_text('{"topic": "orders", "partition": 0, "replicas": [1, 3]}\n')
    plan = plan_files.opened(str(file), tmp_path)
    asked = EstimateOptions(connection=Connection(), reassignment_json_file=file, spark=SparkOptions())
    assert list(next_step(asked, plan, ticket(Case(running=NONE_RUNNING)).answer)) == []


WITHIN = (
    LogDirPace(work=LogDirWork(broker=1, copies=2, bytes=500 * MB, writes=1.0 * MB), throttle=10 * MB),
    LogDirPace(work=LogDirWork(broker=2, copies=1, bytes=40 * MB), throttle=10 * MB),
    LogDirPace(work=LogDirWork(broker=3, copies=1, bytes=40 * MB, writes=0.0), throttle=None),
    LogDirPace(work=LogDirWork(broker=4, copies=1, bytes=40 * MB, writes=9.5 * MB), throttle=10 * MB),
    LogDirPace(work=LogDirWork(broker=5, copies=1, bytes=40 * MB, writes=0.0), throttle=0),
)


@pytest.mark.unit
def test_the_text_and_the_json_of_moves_between_log_dirs() -> None:
    cordon = Cordon(broker=BrokerId(3), log_dirs=("/b",), whole=False)
    answer = replace(ticket(Case(links=())).answer, log_dir_moves=WITHIN, cordoned=(cordon,))
    seen = Page(page(replace(ticket(Case(links=())), answer=answer))).text[""]
    assert "Nothing to move between brokers" in seen
    assert "Log dirs of broker 1: 500 MB in 2 copies between its log dirs: about 62 s at 10 MB/s." in seen
    golden("contract-estimate-log-dirs", Ran(0, text(answer) + document(answer), ""), "")
    assert never((*WITHIN[:3], WITHIN[4])) is None
    assert never(WITHIN) == (
        "broker 4: the copies between its log dirs can never finish at 10 MB/s: with its pauses, the broker copies "
        "9.17 MB/s, but producers write 9.5 MB/s meanwhile. Give a higher --replica-alter-log-dirs-throttle"
    )


CORDONS = {
    "another broker": (Cordon(broker=BrokerId(2), log_dirs=("/a",), whole=True), []),
    "all log dirs of the destination": (
        Cordon(broker=BrokerId(3), log_dirs=("/a", "/b"), whole=True),
        [
            "broker 3: no log dir accepts new replicas (cordoned: /a, /b), so `move plan` places no replica there",
            "warning: the plan places 1 replica on broker 3, where all log dirs are cordoned. Kafka does not refuse "
            "this, so check the plan",
        ],
    ),
    "one of several": (
        Cordon(broker=BrokerId(3), log_dirs=("/a",), whole=False),
        ["broker 3: 1 log dir is cordoned (/a). New replicas go to other log dirs, unless a plan names a cordoned one"],
    ),
}


@pytest.mark.unit
@pytest.mark.parametrize(("cordon", "lines"), CORDONS.values(), ids=CORDONS)
def test_the_warnings_about_cordoned_log_dirs(cordon: Cordon, lines: list[str]) -> None:
    assert list(cordon_remarks([cordon], ticket(Case()).answer.measured)) == lines


@pytest.mark.unit
def test_a_plan_that_names_a_cordoned_log_dir_is_warned_about() -> None:
    measured = ticket(Case()).answer.measured
    named = replace(measured, arrivals=tuple(replace(arrival, log_dir="/a") for arrival in measured.arrivals))
    cordon = Cordon(broker=BrokerId(3), log_dirs=("/a",), whole=False)
    assert list(cordon_remarks([cordon], named))[1:] == [
        "warning: the plan places 1 replica in the cordoned log dir /a of broker 3. Kafka does not refuse this, so "
        "check the plan"
    ]


def _inputs(folder: Path) -> tuple[str, str, str]:
    """A plan, sizes as kafka-log-dirs prints them, and a snapshot with disks."""
    entries = [{"topic": "orders", "partition": number, "replicas": [number + 1, 3]} for number in (0, 1)]
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    sizes = folder / "sizes.txt"
    held = {"orders-0": 80 * MB, "orders-1": 40 * MB}
    sizes.write_text(log_dirs((1, held), (2, held), (3, {})))
    disks = {"volume_total": 900 * MB, "volume_usable": 300 * MB, "in_sync": True, "end_offset": 10}
    rows = [
        row(broker, "orders", number, held[f"orders-{number}"], leader=broker == number + 1, **disks)
        for broker in (1, 2)
        for number in (0, 1)
    ]
    history = written(folder / "c-20261121T010203Z.jsonl.gz", [*rows, row(3, None, None, None, **disks)])
    return str(plan), str(sizes), history


@pytest.mark.spark
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("source", ["sizes", "history"])
def test_the_whole_estimate_command_on_spark(tmp_path: Path, source: str, form: str) -> None:
    plan, sizes, history = _inputs(tmp_path)
    given = f"--log-dirs {sizes}" if source == "sizes" else f"--history {history}"
    aim = "--throttle 8MB/s" if source == "sizes" else "--deadline 5m --waves 2"
    # A worker of the tests may already have a Spark session, and a process has only one.
    session = Transcript(names={str(tmp_path): "FOLDER"}, run=kquota)
    session.kquota(
        f"move estimate --reassignment-json-file {plan} {given} --bytes-in 1=3MB/s --bytes-in 2=1MB/s {aim} "
        f"--output {form}"
    )
    session.must_be(f"contract-estimate-{source}-{form}")
