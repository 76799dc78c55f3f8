"""The job behind `log-dirs --compact`: in one pass over snapshots, the two tables of a history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.sizes.history import Listing
from kquota.spark.files import Files
from kquota.spark.growth import REPLICAS, before, by_broker, marked, schema, spanned, with_growth
from kquota.spark.reader import Reader
from kquota.spark.sizes import from_snapshots

_BYTES_A_TASK: Final = 4_000_000
_ROWS_A_FILE: Final = 8_000_000
_OPTIONS: Final = {"compression": "zstd", "maxRecordsPerFile": str(_ROWS_A_FILE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The folders of the two tables, and how many rows the larger one has."""

    replicas: Path
    brokers: Path
    rows: int


def tables(reader: Reader, files: Files, listing: Listing, folder: Path) -> Tables:
    """Write what `listing` has waiting, which `files` lays out, into `folder`. Raises Invalid, naming the file, for a
    row that is none: a history keeps only whole snapshots.
    """
    spark = reader.spark
    tasks = max(2, files.size() // _BYTES_A_TASK)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spans = spanned(reader, listing.spans())
    seen, twice = Observation("rows"), Observation("twice")
    rows = marked(from_snapshots(reader, files), spans)
    first = F.max(F.when(F.col("bad").isNotNull(), F.struct("file", "bad")))
    good = rows.observe(seen, first.alias("first"), F.count("*").alias("all")).where(F.col("bad").isNull())
    grown = with_growth(good, before(reader, listing))
    double = F.max(F.when(F.col("twice"), F.struct("time", "broker", "topic", "partition")))
    dates = len({(span.taken.cluster, span.taken.time.date()) for span in listing.spans()})
    _write(
        grown.observe(twice, double.alias("first"), F.count("*").alias("all"))
        .drop("twice")
        .repartition(min(tasks, dates), "cluster", "date")
        .sortWithinPartitions("cluster", "date", "time", "broker", "topic", "partition"),
        folder / "replicas",
    )
    if found := seen.get["first"]:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}; move it out of the history, and try again")
    if found := twice.get["first"]:
        where = f"{found['topic']}-{found['partition']} on broker {found['broker']} at {found['time']}"
        raise Invalid(f"a snapshot holds {where} twice; move it out of the history, and try again")
    replicas = spark.read.schema(schema(REPLICAS)).parquet(str(folder / "replicas"))
    _write(
        by_broker(replicas).coalesce(1).sortWithinPartitions("cluster", "date", "time", "broker"), folder / "brokers"
    )
    return Tables(replicas=folder / "replicas", brokers=folder / "brokers", rows=twice.get["all"])


def _write(table: DataFrame, folder: Path) -> None:
    table.write.partitionBy("cluster", "date").options(**_OPTIONS).parquet(str(folder))
