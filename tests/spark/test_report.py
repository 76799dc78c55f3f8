"""`kquota move estimate --report` with Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.pages import Page
from tests.cli.run import kquota
from tests.spark.rows import row, written

MB = 10**6
pytestmark = pytest.mark.spark


def test_the_report_and_the_json_document(tmp_path: Path) -> None:
    leads = [row(1, "my-topic", n, 50 * MB, leader=True, in_sync=True) for n in range(2)]
    stays = [row(2, "my-topic", n, 50 * MB, leader=False, in_sync=True) for n in range(2)]
    rows = [*leads, *stays, row(3, "other", 0, 7 * MB, leader=True, in_sync=True), row(3, "other", 0, 7, future=True)]
    sizes, plan, report = written(tmp_path / "s.jsonl.gz", rows), tmp_path / "plan.json", tmp_path / "move.html"
    moves = [{"topic": "my-topic", "partition": n, "replicas": [1, 3]} for n in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    words = ["--reassignment-json-file", str(plan), "--history", sizes, "--bytes-in", "1=1MB/s", "--bytes-in", "3=0"]
    ran = kquota("move", "estimate", *words, "--throttle", "8MB/s", "--output", "json", "--report", str(report))
    assert ran.code == 0, ran.err
    assert ran.err.endswith(f"kquota: report written: {report}\n")
    answer, told = json.loads(ran.out), Page(report.read_text(encoding="utf-8"))
    assert {answer["throttle"], answer["expected_seconds"], answer["least_seconds"]} <= set(told.values[""])
    assert told.values["Topics to move"] == [100 * MB, 2, 2, 100 * MB, 2, 2, 100 * MB]
    assert "107 MB" in told.text["Brokers before and after"], "on broker 3: what it held, and both copies"
    assert "1 row is left out: future replica" in told.text["Sources of the numbers"]
    assert f"--reassignment-json-file {plan}" in told.commands[0]
