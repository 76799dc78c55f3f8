"""The job that compacts a history. One pass over the snapshots creates the two tables of the history."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.sizes.history import Listing
from kquota.spark.files import Files
from kquota.spark.growth import REPLICAS, before, by_broker, marked, spanned, with_growth
from kquota.spark.reader import Reader, schema_of
from kquota.spark.sizes import from_snapshots

_BYTES_A_TASK: Final = 4_000_000
_LAYOUT: Final = {
    "compression": "zstd",
    "maxRecordsPerFile": "8000000",
    # Row groups are so small that some contain only followers. Jobs that need only leaders skip these groups.
    "parquet.block.row.count.limit": "250000",
    "parquet.page.row.count.limit": "50000",
}
_ORDER: Final = ("cluster", "date", "follows", "time", "broker", "topic", "partition")


def tables(reader: Reader, files: Files, listing: Listing, folder: Path) -> int:
    """Write the waiting snapshots of `listing` as two tables, `folder/replicas` and `folder/brokers`.

    `files` has the snapshots. Return the number of rows in the table of replicas.

    Raises Invalid for an invalid row and for a replica that is listed twice, because a history contains only complete
    snapshots. In this case, `folder` contains a table that must not be used. Also raises the errors of
    `Reader.batches`.
    """
    spark = reader.spark
    tasks = max(2, files.size() // _BYTES_A_TASK)
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    spans = spanned(reader, listing.spans())
    seen, twice = Observation("rows"), Observation("twice")
    rows = marked(from_snapshots(reader, files), spans)
    first = F.max(F.when(F.col("bad").isNotNull(), F.struct("file", "bad")))
    good = rows.observe(seen, first.alias("first")).where(F.col("bad").isNull())
    grown = with_growth(good, before(reader, listing))
    double = F.max(F.when(F.col("twice"), F.struct("cluster", "time", "broker", "topic", "partition")))
    dates = len({(span.taken.cluster, span.taken.time.date()) for span in listing.spans()})
    ordered = (
        grown.observe(twice, double.alias("first"), F.count("*").alias("all"))
        .drop("twice")
        .repartition(min(tasks, dates), "cluster", "date")
        .withColumn("follows", F.coalesce(~F.col("leader"), F.lit(True)))
        .sortWithinPartitions(*_ORDER)
        .drop("follows")
    )
    write(ordered, folder / "replicas")
    if found := seen.get["first"]:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}. Move the file out of the history and try again")
    if found := twice.get["first"]:
        where = f"snapshot of cluster {found['cluster']} at {found['time']}"
        replica = f"{found['topic']}-{found['partition']} on broker {found['broker']}"
        raise Invalid(f"{where}: {replica} is listed twice. Move the snapshot out of the history and try again")
    replicas = spark.read.schema(schema_of(REPLICAS)).parquet(str(folder / "replicas"))
    brokers = by_broker(replicas).coalesce(1).sortWithinPartitions("cluster", "date", "time", "broker")
    write(brokers, folder / "brokers")
    return int(twice.get["all"])


def write(table: DataFrame, folder: Path) -> None:
    """Write a table in the format of a history. The rows must already be sorted."""
    table.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    table.write.partitionBy("cluster", "date").options(**_LAYOUT).parquet(str(folder))
