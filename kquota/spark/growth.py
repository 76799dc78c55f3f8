"""The two tables of a history: every replica of each snapshot with its growth, and the sums of each broker.

Their columns are a contract: `docs/history.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota.errors import Parameter
from kquota.sizes.history import VERSION, Listing, Span
from kquota.spark.reader import Reader
from kquota.spark.sizes import FACTS, is_replica
from kquota.terms import LONG_MAX

REPLICAS: Final = {
    "version": "int",
    "time": "timestamp",
    "seconds": "int",
    **FACTS,
    "grown": "bigint",
    "cluster": "string",
    "date": "string",
}
BROKERS: Final = {
    "version": "int",
    "time": "timestamp",
    "seconds": "int",
    "broker": "int",
    "rack": "string",
    "bytes_in": "double",
    "unknown": "bigint",
    "leaders": "bigint",
    "replicas": "bigint",
    "log_size": "bigint",
    "volume_total": "bigint",
    "volume_usable": "bigint",
    "cluster": "string",
    "date": "string",
}
NO_REPLICA: Final = "contains a row without a replica or a valid size"
_MOST_UNKNOWN: Final = 10
"""The rate of a broker is unknown if partitions with an unknown growth or leader hold more than a tenth of the bytes
that the broker leads.
"""


def spanned(reader: Reader, spans: Iterable[Span]) -> DataFrame:
    """Return one row for each snapshot: its cluster, its time as `stamp` and `time`, the time of the previous snapshot
    (`before`), and the `seconds` between the two. `before` and `seconds` are null for a cluster's first snapshot.
    """
    rows = (
        {
            "cluster": span.taken.cluster,
            "stamp": span.taken.stamp,
            "before": None if span.before is None else span.before.stamp,
            "seconds": span.seconds,
        }
        for span in spans
    )
    found = reader.table("spans", rows, "cluster string, stamp string, before string, seconds int")
    return found.withColumns({"time": F.to_timestamp("stamp"), "before": F.to_timestamp("before")})


def marked(rows: DataFrame, spans: DataFrame) -> DataFrame:
    """Return each row with the span of its snapshot, and with `bad`: the reason why it is invalid, or null. If `future`
    is null, it becomes false.
    """
    whole = is_replica()
    for name in ("start_offset", "local_start_offset", "end_offset"):
        whole = whole & F.coalesce(F.col(name) >= 0, F.lit(True))
    bad = (
        F.when(F.col("problem").isNotNull(), F.col("problem"))
        .when(F.col("time").isNull(), F.lit("contains a row whose cluster or time is not that of the first row"))
        .when(~whole, F.lit(NO_REPLICA))
    )
    marked = rows.withColumnRenamed("time", "stamp").join(F.broadcast(spans), ["cluster", "stamp"], "left")
    return marked.withColumns({"bad": bad, "future": F.coalesce("future", F.lit(False))})


def before(reader: Reader, listing: Listing) -> DataFrame | None:
    """Return the rows of each cluster's last rolled snapshot in the table `replicas`, or None if there is no such
    snapshot.

    Clusters without waiting snapshots are left out. Raises the same errors as `Reader.batches`.
    """
    clusters = {each.cluster for each in listing.waiting.values()}
    newest = [each for each in listing.newest().values() if each.cluster in clusters]
    if not newest:
        return None
    rows = ({"cluster": each.cluster, "time": each.stamp} for each in newest)
    wanted = reader.table("newest", rows, "cluster string, time timestamp")
    return (
        rolled(reader, listing, "replicas")
        .where(F.col("date").isin(sorted({f"{each.time:%Y-%m-%d}" for each in newest})))
        .join(F.broadcast(wanted), ["cluster", "time"])
    )


def rolled(reader: Reader, listing: Listing, table: str) -> DataFrame:
    """Return one of the two tables, `replicas` or `brokers`, of all rolled snapshots.

    Raises the same errors as `Reader.batches`.
    """
    columns = {"replicas": REPLICAS, "brokers": BROKERS}[table]
    return reader.batches(listing.rolled, columns, f"{table}-*.parquet", Parameter("history"), elsewhere=True)


def with_growth(rows: DataFrame, before: DataFrame | None) -> DataFrame:
    """Return the table of replicas: `rows` of snapshots with the columns of `spanned`, each with its growth.

    `before` has the last rolled snapshot of each cluster, in the columns of this table. The growth follows
    `sizes.growth.grown`, and is null for copies between log dirs (`future`). An additional column, `twice`, marks a
    replica that is listed twice in its snapshot.
    """
    every = rows.select("cluster", "time", "before", "seconds", *FACTS, F.lit(True).alias("new"))
    if before is not None:
        old = before.select("cluster", "time", *FACTS, F.lit(False).alias("new"))
        every = every.unionByName(old, allowMissingColumns=True)
    last = Window.partitionBy("cluster", "broker", "topic", "partition", "future").orderBy("time")
    known = F.struct("time", "size", "local_start_offset", "end_offset", "in_sync")
    return (
        every.withColumn("last", F.lag(known).over(last))
        .where("new")
        .withColumn("grown", F.when((F.col("last.time") == F.col("before")) & ~F.col("future"), _grown()))
        .withColumns({"version": F.lit(VERSION), "date": F.date_format("time", "yyyy-MM-dd")})
        .select(*REPLICAS, (F.col("last.time") == F.col("time")).alias("twice"))
    )


def by_broker(replicas: DataFrame) -> DataFrame:
    """Return the table of brokers, from the table of replicas.

    `bytes_in` is the growth per second of the partitions that a broker leads. If the leader of a partition changed, the
    later leader counts. Partitions with an unknown growth or leader are not included, and `unknown` counts them. If
    they hold more than a tenth of the bytes that the broker leads, `bytes_in` is null.
    """
    led = F.coalesce("leader", F.lit(True)) & ~F.col("future")
    unknown = led & (F.col("grown").isNull() | F.col("leader").isNull())
    dirs = replicas.groupBy("cluster", "date", "time", "broker", "log_dir").agg(
        F.first("seconds").alias("seconds"),
        F.first("rack").alias("rack"),
        _sum(F.col("grown"), led & ~unknown).alias("grown"),
        _sum(F.col("size"), unknown).alias("unknown_size"),
        _sum(F.col("size"), led).alias("led_size"),
        F.count_if(unknown).alias("unknown"),
        F.count_if(F.col("leader")).alias("leaders"),
        F.count_if(~F.col("future")).alias("replicas"),
        F.try_sum("size").alias("log_size"),
        F.max("volume_total").alias("volume_total"),
        F.max("volume_usable").alias("volume_usable"),
    )
    summed = ("grown", "unknown_size", "led_size", "unknown", "leaders", "replicas", "log_size")
    volumes = ("volume_total", "volume_usable")
    enough_known = F.col("unknown_size").cast("double") * _MOST_UNKNOWN <= F.col("led_size")
    return (
        dirs.groupBy("cluster", "date", "time", "broker")
        .agg(
            F.first("seconds").alias("seconds"),
            F.first("rack").alias("rack"),
            # `try_sum` gives null if a sum is too large for its column, which only damaged input can cause.
            *(F.try_sum(name).alias(name) for name in summed),
            # The sum is unknown if one value is unknown.
            *(F.when(F.count(name) == F.count("*"), F.try_sum(name)).alias(name) for name in volumes),
        )
        .withColumn("bytes_in", F.when(enough_known, F.col("grown") / F.col("seconds")))
        .withColumn("version", F.lit(VERSION))
        .select(*BROKERS)
    )


def _sum(column: Column, where: Column) -> Column:
    return F.try_sum(F.when(where, column).otherwise(0))


def _grown() -> Column:
    """Return the growth of a replica in bytes. The conditions follow `sizes.growth.grown` line by line."""
    size, end, start = F.col("size"), F.col("end_offset"), F.col("local_start_offset")
    gained = F.when(size >= F.col("last.size"), size - F.col("last.size"))
    written, held = end - F.col("last.end_offset"), end - start
    # `_long` is needed, because the products have up to 38 digits.
    product, whole = _long(written) * _long(size), _long(held)
    fits = (held > 0) & (product < _long(F.lit(LONG_MAX)) * whole + whole)
    estimate = F.when(fits, F.call_function("div", product, whole))
    return (
        F.when(start.isNull() | (F.col("last.in_sync") == F.lit(False)), None)
        .when(written.isNull(), gained)
        .when(written == 0, F.lit(0).cast("bigint"))
        .when(written < 0, None)
        .when(gained.isNotNull() & (start == F.col("last.local_start_offset")), gained)
        .otherwise(estimate)
    )


def _long(column: Column) -> Column:
    return column.cast("decimal(19)")
