"""One query on one engine: the 99th percentile of each broker's bytes-in, over some days of a history.

`python -m bench.engines ENGINE HOW DAYS HISTORY` runs as a separate process, to measure its memory. It prints one JSON
object: the seconds from the query to the answer on a running engine, the processor seconds, the maximum memory in MB,
and the answer. HOW is `windowed` (growth from raw sizes), `grown` (growth stored in the history) or `rolled` (the
brokers' table).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

Answer = dict[int, float]
# DuckDB and Spark get the same text, because their SQL does not differ here.
_GROWN: Final = """
    select time, broker, sum(grown) / max(seconds) as rate from replicas
    where leader and grown is not null group by time, broker"""
_WINDOWED: Final = """
    select time, broker, sum(grown) / max(seconds) as rate from (
        select time, broker, leader, seconds,
            greatest(0, size - lag(size) over (partition by topic, partition, broker order by time)) as grown
        from replicas)
    where leader and grown is not null group by time, broker"""
_ROLLED: Final = "select time, broker, bytes_in as rate from brokers where bytes_in is not null"
RATES: Final = {"grown": _GROWN, "windowed": _WINDOWED, "rolled": _ROLLED}


def main() -> None:
    """Run the query and print the measurements."""
    engine, how, days, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    table = "brokers" if how == "rolled" else "replicas"
    parts = sorted(folder.glob("batch=*/cluster=*/date=*"))[:days]
    files = [str(file) for part in parts for file in sorted(part.glob(f"{table}-*.parquet"))]
    print(json.dumps({"spark": _spark, "duckdb": _duckdb, "polars": _polars}[engine](how, table, files)))


def _spark(how: str, table: str, files: list[str]) -> dict[str, Any]:
    from kquota.spark.files import NOTHING
    from kquota.spark.session import session, starting

    # `move estimate` also starts Spark in these two ways: for snapshots that must be joined, or for a rolled history.
    stored = sum(Path(file).stat().st_size for file in files)
    joined, summed = (stored, 0) if how == "windowed" else (0, stored)
    with (
        tempfile.TemporaryDirectory(prefix="kquota-") as folder,
        starting(Path(folder), joined, scanned=summed) as start,
        session(Path(folder), NOTHING, say=lambda _: None, start=start) as spark,
    ):

        def ask() -> Answer:
            spark.read.parquet(*files).createOrReplaceTempView(table)
            found = spark.sql(f"select broker, percentile(rate, 0.99) from ({RATES[how]}) group by broker")
            return {row[0]: row[1] for row in found.collect()}

        return _measured(ask)


def _duckdb(how: str, table: str, files: list[str]) -> dict[str, Any]:
    import duckdb

    def ask() -> Answer:
        connection = duckdb.connect()
        connection.from_parquet(files).create_view(table)
        found = connection.sql(f"select broker, quantile_cont(rate, 0.99) from ({RATES[how]}) group by broker")
        return dict(found.fetchall())

    return _measured(ask)


def _polars(how: str, _: str, files: list[str]) -> dict[str, Any]:
    import polars as pl

    def ask() -> Answer:
        rows = pl.scan_parquet(files)
        if how == "windowed":
            last = pl.col("size").shift(1).over(["topic", "partition", "broker"], order_by="time")
            rows = rows.with_columns(grown=pl.max_horizontal(pl.lit(0), pl.col("size") - last))
            rows = rows.with_columns(grown=pl.when(last.is_not_null()).then("grown"))
        if how == "rolled":
            rates = rows.filter(pl.col("bytes_in").is_not_null()).with_columns(rate="bytes_in")
        else:
            known = rows.filter(pl.col("leader") & pl.col("grown").is_not_null()).group_by("time", "broker")
            rates = known.agg(rate=pl.col("grown").sum() / pl.col("seconds").max())
        found = rates.group_by("broker").agg(pl.col("rate").quantile(0.99, "linear")).collect()
        return dict(found.iter_rows())

    return _measured(ask)


def _measured(ask: Callable[[], Answer]) -> dict[str, Any]:
    before, started = processor(), time.perf_counter()
    answer = ask()
    took = time.perf_counter() - started
    megabytes = sum(_megabytes(process) for process in _processes())
    used = processor() - before
    return {"seconds": took, "processor": used, "megabytes": megabytes, "answer": sorted(answer.items())}


def _processes() -> Iterator[Path]:
    """Yield this process and its children, which include Spark's JVM."""
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid() or _stat(process)[1] == str(os.getpid()):
            yield process


def _stat(process: Path) -> list[str]:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["", ""]


def processor() -> float:
    """Return the CPU seconds of this process and its children."""
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in map(_stat, _processes()))
    return ticks / os.sysconf("SC_CLK_TCK")


def _megabytes(process: Path) -> float:
    lines = (process / "status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    main()
