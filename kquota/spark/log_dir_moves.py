"""The sums of a plan's moves between the log dirs of a broker: the bytes that each broker copies."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota.pace.log_dir_copy import LogDirWork
from kquota.spark.partitions import KEY

_REPLICA = (*KEY, "broker")


def log_dir_moves(replicas: DataFrame, places: DataFrame, rates: DataFrame | None) -> tuple[LogDirWork, ...]:
    """Return the work of each broker, by id. `replicas` has the columns of `spark.sizes`, `places` the log dirs of a
    plan.

    A replica that is already in its log dir does not count. If it is being copied there, only the remaining bytes
    count. `rates` has `w`, the write rate of partitions in bytes per second. A broker with an unknown rate has unknown
    writes.
    """
    # A path in a plan may end with a slash.
    wanted = places.select(*_REPLICA, F.regexp_replace("log_dir", "(?<=.)/+$", "").alias("target"))
    future = F.coalesce("future", F.lit(False))
    here, there = ~future, future & (F.col("log_dir") == F.col("target"))
    moving = (
        replicas.join(F.broadcast(wanted), list(_REPLICA))
        .groupBy(*_REPLICA, "target")
        .agg(
            F.max(F.when(here, F.col("size"))).alias("size"),
            F.max(F.when(here, F.col("log_dir"))).alias("path"),
            F.coalesce(F.max(F.when(there, F.col("size"))), F.lit(0)).alias("copied"),
        )
        .where(F.col("size").isNotNull() & (F.col("path") != F.col("target")))
    )
    replicas = (
        moving.withColumn("w", F.lit(None).cast("double")) if rates is None else moving.join(rates, list(KEY), "left")
    )
    sums = replicas.groupBy("broker").agg(
        F.count("*").alias("copies"),
        F.sum(F.greatest(F.col("size") - F.col("copied"), F.lit(0))).alias("bytes"),
        F.sum("w").alias("writes"),
        F.count("w").alias("known"),
    )
    return tuple(
        LogDirWork(
            broker=row["broker"],
            copies=row["copies"],
            bytes=row["bytes"],
            writes=row["writes"] if row["known"] == row["copies"] else None,
        )
        for row in sorted(sums.collect(), key=lambda row: row["broker"])
    )
