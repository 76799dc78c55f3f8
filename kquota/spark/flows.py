"""What flows from which broker to which: the sums that a move's partitions come to, wave by wave and in all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kquota.pace.room import Arrival
from kquota.pace.work import Link, Work, total, work
from kquota.spark.partitions import KEY

_GROUP: Final = {"wave": "int", "leader": "int", "broker": "int", "log_dir": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """A move's work, that of each wave by its number, the moving partitions of each, and what comes to each broker."""

    work: Work
    waves: Mapping[int, Work]
    partitions: Mapping[int, int]
    arrivals: tuple[Arrival, ...]

    @property
    def destinations(self) -> set[int]:
        """The brokers that a copy comes to."""
        return {link.destination for link in self.work.links}


def flows(partitions: DataFrame, moving: DataFrame, places: DataFrame | None) -> Flows:
    """The flows of partitions that know their writes `w`, of which the `moving` ones know their `wave`, too.

    `places` are the log dirs that a plan names.
    """
    copies = moving.withColumn("broker", F.explode("adds"))
    if places is None:
        copies = copies.withColumn("log_dir", F.lit(None).cast("string"))
    else:
        copies = copies.join(places, [*KEY, "broker"], "left")
    kept_up = F.when(F.col("in_sync") == 0, 0.0).otherwise(F.col("w") * F.col("in_sync"))
    leading = moving.withColumn("broker", F.col("leader")).withColumn("w", kept_up)
    holding = partitions.withColumn("broker", F.explode("holders"))
    rows = (
        _summed(copies, "copy", "wave", "leader", "broker", "log_dir")
        .unionAll(_summed(leading, "lead", "wave", "broker"))
        .unionAll(_summed(holding, "hold", "broker"))
        .collect()
    )
    copy, lead = ([row for row in rows if row["kind"] == kind] for kind in ("copy", "lead"))
    copies_of, leading_of = _by_wave(copy), _by_wave(lead)
    return Flows(
        work=_work(copy, lead),
        waves={n: _work(copies_of[n], found) for n, found in leading_of.items()},
        partitions={n: sum(row["partitions"] for row in found) for n, found in leading_of.items()},
        arrivals=_arrivals(copy, {row["broker"]: row["writes"] for row in rows if row["kind"] == "hold"}),
    )


def _summed(frame: DataFrame, kind: str, *group: str) -> DataFrame:
    # A sum with one unknown in it is unknown.
    writes = F.when(F.count("w") == F.count("*"), F.sum("w"))
    sums = frame.groupBy(*group).agg(
        F.count("*").alias("partitions"), F.sum("size").alias("bytes"), writes.alias("writes")
    )
    keys = (F.col(name) if name in group else F.lit(None).cast(type_).alias(name) for name, type_ in _GROUP.items())
    return sums.select(F.lit(kind).alias("kind"), *keys, "partitions", "bytes", "writes")


def _by_wave(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    """In the order of the waves, of which there may be a hundred thousand."""
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["wave"]):
        found[row["wave"]].append(row)
    return found


def _work(copies: Iterable[Row], leading: Iterable[Row]) -> Work:
    by_link: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in copies:
        by_link[row["leader"], row["broker"]].append(row)
    keep_up: defaultdict[int, list[float | None]] = defaultdict(list)
    for row in leading:
        keep_up[row["broker"]].append(row["writes"])
    links = (
        Link(
            leader=leader,
            destination=destination,
            copies=sum(row["partitions"] for row in rows),
            bytes=sum(row["bytes"] for row in rows),
            writes=total(row["writes"] for row in rows),
        )
        for (leader, destination), rows in by_link.items()
    )
    return work(links, {leader: total(rates) for leader, rates in keep_up.items()})


def _arrivals(copies: Iterable[Row], grows: Mapping[int, float | None]) -> tuple[Arrival, ...]:
    places: defaultdict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in copies:
        places[row["broker"], row["log_dir"] or ""].append(row)
    return tuple(
        Arrival(
            broker=broker,
            log_dir=log_dir or None,
            copies=sum(row["partitions"] for row in rows),
            bytes=sum(row["bytes"] for row in rows),
            writes=total(row["writes"] for row in rows),
            # A broker that holds nothing is not written to.
            grows=grows.get(broker, 0.0),
        )
        for (broker, log_dir), rows in sorted(places.items(), key=lambda item: item[0])
    )
