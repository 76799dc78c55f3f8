"""The jobs over usage snapshots, against the same sums in Python: before and after the snapshots are compacted."""

from __future__ import annotations

import math
import re
import shutil
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kquota.errors import Refused
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.sizes.history import Listing
from kquota.spark.files import NOTHING, laid_out
from kquota.spark.reader import Reader
from kquota.stores.state import history, usage_files
from kquota.terms import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kquota.spark.usage import UsageJob

pytestmark = pytest.mark.spark
BEGIN = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
BUCKETS = [
    QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id="a"),
    QuotaBucket(key=PRODUCER_BYTE_RATE, user="a", client_id=None),
    QuotaBucket(key=CONSUMER_BYTE_RATE, user="u\n", client_id="a"),
    QuotaBucket(key=REQUEST_PERCENTAGE, user=None, client_id="é"),
]
READINGS = 40


@pytest.fixture(scope="module")
def week(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[tuple[QuotaBucket, str], list[tuple[float, int]]]]:
    """Readings at irregular times over midnight, and the rates and seconds of each bucket and broker."""
    folder, random, time = tmp_path_factory.mktemp("week"), Random(7), BEGIN
    pieces: defaultdict[tuple[QuotaBucket, str], list[tuple[float, int]]] = defaultdict(list)
    for n in range(READINGS):
        seconds = random.choice([60, 300, 600])
        time += timedelta(seconds=seconds)
        found = []
        for bucket in BUCKETS:
            for broker in ("1", "2"):
                used = 0.0 if random.random() < 0.2 else random.lognormvariate(10, 2)
                throttle = 5.0 if bucket is BUCKETS[0] and n % 4 == 0 else None
                found.append((bucket, BucketUse(broker=broker, used=used, throttle_ms=throttle)))
                pieces[bucket, broker].append((used, 10 if n == 0 else seconds))
        found.append((BUCKETS[0], BucketUse(broker="3", used=None, tokens=-1.0)))
        usage_files.add(folder, "c", time, found)
    usage_files.add(folder, "other", time, [(BUCKETS[0], BucketUse(broker="1", used=1e12))])
    return folder, pieces


def job(spark: SparkSession, folder: Path, scratch: Path) -> tuple[UsageJob, Listing]:
    from kquota.spark import usage

    found = usage_files.found([folder]).of("c")
    laid = laid_out(found.waiting, scratch / "readings", ".jsonl")
    return usage.opened(Reader(spark=spark, scratch=scratch), found, laid, "2026-11-20"), found


def compacted(spark: SparkSession, folder: Path, scratch: Path, most: int) -> None:
    from kquota.spark import usage

    with history.rolling(folder) as batch:
        waiting = dict(sorted(usage_files.found([folder]).waiting.items())[:most])
        laid = laid_out(waiting, scratch / f"compact-{most}", ".jsonl")
        usage.write(
            usage.by_day(usage.readings(Reader(spark=spark, scratch=scratch), laid)), batch.unfinished / "usage"
        )
        batch.commit({"usage": batch.unfinished / "usage"}, set(waiting.values()))
    for path in waiting:
        path.unlink()


def percentile(pieces: list[tuple[float, int]], part: float) -> float:
    enough, lasted = part * sum(seconds for _, seconds in pieces), 0
    for used, seconds in sorted(pieces):
        lasted += seconds
        if lasted >= enough:
            return used
    raise AssertionError


@pytest.mark.parametrize("batches", [(), (READINGS + 1,), (13, 10)], ids=["no batch", "all", "two batches and a rest"])
def test_percentiles_and_pieces_are_those_of_the_readings(
    spark: SparkSession,
    week: tuple[Path, dict[tuple[QuotaBucket, str], list[tuple[float, int]]]],
    tmp_path: Path,
    batches: tuple[int, ...],
) -> None:
    folder, pieces = tmp_path / "usage", week[1]
    shutil.copytree(week[0], folder)
    for most in batches:
        compacted(spark, folder, tmp_path, most)
    found, _ = job(spark, folder, tmp_path)
    for part in (0.01, 0.5, 0.9, 0.99, 1.0):
        uses = {one.bucket: one for one in found.statistics(part, [PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE])}
        assert uses.keys() == {*BUCKETS[:3]}
        for bucket, one in uses.items():
            expected = {broker: percentile(pieces[bucket, broker], part) for broker in ("1", "2")}
            assert expected[one.broker] == pytest.approx(max(expected.values()), rel=0.021)
            assert one.percentile == pytest.approx(max(expected.values()), rel=0.021)
            assert one.percentile >= max(expected.values()) * 0.999
            assert one.most == pytest.approx(max(used for b in "12" for used, _ in pieces[bucket, b]), rel=1e-6)
            assert one.seconds == sum(seconds for _, seconds in pieces[bucket, "1"])
            throttled = sum(s for n, (_, s) in enumerate(pieces[bucket, "1"]) if n % 4 == 0)
            assert one.throttled == (throttled if bucket == BUCKETS[0] else 0)
    wanted = {BUCKETS[0]: "1", BUCKETS[1]: "2"}
    for bucket, series in found.pieces(wanted):
        expected_series = pieces[bucket, wanted.pop(bucket)]
        assert [seconds for _, seconds in series] == [seconds for _, seconds in expected_series]
        assert all(math.isclose(a, b, rel_tol=1e-6) for (a, _), (b, _) in zip(series, expected_series, strict=True))
    assert wanted == {}
    assert list(found.pieces({})) == []


def test_an_invalid_line_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    path, _ = usage_files.add(tmp_path / "u", "c", BEGIN, [(BUCKETS[0], BucketUse(broker="1", used=5.0))])
    assert path is not None
    line = '{"version":1,"cluster":"c","time":"2026-11-20T22:00:00Z","seconds":60,"key":"producer_byte_rate","used":9'
    plain = path.with_name("c-20261120T230000Z.jsonl")
    plain.write_text(f'{line},"client_id":"a","broker":"1"}}\n{line},"broker":"1"}}\n{line}\n')
    plain.rename(path.with_name("c-20261120T230000Z.jsonl.gz"))
    found, _ = job(spark, tmp_path / "u", tmp_path)
    [one] = found.statistics(1.0, [PRODUCER_BYTE_RATE])
    assert (one.most, one.seconds) == (9.0, 70)


def test_compacted_usage_that_is_too_large_to_send_is_refused(tmp_path: Path) -> None:
    from kquota.spark.usage import opened

    with (tmp_path / "usage-0.parquet").open("wb") as file:
        file.truncate(100_000_001)
    here = Listing(rolled=(str(tmp_path),), held=frozenset(), waiting={})
    reader: Any = Reader(spark=None, scratch=tmp_path, uploads=True)  # type: ignore[arg-type]
    told = f"usage {tmp_path}: contains more than 100 MB of Parquet, which kquota does not send to a remote Spark. "
    with pytest.raises(Refused, match=re.escape(f"{told}Leave out spark_master and spark_remote")):
        opened(reader, here, NOTHING, "2026-11-20")
