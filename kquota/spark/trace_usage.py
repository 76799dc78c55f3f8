"""The quota use of clients in a trace of requests, in the columns of usage snapshots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate.trace import TraceStream
from kquota.spark.reader import Reader
from kquota.spark.trace import requests, surveyed
from kquota.spark.trace_files import BadRows, TraceFiles
from kquota.spark.usage import UsageJob, by_day
from kquota.terms import FULL_SAMPLES_MS

_MOST_SECONDS: Final = 2**31 - 1
_STREAM: Final = TraceStream._fields


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceUse:
    """The quota use in a part of a trace."""

    job: UsageJob
    begin: int
    """The start of this part, in milliseconds as in the column `ms` of the trace."""
    end: int
    """The time of the last valid request, in milliseconds as in the column `ms` of the trace."""


def opened(
    reader: Reader, trace: TraceFiles, bad: BadRows, cluster_id: str, keys: Collection[str], ms: int
) -> TraceUse | None:
    """Return the quota use in the last `ms` milliseconds of a trace, or None if no row is valid.

    `bad` receives the invalid rows.
    """
    rows = requests(reader, trace)
    if (times := surveyed(rows, bad)) is None:
        return None
    first, last = times
    begin = max(first, last - ms)
    good = rows.where(~F.col("bad") & (F.col("at") >= begin))
    days = by_day(readings(good, cluster_id, keys)).persist()
    dates = days.select("date").distinct().count()
    return TraceUse(job=UsageJob(reader=reader, days=days, most_rows=dates), begin=begin, end=last)


def readings(rows: DataFrame, cluster_id: str, keys: Collection[str]) -> DataFrame:
    """Return the readings of each key, client and broker: one for each window of `FULL_SAMPLES_MS` in which the client
    used the quota, and one for each gap between two such windows.

    `rows` are the valid requests. The use in a gap is 0, because the client is idle. A client that has neither a user
    nor a client-id has no quota, and is left out.
    """
    named = rows.where((F.col("user") != "") | (F.col("client_id") != ""))
    window = F.expr(f"at div {FULL_SAMPLES_MS}").alias("window")
    sums = named.groupBy(*_STREAM, window).agg(*(F.sum(QUOTA_KEYS[key].counts).alias(key) for key in keys))
    each = (
        sums.select(*_STREAM, "window", F.lit(key).alias("key"), (F.col(key) * _factor(key)).alias("used"))
        for key in keys
    )
    used = reduce(DataFrame.unionAll, each).where("used > 0")
    following = F.lead("window").over(Window.partitionBy(*_STREAM, "key").orderBy("window"))
    idle = used.withColumn("idle", following - F.col("window") - 1).where("idle > 0")
    gaps = idle.select(
        *_STREAM, (F.col("window") + 1).alias("window"), "key", F.lit(0.0).alias("used"), F.col("idle").alias("windows")
    )
    every = used.withColumn("windows", F.lit(1).cast("bigint")).unionByName(gaps)
    return every.select(*_columns(cluster_id))


def _factor(key: str) -> float:
    """Return the factor that converts the sum over a window of `FULL_SAMPLES_MS` to the unit of the key."""
    return 100 / FULL_SAMPLES_MS if QUOTA_KEYS[key].model is Model.SHARE else 1_000 / FULL_SAMPLES_MS


def _columns(cluster_id: str) -> list[Column]:
    time = F.timestamp_millis(F.col("window") * FULL_SAMPLES_MS)
    return [
        F.lit(cluster_id).alias("cluster"),
        time.alias("time"),
        F.least(F.col("windows") * (FULL_SAMPLES_MS // 1_000), F.lit(_MOST_SECONDS)).cast("int").alias("seconds"),
        F.col("key"),
        *(F.nullif(F.col(name), F.lit("")).alias(name) for name in ("user", "client_id")),
        F.col("broker"),
        F.col("used"),
        F.lit(None).cast("double").alias("throttle_ms"),
        F.lit(None).cast("double").alias("tokens"),
        F.date_format(time, "yyyy-MM-dd").alias("date"),
    ]
