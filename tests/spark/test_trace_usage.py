"""The use of a trace, against the same sums in Python."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from kquota.quota.usage import QuotaBucket
from kquota.spark import trace_files
from kquota.spark.reader import Reader
from kquota.terms import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kquota.spark.trace_usage import TraceUse

pytestmark = pytest.mark.spark
KEYS = (PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
MIDNIGHT_MS = 1_764_115_200_000
WEEK_MS = 7 * 86_400_000
A, U = (None, "a"), ("u", "a")


def opened(spark: SparkSession, folder: Path, rows: list[dict[str, object]], window: int = WEEK_MS) -> TraceUse | None:
    from kquota.spark import trace_usage

    path = folder / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    bad = trace_files.BadRows()
    trace = trace_files.opened([str(path)], folder)
    found = trace_usage.opened(Reader(spark=spark, scratch=folder), trace, bad, "c", KEYS, window)
    assert bad.count == sum("ms" not in row for row in rows)
    return found


def requests() -> list[dict[str, object]]:
    """Two clients around midnight, of which one is idle for an hour, and a client without any name."""
    random, found = Random(3), list[dict[str, object]]()
    for n in range(600):
        at = MIDNIGHT_MS - 1_800_000 + n * 2_500 + (3_600_000 if n > 300 else 0)
        found.append({"ms": at, "bytes": random.randint(1, 10**6), "thread_ms": 2.5, "broker": "1", "client_id": "a"})
        if n % 3 == 0:
            found.append({"ms": at, "mutations": n % 5, "broker": "2", "user": "u", "client_id": "a"})
        found.append({"ms": at, "bytes": 7, "broker": "1"})
    return [*found, {"bytes": 5, "client_id": "a"}]


def expected(rows: list[dict[str, object]], column: str, names: tuple[str | None, str | None]) -> dict[int, float]:
    sums: defaultdict[int, float] = defaultdict(float)
    for row in rows:
        if "ms" in row and column in row and (row.get("user"), row.get("client_id")) == names:
            sums[int(str(row["ms"])) // 10_000] += float(str(row[column]))
    return {window: total for window, total in sums.items() if total}


@pytest.mark.parametrize(
    ("key", "column", "names", "unit"),
    [
        (PRODUCER_BYTE_RATE, "bytes", A, 0.1),
        (REQUEST_PERCENTAGE, "thread_ms", A, 0.01),
        (CONTROLLER_MUTATION_RATE, "mutations", U, 0.1),
    ],
)
def test_a_reading_for_each_window_and_each_gap(
    spark: SparkSession, tmp_path: Path, key: str, column: str, names: tuple[str | None, str | None], unit: float
) -> None:
    rows = requests()
    found = opened(spark, tmp_path, rows)
    assert found is not None
    sums = expected(rows, column, names)
    first, last = min(sums), max(sums)
    series = [sums.get(window, 0.0) * unit for window in range(first, last + 1)]
    bucket = QuotaBucket(key=key, user=names[0], client_id=names[1])
    uses = {one.bucket: one for one in found.job.statistics(0.5, KEYS)}
    assert {one.user or one.client_id for one in uses} == {"a", "u"}
    assert uses[bucket].seconds == 10 * len(series)
    assert uses[bucket].most == pytest.approx(max(series))
    assert uses[bucket].percentile == pytest.approx(sorted(series)[(len(series) + 1) // 2 - 1], rel=0.021)
    [(same, pieces)] = found.job.pieces({bucket: uses[bucket].broker})
    assert same == bucket
    spread = [rate for rate, seconds in pieces for _ in range(int(seconds) // 10)]
    assert spread == pytest.approx(series, rel=1e-6)


def test_only_the_window_counts(spark: SparkSession, tmp_path: Path) -> None:
    rows = requests()
    found = opened(spark, tmp_path, rows, window=60_000)
    assert found is not None
    last = max(int(str(row["ms"])) for row in rows if "ms" in row)
    assert (found.begin, found.end) == (last - 60_000, last)
    assert all(one.seconds <= 70 for one in found.job.statistics(1.0, KEYS))


def test_without_a_valid_row_there_is_no_time(spark: SparkSession, tmp_path: Path) -> None:
    assert opened(spark, tmp_path, [{"bytes": 5, "client_id": "a"}]) is None
