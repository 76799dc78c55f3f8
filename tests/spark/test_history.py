"""Snapshots rolled into Parquet: growth equals the reference, batches are complete or absent."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kquota.errors import Invalid, Refused
from kquota.sizes.growth import grown
from kquota.sizes.history import Listing, SnapshotKey
from kquota.sizes.replica import Replica
from kquota.spark.files import NOTHING, laid_out
from kquota.spark.reader import Reader
from kquota.stores.state import history
from kquota.terms import LONG_MAX, TopicPartition
from tests.spark.rows import Row, row, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kquota.spark.history import History

pytestmark = pytest.mark.spark
FIRST = datetime(2026, 11, 20, 22, tzinfo=UTC)
HOURS = 30
LIMITS = [0, 1, 2, 1000, 2**40, LONG_MAX]


def stamp(hour: int) -> str:
    return f"{FIRST + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}"


def snapshot(folder: Path, hour: int, rows: Iterable[Row], cluster: str = "c") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{cluster}-{hour:03d}.jsonl.gz"
    written(path, (one | {"cluster": cluster, "time": stamp(hour)} for one in rows))
    return path


def roll(spark: SparkSession, scratch: Path, folder: Path) -> Path:
    """The work of `log-dirs --compact`, in the session that the tests share."""
    from kquota.spark.compact import tables

    scratch.mkdir()
    with history.rolling(folder) as batch:
        found = history.listing([folder])
        files = laid_out(found.waiting, scratch / "history", ".jsonl")
        tables(Reader(spark=spark, scratch=scratch), files, found, batch.unfinished)
        both = {table: batch.unfinished / table for table in ("replicas", "brokers")}
        return batch.commit(both, set(found.waiting.values()))


def read(spark: SparkSession, scratch: Path, folder: Path, cluster: str | None = None) -> History:
    from kquota.spark.history import opened

    scratch.mkdir()
    found = history.listing([folder]).of(cluster)
    files = laid_out(found.waiting, scratch / "history", ".jsonl")
    return opened(Reader(spark=spark, scratch=scratch), found, files, cluster)


def table(spark: SparkSession, folder: Path, name: str) -> list[Row]:
    """A table as other programs read it: folders are columns, and the schema is that of the files."""
    files = spark.read.option("pathGlobFilter", f"{name}-*.parquet").parquet(str(folder / "rolled" / "v1"))
    return sorted((each.asDict() for each in files.drop("batch").collect()), key=str)


def facts(folder: Path) -> dict[str, bytes]:
    """All files of the history that are complete."""
    files = (path for path in folder.rglob("*") if path.is_file() and not re.search(r"/rolled/\.", str(path)))
    return {str(path): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty hours of three brokers: leaders move, retention deletes, a replica falls behind, one is created again."""
    folder = tmp_path_factory.mktemp("fleet")
    chance = random.Random(6)
    logs = {partition: {"start": 0, "end": 0, "each": chance.randint(1, 900)} for partition in range(12)}
    for hour in range(HOURS):
        rows = []
        for partition, log in logs.items():
            log["end"] += chance.choice([0, 10, 3_600, 36_000])
            log["start"] = max(log["start"], log["end"] - 80_000)
            if chance.random() < 0.02:
                log["start"] = log["end"] = 0
            leader = (partition + (hour // 9)) % 3
            size = (log["end"] - log["start"]) * log["each"]
            for broker in range(3):
                told = {"leader": broker == leader, "start_offset": log["start"] if broker == leader else None}
                told |= {
                    "local_start_offset": log["start"],
                    "end_offset": log["end"],
                    "in_sync": broker == leader or chance.random() > 0.05,
                }
                rows.append(row(broker, "t", partition, size, volume_total=10**12, **told))
        snapshot(folder, hour, rows)
    return folder


def test_spark_computes_the_growth_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    """On thousands of pairs of readings, with extreme values of each column, and with gaps."""
    chance = random.Random(124)

    def some() -> int:
        return chance.choice([chance.choice(LIMITS), chance.randint(0, 5_000), chance.randint(0, 5_000)])

    readings: dict[int, dict[int, Replica]] = defaultdict(dict)
    for hour in range(3):
        for partition in range(3_000):
            if chance.random() < 0.9:
                start, end = (chance.choice([None, some(), some()]) for _ in range(2))
                in_sync = chance.choice([None, True, True, False])
                readings[hour][partition] = Replica(
                    partition=TopicPartition("t", partition),
                    size=some(),
                    offset_lag=0,
                    future=False,
                    local_start_offset=start,
                    end_offset=end,
                    in_sync=in_sync,
                )
    for hour, found in readings.items():
        told = [
            (n, {name: getattr(r, name) for name in ("local_start_offset", "end_offset", "in_sync")})
            for n, r in found.items()
        ]
        rows = (row(1, "t", n, found[n].size, leader=False, **facts) for n, facts in told)
        snapshot(tmp_path / "h", hour, rows)
        if hour == 1:  # the third is compared with the rolled batch
            roll(spark, tmp_path / "first", tmp_path / "h")
    roll(spark, tmp_path / "second", tmp_path / "h")
    expected = {
        (stamp(hour), n): grown(readings[hour - 1].get(n) if hour else None, now)
        for hour, found in readings.items()
        for n, now in found.items()
    }
    replicas = table(spark, tmp_path / "h", "replicas")
    assert {(f"{one['time']:%Y-%m-%dT%H:%M:%SZ}", one["partition"]): one["grown"] for one in replicas} == expected
    assert len({value for value in expected.values() if value}) > 500


def test_in_one_batch_or_in_several_the_history_is_the_same(spark: SparkSession, fleet: Path, tmp_path: Path) -> None:
    """Each broker's bytes-in is the sum of the writes to the partitions that it leads, per second."""
    from pyspark.sql import functions as F

    paths = sorted(fleet.glob("*.gz"))
    for name, parts in {"one": [30], "three": [1, 14, 15]}.items():
        rest = iter(paths)
        for number, count in enumerate(parts):
            (tmp_path / name).mkdir(exist_ok=True)
            for path in itertools.islice(rest, count):
                shutil.copy(path, tmp_path / name)
            roll(spark, tmp_path / f"{name}-{number}", tmp_path / name)
    replicas, brokers = (table(spark, tmp_path / "one", each) for each in ("replicas", "brokers"))
    assert replicas == table(spark, tmp_path / "three", "replicas")
    assert brokers == table(spark, tmp_path / "three", "brokers")
    assert (len(replicas), len(brokers)) == (HOURS * 36, HOURS * 3)
    for file in (tmp_path / "one").rglob("replicas-*.parquet"):
        lying = spark.read.parquet(str(file)).select(~F.col("leader"), "time", "broker", "topic", "partition").collect()
        assert lying == sorted(lying)
    for one in brokers:
        led = [r for r in replicas if (r["time"], r["broker"], r["leader"]) == (one["time"], one["broker"], True)]
        unknown = [r for r in led if r["grown"] is None]
        assert (one["unknown"], one["leaders"], one["replicas"]) == (len(unknown), len(led), 12)
        known = sum(r["grown"] for r in led if r["grown"] is not None)  # type: ignore[misc]
        much = sum(r["size"] for r in unknown) * 10 > sum(r["size"] for r in led)  # type: ignore[misc]
        assert one["bytes_in"] == (None if much or one["seconds"] is None else known / 3600)


def test_an_estimate_reads_rolled_and_pending_snapshots_together(
    spark: SparkSession, fleet: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "h"
    folder.mkdir()
    for path in sorted(fleet.glob("*.gz"))[:20]:
        shutil.copy(path, folder)
    snapshot(folder, 3, [row(7, "other", 0, 5)], cluster="d")
    roll(spark, tmp_path / "roll", folder)
    for path in sorted(fleet.glob("*.gz"))[20:]:
        shutil.copy(path, folder)
    with pytest.raises(Invalid, match="the history contains 2 clusters"):
        read(spark, tmp_path / "none", folder)
    both, waiting = read(spark, tmp_path / "both", folder, "c"), read(spark, tmp_path / "waiting", fleet)
    assert (both.cluster, both.first, both.last) == ("c", FIRST, FIRST + timedelta(hours=HOURS - 1))
    newest, twin = ({str(r.asDict() | {"file": ""}) for r in each.newest.collect()} for each in (both, waiting))
    assert newest == twin
    for window in (None, 6 * 3600.0):
        one, other = both.by_partition(window), waiting.by_partition(window)
        assert one is not None
        assert other is not None
        assert sorted(one.collect()) == sorted(other.collect())
    rates = both.by_broker()
    assert rates == waiting.by_broker()
    assert set(rates) == {0, 1, 2}
    assert all((r.low or 0) <= r.mean <= (r.high or 0) <= (r.peak or 0) for r in rates.values())
    assert {(r.low, r.high, r.peak) for r in both.by_broker(6 * 3600.0).values()} == {(None, None, None)}
    both.check(29 * 3600)
    with pytest.raises(Invalid, match=r"covers only 29 h 00 min \(2026-11-20T22:00:00Z to 2026-11-22T03:00:00Z\)"):
        both.check(30 * 3600)
    only = read(spark, tmp_path / "rolled", folder, "d")
    (last,) = only.newest.collect()
    assert (last["broker"], last["topic"], last["size"], last["time"]) == (7, "other", 5, stamp(3))


def test_remote_batches_and_local_snapshots_are_one_history(spark: SparkSession, fleet: Path, tmp_path: Path) -> None:
    """The manifests of another place are not visible from here, so its content is read from its tables."""
    from kquota.spark.history import opened

    folder, paths = tmp_path / "bucket", sorted(fleet.glob("*.gz"))
    folder.mkdir()
    for path in paths[1:28]:
        shutil.copy(path, folder)
    roll(spark, tmp_path / "roll", folder)

    def together(name: str, *here: Path) -> History:
        found = replace(history.listing(here), rolled=(f"file://{folder}/rolled/v1",))
        (scratch := tmp_path / name).mkdir()
        files = laid_out(found.waiting, scratch / "history", ".jsonl")
        return opened(Reader(spark=spark, scratch=scratch), found, files)

    # The 28th is in both.
    both = together("both", *paths[27:])
    for path in paths[28:]:
        shutil.copy(path, folder)
    twin = read(spark, tmp_path / "twin", folder)
    assert (both.cluster, both.first, both.last) == (twin.cluster, twin.first, twin.last)
    for window in (None, 6 * 3600.0):
        one, other = both.by_partition(window), twin.by_partition(window)
        assert one is not None and other is not None
        assert sorted(one.collect()) == sorted(other.collect())
        assert both.by_broker(window) == twin.by_broker(window)
    newest, same = ({str(r.asDict() | {"file": ""}) for r in each.newest.collect()} for each in (both, twin))
    assert newest == same
    with pytest.raises(Invalid, match=r"c-000.jsonl.gz: is older than the compacted history of its cluster in file:"):
        together("late", paths[0])


def test_a_missing_history_in_another_place_names_its_option(spark: SparkSession, tmp_path: Path) -> None:
    from kquota.spark.history import opened

    path = f"file://{tmp_path}/rolled/v1"
    here = Listing(rolled=(path,), held=frozenset(), waiting={})
    refusal = rf"^history {path}: cannot be read: \[PATH_NOT_FOUND\].*[^.]\. Correct the path$"
    with pytest.raises(Invalid, match=refusal):
        opened(Reader(spark=spark, scratch=tmp_path), here, NOTHING)


def test_a_history_that_is_too_large_to_send_is_refused(tmp_path: Path) -> None:
    from kquota.spark.history import opened

    with (tmp_path / "replicas-0.parquet").open("wb") as file:
        file.truncate(100_000_001)
    here = Listing(rolled=(str(tmp_path),), held=frozenset({SnapshotKey("c", FIRST)}), waiting={})
    reader: Any = Reader(spark=None, scratch=tmp_path, uploads=True)  # type: ignore[arg-type]
    told = f"history {tmp_path}: contains more than 100 MB of Parquet, which kquota does not send to a remote"
    with pytest.raises(Refused, match=re.escape(told)):
        opened(reader, here, NOTHING)


def test_an_estimate_omits_bad_rows_and_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    for hour in range(3):
        bad = [row(1, "t", 1, -5), row(None, "t", 1, 5)] if hour == 1 else []
        snapshot(tmp_path / "h", hour, [row(1, "t", 0, 7200 * hour, leader=True), *bad])
    found = read(spark, tmp_path / "scratch", tmp_path / "h")
    rates = found.by_partition()
    assert found.bad == 2
    assert rates is not None
    assert [tuple(each) for each in rates.collect()] == [("t", 0, 2.0)]
    snapshot(tmp_path / "h", 1, [row(1, "t", 0, 5), row(1, "t", 1, 5, version=7)])
    with pytest.raises(Invalid, match=r"c-001.jsonl.gz: unknown version 7. Move the file out of the history"):
        read(spark, tmp_path / "again", tmp_path / "h")


BAD = {
    "a negative size": (row(1, "t", 1, -5), "c-001.jsonl.gz: contains a row without a replica or a valid size"),
    "no broker": (row(None, "t", 1, 5), "c-001.jsonl.gz: contains a row without a replica or a valid size"),
    "another version": (row(1, "t", 1, 5, version=7), "c-001.jsonl.gz: unknown version 7"),
    "a replica twice": (row(1, "t", 0, 6), r"snapshot of .*: t-0 on broker 1 is listed twice"),
}


@pytest.mark.parametrize(("bad", "complaint"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_prevents_the_whole_batch(spark: SparkSession, tmp_path: Path, bad: Row, complaint: str) -> None:
    snapshot(tmp_path / "h", 0, [row(1, "t", 0, 5)])
    snapshot(tmp_path / "h", 1, [row(1, "t", 0, 5), bad])
    before = facts(tmp_path / "h")
    with pytest.raises(Invalid, match=complaint):
        roll(spark, tmp_path / "scratch", tmp_path / "h")
    assert facts(tmp_path / "h") == before


HOUR = 3600


def tiered(hour: int) -> Row:
    """A tiered topic: 36,000 records of 10 bytes each hour, of which the broker keeps the last 80 kB."""
    end = 36_000 * (hour + 1)
    return row(1, "tiered", 0, 80_000, start_offset=0, local_start_offset=end - 8_000, end_offset=end, leader=True)


def ordinary(hour: int) -> Row:
    """An ordinary topic with the same writes, and retention."""
    end = 36_000 * (hour + 1)
    return row(1, "ordinary", 0, 80_000, start_offset=end - 8_000, end_offset=end, leader=True)


def rates(found: History) -> dict[str, float]:
    told = found.by_partition()
    return {} if told is None else {one["topic"]: one["w"] for one in told.collect()}


@pytest.mark.parametrize("compacted", [False, True])
def test_write_rates_of_tiered_topics(spark: SparkSession, tmp_path: Path, compacted: bool) -> None:
    """Without the local start of its log, the rate of a topic is unknown, not wrong, because it may be tiered."""
    folder = tmp_path / "h"
    for hour in range(3):
        snapshot(folder, hour, [{**one, "local_start_offset": None} for one in (tiered(hour), ordinary(hour))])
    if compacted:
        roll(spark, tmp_path / "roll", folder)
    found = read(spark, tmp_path / "old", folder)
    assert (rates(found), found.by_broker()) == ({}, {})
    snapshot(folder, 3, (tiered(3), ordinary(3)))
    found = read(spark, tmp_path / "one", folder)
    # The last hour is known of both: the new snapshot has the local start that belongs to its sizes.
    assert rates(found) == {"tiered": 100.0, "ordinary": 100.0}
    assert {broker: rate.mean for broker, rate in found.by_broker().items()} == {1: 200.0}
