"""A trace on Spark and the same trace simulated in Python are equal to the millisecond, including bad rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kquota.simulate import trace as traces
from kquota.simulate.load import Quotas
from kquota.simulate.trace import COLUMNS, Answered
from kquota.spark import trace_files
from kquota.spark.reader import Reader
from kquota.spark.trace_files import BadRows
from tests.cli.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HELD: dict[str, tuple[Quotas, bool]] = {
    "a producer": (Quotas(producer_byte_rate=50_000.0, request_percentage=2.0), False),
    "a producer that waits for answers": (Quotas(producer_byte_rate=50_000.0, request_percentage=0.7), True),
    "a consumer": (Quotas(consumer_byte_rate=70_000.0, request_percentage=4.0), False),
    "all at once": (Quotas(producer_byte_rate=90_000.0, request_percentage=1.5, controller_mutation_rate=3.0), False),
    "an old client": (Quotas(controller_mutation_rate=2.0, strict=False, samples=5), False),
}
USERS = ("alice", "", "a,b", 'say "x"', "ü")
BAD: tuple[dict[str, str], ...] = (
    {"ms": ""},
    {"ms": "-1"},
    {"ms": "5.0"},
    {"ms": "1 000"},
    {"bytes": "x"},
    {"bytes": "7", "mutations": "7"},
    {"thread_ms": "1e3"},
    {"thread_ms": "-2"},
    {"mutations": "1234567890123456"},
)


def drawn(draw: random.Random) -> list[dict[str, str]]:
    """Unordered rows of a few clients: bursts, gaps longer than a window, simultaneous requests, and some bad rows."""
    now, rows = 1_700_000_000_000, []
    for _ in range(1_500):
        now += draw.choice([0, 0, 1, draw.randint(0, 200), draw.randint(0, 200), draw.randint(0, 8_000)])
        row = dict.fromkeys(COLUMNS, "") | {"ms": str(now), "thread_ms": f"{draw.uniform(0, 90):.3f}"}
        row |= {"broker": str(draw.randint(1, 2)), "user": draw.choice(USERS), "client_id": draw.choice(["", "c"])}
        row["mutations" if draw.random() < 0.1 else "bytes"] = str(draw.randint(0, 90) ** draw.choice([1, 2, 3]) % 9**5)
        rows.append(row | draw.choice(BAD) if draw.random() < 0.03 else row)
    draw.shuffle(rows)
    return rows


def as_csv(rows: list[dict[str, str]], draw: random.Random) -> str:
    names = draw.sample(COLUMNS, len(COLUMNS))
    text = io.StringIO()
    table = csv.DictWriter(text, names)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue() + "too,few\n" + ",".join(["1"] * 8) + "\n\n   \n"


def as_json(rows: list[dict[str, str]], draw: random.Random) -> str:
    """Return the rows as JSON lines, with some sizes as numbers and some as text, and a few invalid lines at the end.

    Empty values are omitted or null.
    """
    lines = []
    for row in rows:
        fields: dict[str, Any] = {name: value or None for name, value in row.items() if value or draw.random() < 0.5}
        if (fields.get("bytes") or "x").isdigit() and draw.random() < 0.5:
            fields["bytes"] = int(fields["bytes"])
        lines.append(json.dumps(fields))
    return "\n".join([*lines, "{", "{}", "not JSON", ""])


def with_waits(found: list[Answered]) -> list[Answered]:
    assert sum(one.flow.total_wait for one in found) > 0
    return found


@pytest.mark.parametrize("case", HELD)
def test_a_trace_on_spark_equals_the_simulation_in_python(case: str, spark: SparkSession, tmp_path: Path) -> None:
    held, closed_loop = HELD[case]
    draw = random.Random(case)
    written = as_json if case in ("a consumer", "an old client") else as_csv
    texts = [written(drawn(draw), random.Random(case)) for _ in range(2)]
    (tmp_path / "a.trace").write_text(texts[0], encoding="utf-8-sig")
    (tmp_path / "b.trace").write_bytes(gzip.compress(texts[1].encode()))
    trace = trace_files.opened([str(tmp_path / "*.trace")], tmp_path)
    here, there = BadRows(), BadRows()
    expected = traces.answered(trace_files.rows(trace, here), held, closed_loop=closed_loop)

    from kquota.spark.trace import answered

    found = answered(Reader(spark=spark, scratch=tmp_path), trace, held, there, closed_loop=closed_loop)
    assert with_waits(found) == expected
    assert there == here
    assert here.count > 20


def test_one_client_leaves_partitions_without_a_row(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ms,bytes,user\n0,90000,alice\n100,90000,alice\n")
    trace, held = trace_files.opened([str(path)], tmp_path), Quotas(producer_byte_rate=1_000.0)
    expected = traces.answered(trace_files.rows(trace, BadRows()), held, closed_loop=False)

    from kquota.spark.trace import answered

    found = answered(Reader(spark=spark, scratch=tmp_path), trace, held, BadRows(), closed_loop=False)
    assert with_waits(found) == expected


def test_the_output_is_the_same_on_every_engine(tmp_path: Path, connect_server: str, small_client: str) -> None:
    """No output of Spark reaches stderr. A server's Python does not have kquota."""
    path = tmp_path / "t.csv"
    path.write_text(as_csv(drawn(random.Random(7)), random.Random(7)))
    words = ["-m", "kquota", "quota", "simulate", "--producer-byte-rate", "50kB/s", "--trace", str(path)]
    here = run([sys.executable, *words])
    own = {"PYTHONPATH": str(Path(__file__).parents[2])}
    engines = {
        "local[2]": [sys.executable, *words, "--spark-master", "local[2]"],
        connect_server: [small_client, *words, "--spark-remote", connect_server],
    }
    for name, command in engines.items():
        there = run(command, own)
        assert (there.code, there.out) == (0, here.out), there.err
        start = "starting Spark ..." if name == "local[2]" else f"connecting to Spark ({name}) ..."
        assert there.err == f"kquota: {start}\n{here.err}"
