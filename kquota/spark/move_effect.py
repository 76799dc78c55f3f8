"""Contents of a report besides a move's sums: brokers before and after, and the topics that copy most."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.sizes.move_effect import BrokerBytes, Moved, MovingTopic

TOPICS: Final = 20
"""The most topics that are listed by name, because a plan can contain ten thousand."""


def moved(partitions: DataFrame) -> Moved:
    """Return the effect of a move on `spark.estimate`'s partitions: bytes on each broker, and the topics that copy
    most.
    """
    topics = (
        partitions.where(F.size("adds") > 0)
        .groupBy("topic")
        .agg(
            F.count("*").alias("partitions"),
            F.sum(F.size("adds")).cast("bigint").alias("copies"),
            F.sum(F.col("size") * F.size("adds")).alias("bytes"),
        )
    )
    largest = topics.orderBy(F.desc("bytes"), "topic").limit(TOPICS).collect()
    return Moved(
        held=_held(partitions),
        topics=tuple(MovingTopic(**row.asDict()) for row in largest),
        topics_in_all=len(largest) if len(largest) < TOPICS else topics.count(),
    )


def _held(partitions: DataFrame) -> tuple[BrokerBytes, ...]:
    def now(replica: Column) -> Column:
        # A partition that is not in the plan has no targets and stays.
        stays = F.coalesce(F.array_contains("targets", replica["broker"]), F.lit(True))
        return _row(replica["broker"], replica["size"], F.when(stays, replica["size"]).otherwise(F.lit(0)))

    def new(broker: Column) -> Column:
        return _row(broker, F.lit(0), F.col("size"))

    every = F.concat(F.transform("replicas", now), F.transform("adds", new))
    replicas = partitions.select(F.explode(every).alias("r")).select("r.*")
    sums = replicas.groupBy("broker").agg(F.sum("before").alias("before"), F.sum("after").alias("after"))
    return tuple(sorted((BrokerBytes(**row.asDict()) for row in sums.collect()), key=lambda held: held.broker))


def _row(broker: Column, before: Column, after: Column) -> Column:
    return F.struct(broker.alias("broker"), before.cast("bigint").alias("before"), after.cast("bigint").alias("after"))
