"""The output of `move estimate` that scripts read: its JSON and text, and the whole command on Spark once.

The files `golden/contract-estimate-*.txt` hold the output. REWRITE_GOLDEN=1 writes them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kquota.cli.output import document, text
from kquota.pace.work import Link
from kquota.sizes.bytes_in import BytesIn
from tests.cli.contracts.transcript import Transcript
from tests.cli.pages import MB, Case, ticket
from tests.cli.run import Ran, kquota
from tests.cli.test_explain import golden
from tests.spark.rows import log_dirs, row, written

TWO = tuple(Link(leader=1, destination=d, copies=1, bytes=91 * MB, writes=5.0 * MB) for d in (3, 4))
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
}


@pytest.mark.unit
@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_the_text_and_the_json_of_an_estimate(name: str, case: Case) -> None:
    answer = ticket(case).answer
    told = text(answer) + document(answer)
    golden(f"contract-estimate-{name}", Ran(0 if answer.verdict.refused is None else 1, told, ""), "")


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
def test_the_whole_estimate_command_on_spark(tmp_path: Path) -> None:
    plan, sizes, history = _inputs(tmp_path)
    # A worker of the tests may already have a Spark session, and a process has only one.
    session = Transcript(names={str(tmp_path): "FOLDER"}, run=kquota)
    rates = "--bytes-in 1=3MB/s --bytes-in 2=1MB/s"
    for form in ("text", "json"):
        session.kquota(
            f"move estimate --reassignment-json-file {plan} --log-dirs {sizes} {rates} --throttle 8MB/s --output {form}"
        )
        session.kquota(
            f"move estimate --reassignment-json-file {plan} --history {history} {rates} --deadline 5m --waves 2 "
            f"--output {form}"
        )
    session.must_be("contract-estimate-command")
