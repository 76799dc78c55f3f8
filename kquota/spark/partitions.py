"""Replica rows joined with a plan: one row for each partition, with its holders, leader, size and targets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota.errors import Invalid, NextStep, Parameter
from kquota.pace.disk_space import Volume
from kquota.spark.files import Files
from kquota.spark.plans import PlanFrame
from kquota.spark.sizes import SNAPSHOT, is_replica

KEY: Final = ("topic", "partition")
_USED: Final = ("cluster", "time", *KEY, "size", "leader", "in_sync", "file", "problem")
_VOLUME: Final = ("broker", "log_dir", "volume_total", "volume_usable")
_JOINED: Final = {
    "replica": "struct<broker: int, size: bigint, leader: boolean, in_sync: boolean>",
    "targets": "array<int>",
    "w": "double",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The contents of the input, and the numbers of rows and log dirs that are left out."""

    cluster: str | None
    """The cluster id, or None if the input does not report it."""
    time: str | None
    """The time of the snapshot, or None if the input does not report it."""
    brokers: tuple[int, ...]
    """The brokers in the input, sorted by id."""
    volumes: tuple[Volume, ...]
    """The volume of each log dir, sorted by broker and log dir."""
    bad: int
    """The number of rows that lack a broker, topic, partition or valid size."""
    future: int
    """The number of rows for copies between two log dirs of one broker."""
    duplicate: int
    """The number of rows for a replica that is already listed. The largest row of the replica is kept."""
    offline: int
    """The number of log dirs that their broker could not read. Their replicas are missing."""


def judged(replicas: DataFrame) -> DataFrame:
    """Return the rows with only the columns that the sums need, and `why`, the reason why a row is left out.

    `why` is null for a replica that counts, and `empty` for a row that only shows that its broker exists.
    """
    empty = F.col("broker").isNotNull() & F.col("topic").isNull() & F.col("size").isNull()
    why = (
        F.when(F.col("offline"), "offline")
        .when(empty, "empty")
        .when(~is_replica(), "bad")
        .when(F.coalesce("future", F.lit(False)), "future")
    )
    return replicas.select(*_USED, *_VOLUME, why.alias("why"))


def health(rows: DataFrame, files: Files) -> Health:
    """Return the health of rows from `judged`. Its `duplicate` is 0, because `flows.summed` counts duplicates.

    Raises Invalid if a file is unusable, if no row is a replica that counts, or if the rows come from several
    snapshots. The message names the files or the history.
    """
    # Rows are grouped by columns with few values, because collecting these values as sets takes ten times as long.
    counts = [F.count_if(F.col("why") == why).alias(why) for why in ("bad", "future", "offline")]
    good, problems = F.count_if(F.col("why").isNull()), F.count("problem")
    counted = rows.groupBy("cluster", "time", *_VOLUME).agg(*counts, good.alias("good"), problems.alias("problems"))
    found = counted.collect()
    if any(row["problems"] for row in found):
        file, problem = rows.where(F.col("problem").isNotNull()).agg(F.max(F.struct("file", "problem"))).collect()[0][0]
        cure = ("Give its folder with ", Parameter("history")) if problem == SNAPSHOT else (NextStep.TAKE_SIZES,)
        raise Invalid(f"{files.name(file)}: {problem}. ", *cure)
    named = ", ".join(files.given_names())
    everything = named or "the history"
    if not any(row["good"] for row in found):
        again = NextStep.TAKE_SIZES if named else NextStep.TAKE_SNAPSHOT
        raise Invalid(f"{everything}: contains no usable replica. ", again)
    taken = {(row["cluster"], row["time"]) for row in found}
    if len(taken) > 1:
        raise Invalid(f"{everything}: contains rows of {len(taken)} snapshots. Give the files of one snapshot")
    ((cluster, time),) = taken
    return Health(
        cluster=cluster,
        time=time,
        brokers=tuple(sorted({row["broker"] for row in found} - {None})),
        volumes=_volumes(found),
        bad=sum(row["bad"] for row in found),
        future=sum(row["future"] for row in found),
        duplicate=0,
        offline=sum(row["offline"] for row in found),
    )


def _volumes(found: Iterable[Row]) -> tuple[Volume, ...]:
    """Return the volume of each log dir. A row without sizes counts only if no row of the log dir has sizes."""
    known: dict[tuple[int, str], Volume] = {}
    for row in found:
        place = (row["broker"], row["log_dir"])
        if None not in place and (place not in known or known[place].total is None):
            total, usable = row["volume_total"], row["volume_usable"]
            known[place] = Volume(broker=place[0], log_dir=place[1], total=total, usable=usable)
    return tuple(volume for _, volume in sorted(known.items()))


def partitions(
    rows: DataFrame, plan: PlanFrame, rates: DataFrame | None, assumed_size: int | None, *, detailed: bool
) -> DataFrame:
    """Return one row for each partition of the judged rows and the plan. `rates` has `w`, the write rate in bytes per
    second.

    `size` is the size of the leader's replica, and `log_size` is the total size of all replicas, in bytes. `holders`
    are the brokers that have a replica, and `adds` are the targets that have none.

    If the input does not report a leader, the leader is the plan's first replica that already holds the partition, or
    else the holder with the lowest id. If the input does not report the in-sync replicas, all current replicas count as
    in sync. A partition of the plan that no broker holds has no leader. With an `assumed_size`, in bytes, the plan's
    first replica holds and leads this partition. `replicas` and `targets` need much memory, so they are included only
    if `detailed` is set.
    """
    found = _with_calculated(_joined(rows, plan, rates), assumed_size)
    return found if detailed else found.drop("replicas", "targets")


def _joined(rows: DataFrame, plan: PlanFrame, rates: DataFrame | None) -> DataFrame:
    """Return one row with all values for each partition, after a single shuffle. A join would sort both sides."""
    held = rows.where(F.col("why").isNull()).withColumn("replica", F.struct("broker", "size", "leader", "in_sync"))
    # An invalid entry gets an empty list of replicas, which no valid entry has.
    wanted = F.when(F.col("wrong").isNull(), F.col("targets")).otherwise(_no_brokers())
    frames = [held, plan.frame.withColumn("targets", wanted), *([] if rates is None else [rates])]
    columns = list(_JOINED)[: len(frames)]
    shaped = (_shaped(columns, frame, own) for frame, own in zip(frames, columns, strict=True))
    silent = F.col("replica").isNotNull() & F.col("replica.in_sync").isNull()
    return (
        reduce(DataFrame.unionAll, shaped)
        # Group by a number first, because topic names often have the same beginning and are slow to compare.
        .withColumn("hash", F.xxhash64(*KEY))
        # Without this step, Spark would aggregate before the shuffle and again after it.
        .repartition("hash")
        .groupBy("hash", *KEY)
        .agg(
            F.collect_list("replica").alias("every"),
            F.min(F.when(F.col("replica.leader"), F.col("replica.broker"))).alias("reported_leader"),
            F.count_if(~F.col("replica.in_sync")).alias("lags"),
            F.count_if(silent).alias("silent"),
            F.sum("replica.size").alias("sizes"),
            # Lists are collected, because `first` and `min` would copy a list for each row.
            F.collect_list("targets").alias("plans"),
            (F.lit(None).cast("double") if rates is None else F.max("w")).alias("w"),
        )
        # A partition with only a rate no longer exists.
        .where((F.size("every") > 0) | (F.size("plans") > 0))
        .withColumns(
            {
                "targets": F.get("plans", F.lit(0)),
                "planned": F.size("plans"),
                "wrong": F.array_contains("plans", _no_brokers()),
            }
        )
        .drop("plans", "hash")
    )


def _shaped(columns: Iterable[str], frame: DataFrame, own: str) -> DataFrame:
    own_columns = (F.col(name) if name == own else F.lit(None).cast(_JOINED[name]).alias(name) for name in columns)
    return frame.select(*KEY, *own_columns)


def _no_brokers() -> Column:
    return F.array().cast("array<int>")


def _with_calculated(joined: DataFrame, assumed_size: int | None) -> DataFrame:
    """Add the calculated columns in few steps, because Spark analyzes all earlier steps again for each step, which
    takes 0.1 s.
    """
    # Spark runs lambdas uncompiled, so only the few partitions that need a lambda use one.
    once = F.filter("every", lambda row, n: (n == 0) | (F.get("every", n - 1)["broker"] != row["broker"]))
    lagging = F.filter("replicas", lambda r: ~r["in_sync"] & (r["broker"] != F.col("leader")))
    isr_unknown = F.exists("replicas", lambda r: r["in_sync"].isNull() & (r["broker"] != F.col("leader")))
    sum_of_sizes = F.aggregate("replicas", F.lit(0).cast("bigint"), lambda total, r: total + r["size"])
    others, place = F.size("holders") - 1, F.array_position(F.col("every.broker"), F.col("leader")).cast("int")
    twice = F.size("every") > F.size("holders")
    steps = (
        {"holders": F.array_distinct("every.broker")},
        {
            # Sort the rows only if a replica is listed twice, so that its largest row comes first.
            "every": F.when(twice, F.sort_array("every", asc=False)).otherwise(F.col("every")),
            "leader": F.coalesce(
                "reported_leader", F.get(F.array_intersect("targets", "holders"), F.lit(0)), F.array_min("holders")
            ),
        },
        {"replicas": F.when(twice, once).otherwise(F.col("every"))},
        {
            "size": F.get("every.size", place - 1),
            "adds": F.coalesce(F.array_except("targets", "holders"), _no_brokers()),
            "lagging": F.when(F.col("lags") == 0, 0).otherwise(F.size(lagging)),
            "isr_unknown": F.when((F.col("silent") == 0) | (others == 0), F.lit(False)).otherwise(isr_unknown),
            "log_size": F.when(twice, sum_of_sizes).otherwise(F.col("sizes")),
            "duplicate": F.size("every") - F.size("holders"),
            "leader_reported": F.col("reported_leader").isNotNull(),
            "wanted": F.size("targets"),
        },
        {"in_sync": others - F.col("lagging")},
    )
    found = reduce(lambda frame, step: frame.withColumns(step), steps, _assumed(joined, assumed_size))
    return found.drop("every", "sizes", "reported_leader", "lags", "silent")


def _assumed(joined: DataFrame, assumed_size: int | None) -> DataFrame:
    if assumed_size is None:
        return joined.withColumn("assumed", F.lit(False))
    first = F.get("targets", F.lit(0))
    replica = F.struct(first, F.lit(assumed_size), F.lit(True), F.lit(None)).cast(_JOINED["replica"])
    empty = F.size("every") == 0
    return joined.withColumns(
        {
            "assumed": empty,
            "every": F.when(empty, F.array(replica)).otherwise(F.col("every")),
            "reported_leader": F.when(empty, first).otherwise(F.col("reported_leader")),
            "sizes": F.when(empty, F.lit(assumed_size)).otherwise(F.col("sizes")),
        }
    )
