"""Plans as DataFrames. `reassign.plan` reads JSON of kafka-reassign-partitions. Spark reads JSON lines and Parquet.

A plan that Spark reads can have millions of partitions, which never become Python objects. The rules of `reassign.plan`
also apply to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.spark.plan_files import PlanFiles
from kquota.spark.reader import CORRUPT, Reader
from kquota.terms import HIGHEST_ID, TOPIC_NAME, BrokerId, TopicPartition

_NAME: Final = f"^{TOPIC_NAME}$"
_ENTRY: Final = "topic string, `partition` bigint, replicas array<bigint>"
_PLAN: Final = "topic string, `partition` int, targets array<int>"
_COLUMNS: Final = ("topic", "partition", "replicas")
_READ: Final = "the plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFrame:
    """A plan as DataFrames. `frame` has the columns `topic`, `partition`, `targets` and `wrong`. For a valid entry,
    `wrong` is null. For an invalid entry, it has the place of the entry and the reason.

    `name` is the name of the plan in messages. If the plan names log dirs, `places` has them, with the columns `topic`,
    `partition`, `broker` and `log_dir`.
    """

    name: str
    frame: DataFrame
    places: DataFrame | None = None


def planned(reader: Reader, plan: Plan) -> PlanFrame:
    """Return the DataFrames of a plan that kquota has already read and checked."""
    frame = reader.objects("plan", _rows(plan), _PLAN).withColumn("wrong", _no_complaint())
    if not plan.log_dirs:
        return PlanFrame(name=_READ, frame=frame)
    places = (
        json.dumps({"topic": p.topic, "partition": p.partition, "broker": broker, "log_dir": log_dir})
        for (p, broker), log_dir in plan.log_dirs.items()
    )
    schema = "topic string, `partition` int, broker int, log_dir string"
    return PlanFrame(name=_READ, frame=frame, places=reader.objects("places", places, schema))


def stored(reader: Reader, plan: PlanFiles) -> PlanFrame:
    """Return the DataFrame of a plan that only Spark reads. Invalid entries raise no error here, but in
    `estimate.measure`.

    Raises the errors of `Reader.parquet` and `Reader.json_lines`. Also raises Invalid for Parquet without the column
    `topic`, `partition` or `replicas`.
    """
    if plan.parquet:
        found = reader.parquet(plan.files, plan.name)
        if missing := [name for name in _COLUMNS if name not in found.columns]:
            has = ", ".join(found.columns)
            raise Invalid(
                f"{plan.name}: these columns are missing: {', '.join(missing)} (found: {has}). Write the plan again "
                "with all columns"
            )
        entries = found.select(
            F.col("topic").cast("string"),
            F.col("partition").try_cast("bigint"),
            F.col("replicas").try_cast("array<bigint>"),
            F.lit(None).cast("string").alias(CORRUPT),
        )
    else:
        entries = reader.json_lines(plan.files, _ENTRY)
    place = F.monotonically_increasing_id().alias("place")
    judged = entries.select("topic", "partition", "replicas", _complaint().alias("why"), place)
    # `why` depends on the bigint values, because the casts below replace a number that is too large with null.
    fine = F.col("why").isNull()
    frame = judged.select(
        "topic",
        F.col("partition").try_cast("int").alias("partition"),
        F.when(fine, F.col("replicas").try_cast("array<int>")).alias("targets"),
        F.when(~fine, F.struct("place", "why")).otherwise(_no_complaint()).alias("wrong"),
    )
    return PlanFrame(name=plan.name, frame=frame)


def targets_of(reader: Reader, plan: PlanFrame, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the plan for the given partitions. A partition that is not in the plan is left out."""
    rows = ({"topic": name.topic, "partition": name.partition} for name in partitions)
    asked = reader.table("asked", rows, "topic string, `partition` int")
    found = (
        plan.frame.join(F.broadcast(asked), ["topic", "partition"]).select("topic", "partition", "targets").collect()
    )
    return {TopicPartition(topic, number): tuple(map(BrokerId, targets)) for topic, number, targets in found}


def _rows(plan: Plan) -> Iterator[str]:
    """Yield the entries of a plan as JSON. Each entry is formatted directly, because there may be a million."""
    names = {topic: json.dumps(topic) for topic in plan.topics}
    for (topic, number), replicas in plan.targets.items():
        yield f'{{"topic":{names[topic]},"partition":{number},"targets":[{",".join(map(str, replicas))}]}}'


def _no_complaint() -> Column:
    return F.lit(None).cast("struct<place: bigint, why: string>")


def _complaint() -> Column:
    """Return the reason why an entry is invalid, by the rules of `reassign.plan`. It is null for a valid entry."""
    name = F.concat_ws("-", "topic", "partition")
    shown = F.col("replicas").cast("string")
    # A lambda would run uncompiled for each of a million entries. `array_contains` returns null for a list with a null.
    out_of_range = (F.array_min("replicas") < 0) | (F.array_max("replicas") > HIGHEST_ID)
    out_of_range |= F.array_contains("replicas", F.lit(-1)).isNull()
    entry = F.substring(CORRUPT, 1, 60)
    return (
        F.when(F.col(CORRUPT).isNotNull(), F.concat(entry, F.lit(": is not a valid entry of a plan")))
        .when(F.col("topic").isNull(), F.lit("an entry has no topic"))
        .when(~F.col("topic").rlike(_NAME), F.concat(F.substring("topic", 1, 60), F.lit(": is not a valid topic name")))
        .when(F.col("partition").isNull(), F.concat("topic", F.lit(": an entry has no partition number")))
        .when(
            ~F.col("partition").between(0, HIGHEST_ID),
            F.concat(name, F.lit(f": partition must be from 0 to {HIGHEST_ID}")),
        )
        .when(F.col("replicas").isNull(), F.concat(name, F.lit(": the entry has no replicas")))
        .when(F.size("replicas") == 0, F.concat(name, F.lit(": Partition replica list cannot be empty")))
        .when(out_of_range, F.concat(name, F.lit(f": broker ids must be from 0 to {HIGHEST_ID}, but are "), shown))
        .when(
            F.size(F.array_distinct("replicas")) < F.size("replicas"),
            F.concat(F.lit("Partition replica lists may not contain duplicate entries: "), name, F.lit(" has "), shown),
        )
    )


def first_wrong(partitions: DataFrame, plan: PlanFrame) -> Invalid:
    """Return the error for the first invalid entry of the plan, or else for the first duplicate partition."""
    wrong = plan.frame.agg(F.min("wrong")).collect()[0][0]
    if wrong is not None:
        return Invalid(f"{plan.name}: {wrong['why']}")
    twice = partitions.where(F.col("planned") > 1).agg(F.min(F.struct("topic", "partition"))).collect()[0][0]
    partition = f"{twice['topic']}-{twice['partition']}"
    return Invalid(f"{plan.name}: Partition reassignment contains duplicate topic partitions: {partition}")
