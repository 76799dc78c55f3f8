"""Queries on a long history, by Spark as kquota starts it, and by DuckDB and Polars on the same files."""

from __future__ import annotations

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench.race import say, spread
from bench.section import Section, verdict

PARTITIONS, BROKERS, FOLLOWERS = 30_000, 50, 2
A_DAY: Final = 24 * PARTITIONS * (1 + FOLLOWERS)
TEN, FIFTY, HUNDRED = 5, 24, 47
"""The days of hourly snapshots that have at least 10, 50 and 100 million rows."""

SECONDS: Final = 5.0
MEGABYTES: Final = 3_000.0
GROWTH: Final = 3.0
_FREE: Final = 4_000_000_000
_ENGINES: Final = ("spark", "duckdb", "polars")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The result of one query: the seconds of each round, the maxima of the other values, and whether the promise
    holds.
    """

    engine: str
    how: str
    rows: int
    seconds: tuple[float, ...]
    processor: float
    megabytes: float
    promised: str = ""
    kept: bool = True

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return statistics.median(self.seconds)


def sections() -> list[Section]:
    """Run every query on every engine, on one history that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        if shutil.disk_usage(folder).free < _FREE:
            sys.exit(f"the history takes {_FREE // 10**9} GB in {folder}; TMPDIR names another folder")
        say(f"writing a history of {HUNDRED * A_DAY:,} rows ...")
        _generate(Path(folder) / "v1", HUNDRED)
        return [_section(_asked(Path(folder) / "v1"))]


def _asked(history: Path) -> list[Answered]:
    if missing := [name for name in _ENGINES[1:] if importlib.util.find_spec(name) is None]:
        sys.exit(f"{', '.join(missing)}: install them with: pip install 'kquota[bench]'")
    found = []
    for how, days in (("windowed", FIFTY), ("grown", FIFTY), ("rolled", FIFTY), ("grown", TEN), ("grown", HUNDRED)):
        told = {engine: _rounds(engine, how, days, history) for engine in _ENGINES}
        first = told["spark"][0]["answer"]
        alike = all(_same(first, each["answer"]) for rounds in told.values() for each in rounds)
        assert alike, f"{how}: the engines do not agree"
        for engine, rounds in told.items():
            seconds = tuple(each["seconds"] for each in rounds)
            most = {name: max(each[name] for each in rounds) for name in ("processor", "megabytes")}
            found.append(Answered(engine=engine, how=how, rows=days * A_DAY, seconds=seconds, **most))
            say(f"{how}, {days * A_DAY:,} rows, {engine}: {spread(seconds)} s")
    return [_promised(each, found) for each in found]


def _promised(each: Answered, every: Sequence[Answered]) -> Answered:
    """Return the result with its promise. Only Spark on stored growth has a promise, for 50 and 100 million rows."""
    if (each.engine, each.how) != ("spark", "grown") or each.rows == TEN * A_DAY:
        return each
    if each.rows == FIFTY * A_DAY:
        kept = each.median <= SECONDS and each.megabytes <= MEGABYTES
        return replace(each, promised=f"{SECONDS:g} s and {MEGABYTES:.0f} MB", kept=kept)
    ten = next(o for o in every if (o.engine, o.how, o.rows) == ("spark", "grown", TEN * A_DAY))
    kept = each.median <= GROWTH * ten.median and each.megabytes <= MEGABYTES
    return replace(each, promised=f"{GROWTH:g} times the first, and {MEGABYTES:.0f} MB", kept=kept)


def _rounds(engine: str, how: str, days: int, history: Path) -> list[dict[str, Any]]:
    # A query that takes a minute runs once.
    rounds = 1 if how == "windowed" else 3
    command = [sys.executable, "-m", "bench.engines", engine, how, str(days), str(history)]
    ran = (subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout for _ in range(rounds))
    return [json.loads(each) for each in ran]


def _same(one: list[list[float]], other: list[list[float]]) -> bool:
    near = (abs(a[1] - b[1]) <= 1e-9 * abs(a[1]) for a, b in zip(one, other, strict=True))
    return [a[0] for a in one] == [b[0] for b in other] and all(near)


def _section(found: Sequence[Answered]) -> Section:
    table = [
        [
            f"{each.how}, {each.rows / 1e6:.0f} million rows",
            each.engine,
            spread(each.seconds),
            f"{each.processor:.1f}",
            f"{each.megabytes:.0f}",
            verdict(each.promised, each.kept),
        ]
        for each in found
    ]
    headers = ["p99 of bytes-in of each broker", "", "seconds", "of processor", "MB", "promised"]
    kept = all(each.kept for each in found)
    return Section(name="history", headers=headers, table=table, rows=[asdict(each) for each in found], kept=kept)


def _generate(folder: Path, days: int) -> None:
    """Create a history like `log-dirs --compact`, of one cluster with one snapshot for each hour."""
    from kquota.spark.files import MUCH, Files
    from kquota.spark.session import session

    class Large(Files):
        def size(self) -> int:
            return MUCH

    with tempfile.TemporaryDirectory(prefix="kquota-") as scratch:
        nothing = Large(folder=Path(scratch), names={})
        with session(Path(scratch), nothing, say=lambda _: None) as spark:
            from kquota.spark.compact import write
            from kquota.spark.growth import REPLICAS, by_broker
            from kquota.spark.reader import schema_of

            rows = spark.range(0, days * A_DAY, 1, days)
            for columns in _COLUMNS:
                rows = rows.selectExpr("*", *(f"{value} as {name}" for name, value in columns.items()))
            made = Path(scratch) / "replicas"
            write(rows.selectExpr(*(f"cast({name} as {kind}) as {name}" for name, kind in REPLICAS.items())), made)
            spark.conf.set("spark.sql.shuffle.partitions", "8")
            replicas = spark.read.schema(schema_of(REPLICAS)).parquet(str(made))
            write(by_broker(replicas).coalesce(1).sortWithinPartitions("date"), Path(scratch) / "brokers")
        for name in ("replicas", "brokers"):
            for number, file in enumerate(sorted((Path(scratch) / name).glob("*/*/*.parquet"))):
                place = folder / "batch=bench" / file.parent.relative_to(Path(scratch) / name)
                place.mkdir(parents=True, exist_ok=True)
                shutil.move(file, place / f"{name}-{number}.parquet")


_LED: Final = A_DAY // (1 + FOLLOWERS)
# Each step uses the columns of the previous step. A day's rows come in the order of a history: leaders, then followers.
_COLUMNS: Final = (
    {"day": f"id div {A_DAY}", "leader": f"id % {A_DAY} < {_LED}", "within": f"id % {A_DAY}"},
    {
        "place": f"if(leader, within, within - {_LED})",
        "an_hour": f"if(leader, {PARTITIONS}, {PARTITIONS * FOLLOWERS})",
    },
    {"hour": "day * 24 + place div an_hour", "nth": "place % an_hour", "a_broker": f"an_hour div {BROKERS}"},
    {"broker": "nth div a_broker"},
    {
        # The following brokers lead the partitions of a broker's followers.
        "number": f"if(leader, nth, ((broker + 1) * {PARTITIONS // BROKERS} + nth % a_broker) % {PARTITIONS})",
    },
    {
        "version": "1",
        "time": "timestamp_seconds(1767225600 + hour * 3600)",
        "seconds": "if(hour = 0, null, 3600)",
        "rack": "null",
        "log_dir": "'/var/lib/kafka'",
        "topic": "concat('topic-', number div 60)",
        "partition": "number % 60",
        "size": "pmod(xxhash64(number), 5000000000) + hour * pmod(xxhash64(number, 1), 100000000)",
        "grown": "if(hour = 0, null, pmod(xxhash64(number, 1), 100000000))",
        "start_offset": "if(leader, hour * 1000, null)",
        "local_start_offset": "hour * 1000",
        "end_offset": "hour * 10000 + number",
        "future": "false",
        "in_sync": "true",
        "volume_total": "10000000000000",
        "volume_usable": "1000000000000",
        "cluster": "'bench'",
        "date": "date_format(timestamp_seconds(1767225600 + hour * 3600), 'yyyy-MM-dd')",
    },
)
