"""Replica rows and a plan joined: one row a partition, who holds it, who leads it, how large it is, where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.pace.room import Volume
from kquota.spark.files import Files
from kquota.spark.plans import Planned

KEY: Final = ("topic", "partition")
_VOLUME: Final = ("broker", "log_dir", "volume_total", "volume_usable")
_JOINED: Final = {
    "replica": "struct<broker: int, size: bigint, leader: boolean, in_sync: boolean>",
    "targets": "array<int>",
    "wrong": "struct<place: bigint, why: string>",
    "w": "double",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the input was, and how many of its rows were left out: nothing goes silently.

    `bad` rows have no broker, topic or partition, or no size of 0 or more; `future` ones are copies between two log
    dirs of one broker; of a replica that stands there twice the largest row is kept, the others are `duplicate`.
    `offline` counts log dirs that their broker could not read: their replicas are missing here.
    """

    cluster: str | None
    time: str | None
    brokers: tuple[int, ...]
    volumes: tuple[Volume, ...]
    bad: int
    future: int
    duplicate: int
    offline: int


def judged(replicas: DataFrame) -> DataFrame:
    """The rows with `why` one is left out; null for a replica that counts, `empty` if it only names its broker."""
    whole = F.col("broker").isNotNull() & (F.col("topic") != "") & (F.col("partition") >= 0) & (F.col("size") >= 0)
    empty = F.col("broker").isNotNull() & F.col("topic").isNull() & F.col("size").isNull()
    why = (
        F.when(F.col("offline"), "offline")
        .when(empty, "empty")
        .when(~F.coalesce(whole, F.lit(False)), "bad")
        .when(F.coalesce("future", F.lit(False)), "future")
    )
    return replicas.withColumn("why", why)


def health(rows: DataFrame, files: Files) -> Health:
    """What is to be said of judged rows as they are. Raises Invalid for unusable ones, naming the file."""
    found = rows.agg(
        *(F.count_if(F.col("why") == why).alias(why) for why in ("bad", "future", "offline")),
        F.count_if(F.col("why").isNull()).alias("good"),
        F.max(F.when(F.col("problem").isNotNull(), F.struct("file", "problem"))).alias("problem"),
        F.sort_array(F.collect_set("broker")).alias("brokers"),
        F.sort_array(F.collect_set(F.struct("cluster", "time"))).alias("taken"),
        F.sort_array(F.collect_set(F.when(F.col("broker").isNotNull(), F.struct(*_VOLUME)))).alias("volumes"),
    ).collect()[0]
    if found["problem"]:
        raise Invalid(f"{files.name(found['problem']['file'])}: {found['problem']['problem']}")
    everything = ", ".join(files.names.values())
    if not found["good"]:
        raise Invalid(f"{everything}: holds no replica")
    if len(found["taken"]) > 1:
        raise Invalid(f"{everything}: holds rows of {len(found['taken'])} snapshots; give one of them in each file")
    return Health(
        cluster=found["taken"][0]["cluster"],
        time=found["taken"][0]["time"],
        brokers=tuple(found["brokers"]),
        volumes=tuple(
            Volume(broker=broker, log_dir=log_dir, total=total, usable=usable)
            for broker, log_dir, total, usable in found["volumes"]
            if log_dir is not None
        ),
        bad=found["bad"],
        future=found["future"],
        duplicate=0,
        offline=found["offline"],
    )


def partitions(rows: DataFrame, plan: Planned, rates: DataFrame | None, assumed_size: int | None) -> DataFrame:
    """One row a partition of the judged rows and of the plan; `rates` has `w`, the writes in bytes per second.

    Who leads: whom the input names, else the first of the plan's replicas that holds the partition already, else the
    lowest broker that holds it. Who is in sync: whom the input names, else every current replica. A partition of the
    plan that nobody holds has no leader; with an `assumed_size`, in bytes, the plan's first replica holds and leads it.
    """
    return _standing(_joined(rows, plan, rates), assumed_size)


def _joined(rows: DataFrame, plan: Planned, rates: DataFrame | None) -> DataFrame:
    """All that is told of a partition, side by side. One exchange of rows: a join would sort both of its sides."""
    held = rows.where(F.col("why").isNull()).withColumn("replica", F.struct("broker", "size", "leader", "in_sync"))
    told = [_shaped(held, "replica"), _shaped(plan.frame, "targets", "wrong")]
    if rates is not None:
        told.append(_shaped(rates, "w"))
    return (
        reduce(lambda one, other: one.unionAll(other), told)
        .groupBy(*KEY)
        .agg(
            # The largest of equals comes first.
            F.sort_array(F.collect_list("replica"), asc=False).alias("every"),
            F.min(F.when(F.col("replica.leader"), F.col("replica.broker"))).alias("told"),
            F.first("targets", ignorenulls=True).alias("targets"),
            F.min("wrong").alias("wrong"),
            F.count_if(F.col("targets").isNotNull()).alias("planned"),
            F.max("w").alias("w"),
        )
        # A rate alone is of a partition that is not there any more.
        .where((F.size("every") > 0) | F.col("targets").isNotNull() | F.col("wrong").isNotNull())
    )


def _shaped(frame: DataFrame, *columns: str) -> DataFrame:
    told = (F.col(name) if name in columns else F.lit(None).cast(kind).alias(name) for name, kind in _JOINED.items())
    return frame.select(*KEY, *told)


def _standing(told: DataFrame, assumed_size: int | None) -> DataFrame:
    # Of each broker's rows the first is kept.
    once = F.filter("every", lambda row, n: (n == 0) | (F.get("every", n - 1)["broker"] != row["broker"]))
    staying = F.filter("targets", lambda broker: F.array_contains("holders", broker))
    return (
        _assumed(told, assumed_size)
        .withColumn("replicas", once)
        .withColumn("holders", F.col("replicas.broker"))
        .withColumn("leader", F.coalesce("told", F.get(staying, F.lit(0)), F.array_min("holders")))
        .withColumn("size", F.get(F.filter("replicas", lambda r: r["broker"] == F.col("leader")), F.lit(0))["size"])
        .withColumn("adds", F.coalesce(F.array_except("targets", "holders"), F.array()))
        .withColumn("followers", F.filter("replicas", lambda r: r["broker"] != F.col("leader")))
        .withColumn("in_sync", F.size(F.filter("followers", lambda r: F.coalesce(r["in_sync"], F.lit(True)))))
        .withColumn("mute", F.exists("followers", lambda r: r["in_sync"].isNull()))
    )


def _assumed(told: DataFrame, assumed_size: int | None) -> DataFrame:
    if assumed_size is None:
        return told.withColumn("assumed", F.lit(False))
    first = F.get("targets", F.lit(0))
    replica = F.struct(first, F.lit(assumed_size), F.lit(True), F.lit(None)).cast(_JOINED["replica"])
    return (
        told.withColumn("assumed", F.size("every") == 0)
        .withColumn("every", F.when(F.col("assumed"), F.array(replica)).otherwise(F.col("every")))
        .withColumn("told", F.when(F.col("assumed"), first).otherwise(F.col("told")))
    )
