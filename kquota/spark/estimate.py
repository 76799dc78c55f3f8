"""The job of `move estimate`. From sizes and a plan, it calculates the few sums that `pace` needs for each broker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from kquota.errors import Invalid, Parameter, Refused
from kquota.measure import highest
from kquota.pace.disk_space import Arrival
from kquota.pace.log_dir_copy import LogDirWork
from kquota.pace.waves import Split, Wave
from kquota.pace.work import Allotment, Work, allotment
from kquota.reassign.running_copies import RunningCopy
from kquota.sizes.replica import BrokerBytes, Moved, MovingTopic
from kquota.spark.files import Files
from kquota.spark.flows import LED, LeaderRate, flows, log_dir_moves, part, summed
from kquota.spark.partitions import KEY, Health, health, judged, partitions
from kquota.spark.plans import PlanFrame, first_wrong
from kquota.spark.reader import Reader
from kquota.spark.session import beside
from kquota.terms import BrokerId, ReplicaId

TOPICS: Final = 20
"""A report names at most this many topics, because a plan can contain ten thousand topics."""

_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Write rates in bytes per second: by broker, and by partition as a DataFrame (`topic`, `partition`, `w`).

    The rate of a broker is divided among the partitions that it leads (`pace.work`). The rate of a partition is unknown
    if neither the partition nor its leader has a rate here.
    """

    by_broker: Mapping[BrokerId, float]
    by_partition: DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsized:
    """Partitions of the plan that the sizes do not contain. `named` has the first few names."""

    partitions: int
    named: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {self.partitions - len(self.named):,} more" if self.partitions > len(self.named) else ""
        return f"{', '.join(self.named)}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The sums of a move. Sizes are in bytes."""

    health: Health
    partitions: int
    """The number of all partitions, moving or not."""
    moving: int
    """The number of moving partitions."""
    log_size: int
    """The total size of all replicas of all partitions."""
    max_bytes_in: float | None
    """The highest write rate of a leader, in bytes per second. None if the rate of any leader is unknown, because that
    leader may be the busiest.
    """
    any_rate_known: bool
    unallotted: tuple[BrokerId, ...]
    """The brokers that have a given rate but lead no partition, sorted."""
    leaders_assumed: int
    """The number of moving partitions whose leader the input does not report."""
    in_sync_assumed: int
    """The number of moving partitions whose in-sync replicas the input does not report."""
    lagging: int
    """The number of out-of-sync followers of moving partitions. No sum includes the bytes that they need to
    catch up.
    """
    assumed: Unsized
    """The partitions that the sizes do not contain. They count with the size that the operator gave. The plan's first
    replica counts as the only replica and the leader.
    """
    unseen: tuple[int, ...]
    """The destinations that the sizes do not contain, sorted. They may be empty, or belong to another cluster."""
    least_replicas: int
    """The plan's smallest replication factor."""
    work: Work
    arrivals: tuple[Arrival, ...]
    waves: tuple[Wave, ...] = ()
    """The waves, in order. Empty if the move is not split."""
    moved: Moved | None = None
    """The effect of the move, or None if `measure` was called without `detailed`."""
    behind: int = 0
    """The number of out-of-sync followers in planned partitions that copy nothing, because they already have all target
    replicas.
    """
    within: tuple[LogDirWork, ...] = ()
    """The copies between log dirs of one broker, for each such broker."""

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of each wave, in order, or the whole work if there are no waves."""
        return tuple(wave.work for wave in self.waves) or (self.work,)


def measure(
    replicas: DataFrame,
    files: Files,
    plan: PlanFrame,
    writes: Writes,
    reader: Reader,
    *,
    assumed_size: int | None = None,
    split: Split | None = None,
    detailed: bool = False,
    left: DataFrame | None = None,
) -> Measured:
    """Calculate the sums of `plan` over `replicas` (columns of `spark.sizes`).

    `assumed_size`, in bytes, is for partitions that the sizes do not contain. `moved` is calculated only if `detailed`
    is set, because it needs more jobs, and `waves` only if a `split` is given. `left` has the bytes that running copies
    still need (`topic`, `partition`, `broker`, `left`). `replicas` must not contain these copies.

    Raises Invalid for unusable input, and names the input. Raises Refused if the sizes lack a partition of the plan and
    there is no `assumed_size`.
    """
    # Keep parsed text, because parsing it twice would be slow. Rolled files can be read twice quickly.
    rows = judged(replicas).persist() if files.given_names() else judged(replicas)
    looking = beside(lambda: health(rows, files), "spark-job")  # two jobs run in parallel
    known_partitions = partitions(rows, plan, writes.by_partition, assumed_size, detailed=detailed)
    if split or detailed or assumed_size is not None or plan.places is not None:
        known_partitions = known_partitions.persist()
    sums = summed(known_partitions.withColumn("wave", F.lit(0)), plan.places, left)
    led = [row for row in sums if row["kind"] == LED]
    found = looking.result()
    _refuse(led, known_partitions, plan)
    known = [row for row in led if row["leader"] is not None]
    rate = _rate(known, writes)
    flow = flows(sums, rate)
    waves = _waves(known_partitions, plan, split, rate, reader, left) if split else ()
    return Measured(
        health=replace(found, duplicate=_sum(known, "duplicate")),
        partitions=sum(row["partitions"] for row in known),
        moving=_sum(known, "moving"),
        log_size=_sum(known, "log_size"),
        max_bytes_in=highest(writes.by_broker.get(row["leader"], part(row).writes) for row in known),
        any_rate_known=any(row["written"] or row["leader"] in writes.by_broker for row in known),
        unallotted=tuple(sorted(set(writes.by_broker) - {row["leader"] for row in known})),
        leaders_assumed=_sum(known, "leaders_assumed"),
        in_sync_assumed=_sum(known, "in_sync_assumed"),
        lagging=_sum(known, "lagging"),
        behind=_sum(known, "behind"),
        assumed=_unsized(known_partitions, F.col("assumed"), _sum(known, "assumed")),
        unseen=tuple(sorted(flow.destinations - set(found.brokers))),
        least_replicas=min((least for row in known if (least := row["led"]["least_replicas"])), default=0),
        work=flow.work,
        arrivals=flow.arrivals,
        waves=waves,
        moved=moved(known_partitions) if detailed else None,
        within=() if plan.places is None else log_dir_moves(replicas, plan.places, known_partitions, rate),
    )


def bytes_left(reader: Reader, copies: Mapping[ReplicaId, RunningCopy]) -> DataFrame | None:
    """Return a table of the bytes that running copies still need: `topic`, `partition`, `broker` and `left`.

    Copies with an unknown number of bytes are left out. The result is None if no copy remains.
    """
    rows = [
        {"topic": name.topic, "partition": name.partition, "broker": broker, "left": copy.left}
        for (name, broker), copy in copies.items()
        if copy.left is not None
    ]
    return reader.table("left", rows, "topic string, `partition` int, broker int, left bigint") if rows else None


def _waves(
    known_partitions: DataFrame, plan: PlanFrame, split: Split, rate: LeaderRate, reader: Reader, left: DataFrame | None
) -> tuple[Wave, ...]:
    moving, ends = _in_waves(known_partitions.where(F.size("adds") > 0), split, reader)
    flow = flows(summed(moving, plan.places, left), rate)
    return tuple(
        Wave(first=first, last=last, partitions=flow.partitions[n], work=flow.waves[n])
        for n, (first, last) in ends.items()
    )


def _in_waves(moving: DataFrame, split: Split, reader: Reader) -> tuple[DataFrame, dict[int, tuple[str, str]]]:
    """Return the partitions, each with its `wave` (from 1), and the names of the first and last one of each wave."""
    ordered = moving.withColumn("n", F.row_number().over(Window.orderBy(*KEY)) - 1)
    # Only the bytes of each partition leave Spark, because a million names would be a hundred times larger.
    copied = F.struct("n", (F.col("size") * F.size("adds")).alias("bytes"))
    listed = ordered.agg(F.sort_array(F.collect_list(copied)).alias("every"))
    sizes = listed.select("every.bytes").collect()[0][0]
    starts = split.starts(sizes)
    stops = [*starts[1:], len(sizes)]
    cuts = list(zip(starts, stops, strict=False))
    wanted = {n for start, stop in cuts for n in (start, stop - 1)}
    found = ordered.where(F.col("n").isin(sorted(wanted))).select("n", *KEY).collect() if cuts else []
    names = {n: f"{topic}-{partition}" for n, topic, partition in found}
    step = max(1, len(sizes) // max(1, len(cuts)))
    table = reader.objects("waves", _rows(cuts, step), "step int, start int, stop int, wave int")
    same = F.floor(F.col("n") / step) == F.col("step")
    within = (F.col("n") >= F.col("start")) & (F.col("n") < F.col("stop"))
    ends = {wave: (names[start], names[stop - 1]) for wave, (start, stop) in enumerate(cuts, 1)}
    return ordered.join(F.broadcast(table), same & within), ends


def _rows(cuts: Iterable[tuple[int, int]], step: int) -> Iterator[str]:
    """Yield a JSON row for each wave and each block of `step` partitions that the wave touches, for a join by block."""
    for wave, (start, stop) in enumerate(cuts, 1):
        for touched in range(start // step, (stop - 1) // step + 1):
            yield f'{{"step":{touched},"start":{start},"stop":{stop},"wave":{wave}}}'


def _refuse(leaders: Collection[Row], known_partitions: DataFrame, plan: PlanFrame) -> None:
    if _sum(leaders, "wrong"):
        raise first_wrong(known_partitions, plan)
    if not (planned := _sum(leaders, "planned")):
        raise Invalid(f"{plan.name}: Partition reassignment list cannot be empty")
    if not (unknown := _sum((row for row in leaders if row["leader"] is None), "planned")):
        return
    if unknown == planned:
        raise Refused(f"the sizes contain none of the plan's partitions ({planned:,}). Give sizes of the same cluster")
    named = _unsized(known_partitions, F.col("leader").isNull(), unknown)
    raise Refused(
        f"the plan names partitions that the sizes do not contain: {named}. Give a size to assume, for example ",
        Parameter("assume_size"),
        " 10GB",
    )


def _unsized(known_partitions: DataFrame, which: Column, count: int) -> Unsized:
    found = known_partitions.where(which).orderBy(*KEY).select(*KEY).limit(_NAMED).collect() if count else []
    return Unsized(partitions=count, named=tuple(f"{topic}-{partition}" for topic, partition in found))


def _sum(rows: Iterable[Row], column: str) -> int:
    return sum(row["led"][column] or 0 for row in rows)


def _rate(leaders: Iterable[Row], writes: Writes) -> LeaderRate:
    allotted: dict[int, Allotment] = {}
    for row in leaders:
        if (rate := writes.by_broker.get(row["leader"])) is not None:
            allotted[row["leader"]] = allotment(rate, part(row))
    return lambda leader, led: allotted[leader].of(led) if leader in allotted else led.writes


def moved(partitions: DataFrame) -> Moved:
    """Return the effect of a move on these partitions."""
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
    held = partitions.select(F.explode("replicas").alias("r"), "targets").select("r.broker", "r.size", "targets")
    # A partition that is not in the plan has no targets, so its replicas stay.
    stays = F.coalesce(F.array_contains("targets", F.col("broker")), F.lit(True))
    after = F.when(stays, F.col("size")).otherwise(0).alias("after")
    now = held.select("broker", F.col("size").alias("before"), after)
    new = partitions.select(F.explode("adds").alias("broker"), F.lit(0).alias("before"), F.col("size").alias("after"))
    sums = now.unionAll(new).groupBy("broker").agg(F.sum("before").alias("before"), F.sum("after").alias("after"))
    return tuple(sorted((BrokerBytes(**row.asDict()) for row in sums.collect()), key=lambda held: held.broker))
