"""The job behind `move estimate`: replica sizes and a plan in, the few sums per broker out that `pace` reckons with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.pace.work import Link, Work, work
from kquota.reassign.plan import Plan
from kquota.sizes.moved import Moved
from kquota.spark.files import Files
from kquota.spark.moved import moved
from kquota.spark.reader import Reader
from kquota.terms import BrokerId, TopicPartition

_NAMED: Final = 5
_KEY: Final = ["topic", "partition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """What producers write, in bytes per second, by partition or by the broker that takes it in; both empty: unknown.

    A broker's rate is allotted to the partitions it leads, in proportion to their size.
    """

    by_partition: Mapping[TopicPartition, float]
    by_broker: Mapping[BrokerId, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the input was, and how many of its rows were left out: nothing goes silently.

    `bad` rows have no broker, topic or partition, or no size of 0 or more; `future` ones are copies between two log
    dirs of one broker; of a replica that stands there twice the largest row is kept, the others are `duplicate`.
    `offline` counts log dirs that their broker could not read: their replicas are missing here.
    """

    cluster: str | None
    time: str | None
    brokers: tuple[BrokerId, ...]
    bad: int
    future: int
    duplicate: int
    offline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A move's sums. Sizes in bytes.

    `max_bytes_in` is the greatest known rate of writes to one leader, None when none is known; `unallotted` are brokers
    whose rate went to no partition. `leaders_assumed` and `in_sync_assumed` count moving partitions on which the input
    is mute; `lagging` counts current followers out of sync: their catching up shares the throttle, and is in no sum.
    """

    health: Health
    partitions: int
    moving: int
    log_size: int
    max_bytes_in: float | None
    unallotted: tuple[BrokerId, ...]
    leaders_assumed: int
    in_sync_assumed: int
    lagging: int
    work: Work
    moved: Moved | None = None


def planned(reader: Reader, plan: Plan) -> DataFrame:
    """A plan's columns: topic, partition, targets."""
    targets = ({"topic": p.topic, "partition": p.partition, "targets": r} for p, r in plan.targets.items())
    return reader.table("plan", targets, "topic string, partition int, targets array<int>")


def measure(
    replicas: DataFrame, files: Files, plan: DataFrame, writes: Writes, reader: Reader, *, detailed: bool = False
) -> Measured:
    """The sums of `plan` over `replicas` (`spark.sizes`' columns). Raises Invalid for unusable input, naming it.

    Who leads: whom the input names, else the first of the plan's replicas that holds the partition already, else the
    lowest broker that holds it. Who is in sync: whom the input names, else every current replica.
    `moved`, which only a report shows, costs two jobs more: it is looked for where `detailed` asks for it.
    """
    rows = replicas.withColumn("why", _why()).persist()
    health = _health(rows, files)
    partitions = _with_writes(_partitions(rows, plan), writes, reader).persist()
    totals = _totals(partitions)
    if totals["unknown"]:
        names = [f"{topic}-{partition}" for topic, partition in totals["unknown"][:_NAMED]]
        more = f" and {len(totals['unknown']) - _NAMED} more" if len(totals["unknown"]) > _NAMED else ""
        raise Invalid(f"the plan names partitions that the sizes do not hold: {', '.join(names)}{more}")
    return Measured(
        health=replace(health, duplicate=totals["duplicate"]),
        partitions=totals["partitions"],
        moving=totals["moving"],
        log_size=totals["log_size"],
        max_bytes_in=_max_bytes_in(partitions, writes),
        unallotted=tuple(sorted(set(writes.by_broker) - set(totals["leaders"]))),
        leaders_assumed=totals["leaders_assumed"],
        in_sync_assumed=totals["in_sync_assumed"],
        lagging=totals["lagging"],
        work=_carried(partitions),
        moved=moved(partitions) if detailed else None,
    )


def _why() -> Column:
    """Why a row is left out; null for a replica that counts; `empty` when it only tells that its broker exists."""
    whole = F.col("broker").isNotNull() & (F.col("topic") != "") & (F.col("partition") >= 0) & (F.col("size") >= 0)
    empty = F.col("broker").isNotNull() & F.col("topic").isNull() & F.col("size").isNull()
    return (
        F.when(F.col("offline"), "offline")
        .when(empty, "empty")
        .when(~F.coalesce(whole, F.lit(False)), "bad")
        .when(F.coalesce("future", F.lit(False)), "future")
    )


def _health(rows: DataFrame, files: Files) -> Health:
    found = rows.agg(
        *(F.count_if(F.col("why") == why).alias(why) for why in ("bad", "future", "offline")),
        F.count_if(F.col("why").isNull()).alias("good"),
        F.max(F.when(F.col("problem").isNotNull(), F.struct("file", "problem"))).alias("problem"),
        F.sort_array(F.collect_set("broker")).alias("brokers"),
        F.sort_array(F.collect_set(F.struct("cluster", "time"))).alias("taken"),
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
        bad=found["bad"],
        future=found["future"],
        duplicate=0,
        offline=found["offline"],
    )


def _partitions(rows: DataFrame, plan: DataFrame) -> DataFrame:
    """One row a partition, of the sizes and of the plan: who holds it, who leads it, how large it is, where it goes."""
    # The largest of equals comes first, and of each broker's rows the first is kept.
    every = F.sort_array(F.collect_list(F.struct("broker", "size", "leader", "in_sync")), asc=False)
    held = rows.where(F.col("why").isNull()).groupBy(*_KEY).agg(every.alias("every"))
    once = F.filter("every", lambda row, n: (n == 0) | (F.get("every", n - 1)["broker"] != row["broker"]))
    told = F.array_min(F.transform(F.filter("replicas", lambda r: r["leader"]), lambda r: r["broker"]))
    staying = F.filter("targets", lambda broker: F.array_contains("holders", broker))
    return (
        held.withColumn("replicas", once)
        .withColumn("holders", F.transform("replicas", lambda r: r["broker"]))
        .join(plan, _KEY, "full")
        .withColumn("told", told)
        .withColumn("leader", F.coalesce("told", F.get(staying, F.lit(0)), F.array_min("holders")))
        .withColumn("size", F.get(F.filter("replicas", lambda r: r["broker"] == F.col("leader")), F.lit(0))["size"])
        .withColumn("adds", F.coalesce(F.array_except("targets", "holders"), F.array()))
        .withColumn("followers", F.filter("replicas", lambda r: r["broker"] != F.col("leader")))
        .withColumn("in_sync", F.size(F.filter("followers", lambda r: F.coalesce(r["in_sync"], F.lit(True)))))
    )


def _with_writes(partitions: DataFrame, writes: Writes, reader: Reader) -> DataFrame:
    """The partitions with `w`, what producers write to each in bytes per second; null where nobody told."""
    if writes.by_partition:
        rates = ({"topic": p.topic, "partition": p.partition, "w": rate} for p, rate in writes.by_partition.items())
        schema = "topic string, partition int, w double"
        return partitions.join(reader.table("rates", rates, schema), _KEY, "left")
    if not writes.by_broker:
        return partitions.withColumn("w", F.lit(None).cast("double"))
    rate = F.create_map(*(F.lit(value) for pair in writes.by_broker.items() for value in pair))
    led = partitions.groupBy("leader").agg(F.sum("size").alias("led_size"), F.count("*").alias("led"))
    # Where all that a broker leads is empty, size says nothing, and each partition gets the same.
    part = F.when(F.col("led_size") > 0, F.col("size") / F.col("led_size")).otherwise(1 / F.col("led"))
    return partitions.join(led, "leader", "left").withColumn("w", rate[F.col("leader")] * part)


def _totals(partitions: DataFrame) -> Row:
    moving, unknown = F.size("adds") > 0, F.col("replicas").isNull()
    mute = F.exists("followers", lambda r: r["in_sync"].isNull())
    lagging = F.when(moving, F.size("followers") - F.col("in_sync")).otherwise(0)
    size = F.aggregate("replicas", F.lit(0).cast("bigint"), lambda total, r: total + r["size"])
    return partitions.agg(
        F.count_if(~unknown).alias("partitions"),
        F.count_if(moving).alias("moving"),
        F.sum(size).alias("log_size"),
        F.sum(F.size("every") - F.size("replicas")).alias("duplicate"),
        F.collect_set("leader").alias("leaders"),
        F.count_if(moving & F.col("told").isNull()).alias("leaders_assumed"),
        F.count_if(moving & mute).alias("in_sync_assumed"),
        F.sum(lagging).alias("lagging"),
        F.sort_array(F.collect_list(F.when(unknown, F.struct(*_KEY)))).alias("unknown"),
    ).collect()[0]


def _max_bytes_in(partitions: DataFrame, writes: Writes) -> float | None:
    if writes.by_partition:
        led = partitions.groupBy("leader").agg(F.sum("w").alias("bytes_in"))
        rate: float | None = led.agg(F.max("bytes_in")).collect()[0][0]
        return rate
    return max(writes.by_broker.values(), default=None)


def _carried(partitions: DataFrame) -> Work:
    """What each leader sends to each destination, and what its in-sync followers fetch besides."""
    moving = partitions.where(F.size("adds") > 0)
    # A sum with one unknown in it is unknown.
    writes = F.when(F.count("w") == F.count("*"), F.sum("w"))
    links = (
        moving.select("leader", F.explode("adds").alias("destination"), "size", "w")
        .groupBy("leader", "destination")
        .agg(F.count("*").alias("copies"), F.sum("size").alias("bytes"), writes.alias("writes"))
    )
    kept_up = F.when(F.col("in_sync") == 0, 0.0).otherwise(F.col("w") * F.col("in_sync"))
    leaders = moving.withColumn("w", kept_up).groupBy("leader").agg(writes.alias("keep_up"))
    keep_up = {row["leader"]: row["keep_up"] for row in leaders.collect()}
    return work((Link(**row.asDict()) for row in links.collect()), keep_up)
