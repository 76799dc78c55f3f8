"""The jobs over usage snapshots: compacted days, percentiles, and use over time.

A compacted day has one row for each quota key, client and broker. The row has the seconds of each level of use. A use
of at most 0.01 counts as 0, and each other use is rounded up to a level, by at most 2%. The seconds of several days
can be added up, so a percentile over weeks does not need the individual readings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota.errors import Parameter
from kquota.quota.advice import BucketStatistics
from kquota.quota.usage import USAGE_VERSION, QuotaBucket
from kquota.sizes.history import Listing
from kquota.spark.files import USAGE_FILES, Files, of_days
from kquota.spark.reader import CORRUPT, Reader, schema_of

USAGE: Final = {
    "version": "int",
    "key": "string",
    "user": "string",
    "client_id": "string",
    "broker": "string",
    "begin": "timestamp",
    "seconds": "bigint",
    "throttled": "bigint",
    "most": "double",
    "levels": "array<bigint>",
    "used": "array<float>",
    "lasting": "array<int>",
    "cluster": "string",
    "date": "string",
}
"""The columns of a compacted day. `docs/formats.md` documents them as a contract."""
_ROW: Final = {
    "version": "int",
    "cluster": "string",
    "time": "timestamp",
    "seconds": "int",
    "key": "string",
    "user": "string",
    "client_id": "string",
    "broker": "string",
    "used": "double",
    "throttle_ms": "double",
    "tokens": "double",
}
_BUCKET: Final = ("key", "user", "client_id", "broker")
_LEAST: Final = 0.01
_RATIO: Final = 1.02
_SECONDS_BITS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageJob:
    """The compacted days of one cluster, calculated from usage snapshots or from a trace."""

    reader: Reader
    days: DataFrame
    """The table of compacted days, in the columns of `USAGE`."""
    most_rows: int
    """The maximum number of rows in `days` for one bucket on one broker."""

    def statistics(self, percentile: float, keys: Collection[str]) -> list[BucketStatistics]:
        """Return the statistics of each bucket of these keys, in no particular order.

        `percentile` is a fraction from 0 to 1. `broker` is the broker where the percentile is highest. The maximum, the
        seconds and the throttled seconds are each the highest value of all brokers, so they may come from different
        brokers.
        """
        days = self.days.where(F.col("key").isin(*keys))
        longest = days.agg(F.max("seconds")).collect()[0][0] or 0
        # Sort only the levels that can be at or above the percentile. A week has few such levels, so this saves most
        # of the sorting.
        levels = _highest((1 - percentile) * longest * self.most_rows)
        by_broker = (
            days.withColumn("levels", levels)
            .groupBy(*_BUCKET)
            .agg(
                F.sum("seconds").alias("seconds"),
                F.sum("throttled").alias("throttled"),
                F.max("most").alias("most"),
                F.sort_array(F.flatten(F.collect_list("levels")), asc=False).alias("levels"),
            )
            .select(*_BUCKET, "seconds", "throttled", "most", _at(percentile).alias("percentile"))
        )
        highest = F.max(F.struct("percentile", "broker")).alias("highest")
        sums = (F.max(name).alias(name) for name in ("most", "seconds", "throttled"))
        found = by_broker.groupBy("key", "user", "client_id").agg(highest, *sums)
        flat = found.select("key", "user", "client_id", "most", "seconds", "throttled", "highest.*")
        return [_statistics(row) for row in flat.collect()]

    def pieces(self, wanted: Mapping[QuotaBucket, str]) -> Iterator[tuple[QuotaBucket, list[tuple[float, float]]]]:
        """Yield each wanted bucket that has readings on its broker, with the (use, seconds) pairs in order of time."""
        if not wanted:
            return
        rows = (
            {"key": bucket.key, "user": bucket.user, "client_id": bucket.client_id, "broker": broker}
            for bucket, broker in wanted.items()
        )
        these = self.reader.table("wanted", rows, ", ".join(f"{name} string" for name in _BUCKET)).alias("these")
        alike = reduce(Column.__and__, (F.col(f"days.{name}").eqNullSafe(F.col(f"these.{name}")) for name in _BUCKET))
        joined = self.days.alias("days").join(F.broadcast(these), alike, "left_semi")
        ordered = joined.groupBy(*_BUCKET).agg(
            F.sort_array(F.collect_list(F.struct("begin", "used", "lasting"))).alias("days")
        )
        for row in ordered.collect():
            parts = [(day["used"], day["lasting"]) for day in row["days"]]
            yield _bucket(row), [pair for used, lasting in parts for pair in zip(used, lasting, strict=True)]


def opened(reader: Reader, listing: Listing, files: Files, since: str) -> UsageJob:
    """Return the job that reads the listing of one cluster, starting with the day `since`.

    `files` has the waiting snapshots of the listing. Raises the errors of `Reader.batches` and `readings`.
    """
    frames = []
    if listing.rolled:
        frames.append(reader.batches(listing.rolled, USAGE, USAGE_FILES, Parameter("usage"), elsewhere=False))
    if files.names:
        frames.append(by_day(readings(reader, files)))
    days = reduce(DataFrame.unionByName, frames)
    return UsageJob(
        reader=reader,
        days=days.where(F.col("cluster").isin(listing.clusters()) & (F.col("date") >= since)),
        most_rows=len(of_days(listing)) + len({each.time.date() for each in listing.waiting.values()}),
    )


def readings(reader: Reader, files: Files) -> DataFrame:
    """Return the valid rows of usage snapshots, each with its date.

    A row is valid only if it reports a use, more than 0 seconds, and a user or client-id. Raises the same errors as
    `Reader.json_lines`.
    """
    rows = reader.json_lines(files, schema_of(_ROW))
    whole = F.col(CORRUPT).isNull() & (F.col("version") == USAGE_VERSION) & F.col("time").isNotNull()
    counted = (F.col("seconds") > 0) & (F.col("used") >= 0) & F.coalesce("user", "client_id").isNotNull()
    return rows.where(whole & counted).withColumn("date", F.date_format("time", "yyyy-MM-dd"))


def by_day(rows: DataFrame) -> DataFrame:
    """Return the table of compacted days (`USAGE`) from the rows of `readings`.

    Seconds count as throttled if the throttle time of the reading is above 0 or its number of tokens is negative.
    """
    day = ("cluster", "date", *_BUCKET)
    throttled = (F.coalesce("throttle_ms", F.lit(0.0)) > 0) | (F.coalesce("tokens", F.lit(0.0)) < 0)
    rows = rows.withColumn("level", _level())
    levels = rows.groupBy(*day, "level").agg(
        F.sum("seconds").alias("lasted"),
        F.sum(F.when(throttled, F.col("seconds")).otherwise(0)).alias("throttled"),
        F.max("used").alias("most"),
        F.collect_list(F.struct("time", "used", "seconds")).alias("readings"),
    )
    packed = F.shiftleft("level", _SECONDS_BITS) + F.col("lasted")
    days = levels.groupBy(*day).agg(
        F.sum("lasted").alias("seconds"),
        F.sum("throttled").alias("throttled"),
        F.max("most").alias("most"),
        F.sort_array(F.collect_list(packed)).alias("levels"),
        F.sort_array(F.flatten(F.collect_list("readings"))).alias("readings"),
    )
    columns = {
        "version": F.lit(USAGE_VERSION),
        "begin": F.col("readings")[0]["time"],
        "used": F.col("readings")["used"].cast("array<float>"),
        "lasting": F.col("readings")["seconds"],
    }
    return days.select(*(columns.get(name, F.col(name)).alias(name) for name in USAGE))


def write(days: DataFrame, folder: Path) -> None:
    """Write compacted days, with a folder for each cluster and day."""
    spark = days.sparkSession
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    days.repartition("cluster", "date").write.partitionBy("cluster", "date").option("compression", "zstd").parquet(
        str(folder)
    )


def _level() -> Column:
    above = F.ceil(F.log(F.col("used") / _LEAST) / math.log(_RATIO) - 1e-9)
    return F.when(F.col("used") <= _LEAST, F.lit(0)).otherwise(above).cast("bigint")


def _highest(seconds: float) -> Column:
    """Return the highest `levels` of a row. Every other level is exceeded for more than `seconds`."""
    # No level lasts less than the shortest reading, which limits the number of levels in `seconds`. One level is added
    # for the lowest one that is exceeded for at most `seconds`, and another one for rounding.
    count = F.floor(F.lit(seconds) / F.greatest(F.array_min("lasting"), F.lit(1))) + 2
    count = F.least(count, F.size("levels")).cast("int")
    return F.slice("levels", -count, count)


def _at(percentile: float) -> Column:
    """Return the lowest use that was not exceeded in the share `percentile` of the seconds. The `levels` must be in
    descending order.
    """
    enough = F.col("seconds") * percentile

    def lower(above: Column, packed: Column) -> Column:
        lasted = packed.bitwiseAND(F.lit((1 << _SECONDS_BITS) - 1))
        more = F.struct((above["lasted"] + lasted).alias("lasted"), F.shiftright(packed, _SECONDS_BITS).alias("level"))
        return F.when(F.col("seconds") - above["lasted"] >= enough, more).otherwise(above)

    none = F.struct(F.lit(0).cast("bigint").alias("lasted"), F.lit(0).cast("bigint").alias("level"))
    level = F.aggregate("levels", none, lower)["level"]
    use = F.lit(_LEAST) * F.pow(F.lit(_RATIO), level)
    return F.when(level == 0, F.lit(0.0)).otherwise(F.least(use, F.col("most")))


def _bucket(row: Row) -> QuotaBucket:
    return QuotaBucket(key=row["key"], user=row["user"], client_id=row["client_id"])


def _statistics(row: Row) -> BucketStatistics:
    return BucketStatistics(
        bucket=_bucket(row),
        broker=row["broker"],
        percentile=row["percentile"],
        most=row["most"],
        seconds=row["seconds"],
        throttled=row["throttled"],
    )
