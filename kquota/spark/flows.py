"""The sums of a move's partitions: the bytes from each broker to each other broker, for each wave and in total.

`log_dir_moves` sums the bytes that each broker copies between its own log dirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota.measure import total
from kquota.pace.disk_space import Arrival
from kquota.pace.log_dir_copy import LogDirWork
from kquota.pace.work import LedPartitions, Link, Work, work
from kquota.spark.partitions import KEY

LED: Final = 0
COPIED: Final = 1
HELD: Final = 2
_REPLICA: Final = (*KEY, "broker")

LeaderRate: TypeAlias = Callable[[int, LedPartitions], float | None]
"""A function that returns the write rate of some of a leader's partitions, in bytes per second, or None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The work of a move, in total and by the number of each wave."""

    work: Work
    waves: Mapping[int, Work]
    partitions: Mapping[int, int]
    """The number of moving partitions in each wave."""
    arrivals: tuple[Arrival, ...]
    """The copies to each broker and log dir, sorted."""

    @property
    def destinations(self) -> set[int]:
        """The brokers that receive a copy."""
        return {link.destination for link in self.work.links}


def summed(partitions: DataFrame, places: DataFrame | None, left: DataFrame | None = None) -> list[Row]:
    """Return, in one pass, the sums over the partitions that each broker leads, receives and holds.

    `partitions` must have the column `wave`. `places` are the log dirs that a plan names. `left` has the bytes that
    running copies still need.

    In a row, `kind` is `LED`, `COPIED` or `HELD`. `broker` is the leader, the destination or the holder. `leader` is
    the leader of these partitions, or null if no broker holds them. Only rows of kind `LED` have `led`. `missing` is
    the bytes in `left` plus the whole sizes of all other copies. The rate of a leader can be divided among the rows
    later, because the division is linear.
    """
    kind = F.when(F.col("at") == 0, LED).when(F.col("at") <= F.size("adds"), COPIED).otherwise(HELD)
    # The position in one list gives the kind. A lambda is not used, because Spark would run it uncompiled for each of a
    # million partitions.
    brokers = F.posexplode(F.concat(F.array("leader"), "adds", "holders")).alias("at", "broker")
    rows = partitions.select("*", brokers).withColumns({"kind": kind, "moving": F.size("adds") > 0})
    if places is not None:
        rows = rows.join(places.withColumn("kind", F.lit(COPIED)), [*KEY, "broker", "kind"], "left")
    if left is not None:
        rows = rows.join(F.broadcast(left.withColumn("kind", F.lit(COPIED))), [*KEY, "broker", "kind"], "left")
    log_dir = F.lit(None).cast("string") if places is None else F.col("log_dir")
    wave = F.when(F.col("kind") != HELD, F.col("wave"))
    sums = {
        "partitions": F.count("*"),
        "bytes": F.sum("size"),
        "missing": F.sum("size" if left is None else F.coalesce("left", "size")),
        "writes": F.sum("w"),
        "written": F.count("w"),
        "led": F.when(F.col("kind") == LED, F.struct(*(sum_.alias(name) for name, sum_ in _led().items()))),
    }
    grouped = rows.groupBy("kind", wave.alias("wave"), "leader", "broker", log_dir.alias("log_dir"))
    return grouped.agg(*(sum_.alias(name) for name, sum_ in sums.items())).collect()


def _led() -> dict[str, Column]:
    moving, w = F.col("moving"), F.col("w")
    follow = F.when(moving, F.col("in_sync")).otherwise(0)
    return {
        "moving": F.count_if(moving),
        "log_size": F.sum("log_size"),
        "duplicate": F.sum("duplicate"),
        "leaders_assumed": F.count_if(moving & ~F.col("leader_reported")),
        "in_sync_assumed": F.count_if(moving & F.col("isr_unknown")),
        "lagging": F.sum(F.when(moving, F.col("lagging")).otherwise(0)),
        "behind": F.sum(F.when(~moving & (F.col("planned") > 0), F.col("lagging")).otherwise(0)),
        "assumed": F.count_if("assumed"),
        "least_replicas": F.min("wanted"),
        "wrong": F.count_if(F.col("wrong") | (F.col("planned") > 1)),
        "planned": F.sum("planned"),
        "follow": F.sum(follow),
        "followed_bytes": F.sum(F.col("size") * follow),
        "followed_writes": F.sum(w * follow),
        "followed_mute": F.count_if(w.isNull() & (follow > 0)),
    }


def part(row: Row) -> LedPartitions:
    """Return a row of `summed` as `LedPartitions`. The row covers some of the partitions that one broker leads."""
    known = row["written"] == row["partitions"]
    return LedPartitions(partitions=row["partitions"], bytes=row["bytes"], writes=row["writes"] if known else None)


def flows(rows: Iterable[Row], rate: LeaderRate) -> Flows:
    """Return the flows from the rows of `summed`. `rate` returns the write rate of some of a leader's partitions."""
    by_kind = _by("kind", rows)
    copies, leading = by_kind[COPIED], [row for row in by_kind[LED] if row["led"]["moving"]]
    copies_by_wave, leading_by_wave = _by("wave", copies), _by("wave", leading)
    return Flows(
        work=_work(copies, leading, rate),
        waves={n: _work(copies_by_wave[n], found, rate) for n, found in leading_by_wave.items()},
        partitions={n: sum(row["led"]["moving"] for row in found) for n, found in leading_by_wave.items()},
        arrivals=_arrivals(copies, by_kind[HELD], rate),
    )


def _by(column: str, rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    """Return the rows by their value in `column`, in ascending order of the values. A missing value has no rows.

    One sort replaces a search for each wave, because there may be a hundred thousand waves.
    """
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[column]):
        found[row[column]].append(row)
    return found


def _work(copies: Iterable[Row], leading: Iterable[Row], rate: LeaderRate) -> Work:
    by_link: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in copies:
        by_link[row["leader"], row["broker"]].append(row)
    links = (
        Link(
            leader=leader,
            destination=destination,
            copies=sum(row["partitions"] for row in rows),
            bytes=sum(row["missing"] for row in rows),
            writes=_written(rows, rate),
        )
        for (leader, destination), rows in by_link.items()
    )
    return work(
        links, {leader: total(_kept_up(row, rate) for row in rows) for leader, rows in _by("leader", leading).items()}
    )


def _written(rows: Iterable[Row], rate: LeaderRate) -> float | None:
    return total(rate(row["leader"], part(row)) for row in rows)


def _kept_up(row: Row, rate: LeaderRate) -> float | None:
    """Return the follower traffic of a leader's moving partitions: the write rate of each, once for each in-sync
    follower. None if it is unknown.
    """
    led = row["led"]
    if not led["follow"]:
        return 0.0
    known = led["followed_writes"] if not led["followed_mute"] else None
    return rate(row["leader"], LedPartitions(partitions=led["follow"], bytes=led["followed_bytes"], writes=known))


def _arrivals(copies: Iterable[Row], held: Iterable[Row], rate: LeaderRate) -> tuple[Arrival, ...]:
    places: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in copies:
        places[row["broker"], row["log_dir"] or ""].append(row)
    grows = _by("broker", held)
    return tuple(
        Arrival(
            broker=broker,
            log_dir=log_dir or None,
            copies=sum(row["partitions"] for row in rows),
            bytes=sum(row["missing"] for row in rows),
            writes=_written(rows, rate),
            # A broker without replicas has no writes.
            grows=_written(grows[broker], rate),
        )
        for (broker, log_dir), rows in sorted(places.items(), key=lambda item: item[0])
    )


def log_dir_moves(
    replicas: DataFrame, places: DataFrame, partitions: DataFrame, rate: LeaderRate
) -> tuple[LogDirWork, ...]:
    """Return the work of each broker that moves replicas between its log dirs, sorted by broker id. `replicas` has the
    columns of `spark.sizes`, `places` has the log dirs of a plan, and `partitions` has the leaders.

    A replica that is already in its planned log dir does not count. If a replica is already being copied to its planned
    log dir, only the remaining bytes count. `rate` returns the write rate of some of a leader's partitions. The writes
    of a broker are unknown (None) if the rate of one of its moving replicas is unknown.
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
        .select(*_REPLICA, F.greatest(F.col("size") - F.col("copied"), F.lit(0)).alias("missing"))
    )
    sums = (
        partitions.select(*KEY, "leader", "size", "w")
        .join(F.broadcast(moving), list(KEY))
        .groupBy("broker", "leader")
        .agg(
            F.count("*").alias("partitions"),
            F.sum("missing").alias("missing"),
            F.sum("size").alias("bytes"),
            F.sum("w").alias("writes"),
            F.count("w").alias("written"),
        )
    )
    return tuple(
        LogDirWork(
            broker=broker,
            copies=sum(row["partitions"] for row in rows),
            bytes=sum(row["missing"] for row in rows),
            writes=_written(rows, rate),
        )
        for broker, rows in _by("broker", sums.collect()).items()
    )
