"""A history as an estimate asks for it: the newest sizes of one cluster, and what was written how fast until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.errors import Invalid, Parameter
from kquota.measure import human_duration
from kquota.sizes.bytes_in import ENOUGH, BytesIn
from kquota.sizes.history import Listing, SnapshotKey, listing
from kquota.spark.files import Files, is_elsewhere
from kquota.spark.growth import NO_REPLICA, before, by_broker, marked, rolled, spanned, with_growth
from kquota.spark.reader import Reader
from kquota.spark.sizes import ROW, from_snapshots
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One cluster's part of a history: its two tables (docs/history.md), the rolled and the waiting together.

    `first` and `last` are the times of its oldest and its newest snapshot; `newest` is the latter, in the columns that
    `spark.sizes` tells. `bad` rows of snapshots that wait are left out: they name no replica, or no size of 0 or more.
    """

    cluster: str
    first: datetime
    last: datetime
    replicas: DataFrame
    brokers: DataFrame
    newest: DataFrame
    bad: int = 0

    def by_partition(self, window: float | None = None) -> DataFrame | None:
        """The columns topic, partition, w: mean bytes per second that producers wrote, where any of it is known.

        Over the last `window` seconds, None for all there is; the leaders of each snapshot tell. None for one snapshot
        alone: nobody saw anything grow.
        """
        if self.first == self.last:
            return None
        led = self.replicas.where(F.col("leader") & F.col("grown").isNotNull() & self._in(window))
        return led.groupBy("topic", "partition").agg((F.sum("grown") / F.sum("seconds")).alias("w"))

    def by_broker(self, window: float | None = None) -> dict[BrokerId, BytesIn]:
        """What producers wrote to what each broker led, in the same window; brokers of which nothing is known lack.

        Percentiles are those of the rates between two snapshots, each as heavy as the other.
        """
        if self.first == self.last:
            return {}
        told = self.brokers.where(F.col("bytes_in").isNotNull() & self._in(window))
        percentiles = F.percentile("bytes_in", F.array(F.lit(0.05), F.lit(0.95), F.lit(0.99)))
        found = told.groupBy("broker").agg(
            (F.sum(F.col("bytes_in") * F.col("seconds")) / F.sum("seconds")).alias("mean"),
            F.when(F.count("*") >= ENOUGH, percentiles).alias("percentiles"),
        )
        return {row["broker"]: _bytes_in(row["mean"], row["percentiles"]) for row in found.orderBy("broker").collect()}

    def check(self, window: float | None) -> None:
        """Raises Invalid where the history does not reach so many seconds back from its newest snapshot."""
        covered = (self.last - self.first).total_seconds()
        if window is not None and covered < window:
            names = f"{SnapshotKey('', self.first).stamp} to {SnapshotKey('', self.last).stamp}"
            raise Invalid(
                Parameter("history_window"),
                f" {human_duration(window)}: the history covers {human_duration(covered)} of cluster {self.cluster}, "
                f"{names}; give a shorter time, or for the whole history leave out ",
                Parameter("history_window"),
            )

    def _in(self, window: float | None) -> Column:
        if window is None:
            return F.lit(True)
        begin = self.last - timedelta(seconds=window)
        # Spark skips the folders of earlier dates, and rows told of by their end are in with their end.
        return (F.col("date") >= f"{begin:%Y-%m-%d}") & (F.col("time") > F.lit(begin))


def opened(reader: Reader, found: Listing, files: Files, cluster: str | None = None) -> History:
    """The history that `found` names; `files` lays out what it has waiting.

    Raises Invalid for no snapshot, for a file that is none, and where it holds several clusters, or not the one asked
    for.
    """
    known = _known(reader, found).of(cluster)
    name = known.clusters()[0]
    replicas = rolled(reader, known, "replicas") if known.rolled else None
    brokers = rolled(reader, known, "brokers") if known.rolled else None
    bad = 0
    if known.waiting:
        rows = from_snapshots(reader, files)
        links = [link for link, path in files.names.items() if Path(path) in known.waiting]
        if len(links) < len(files.names):
            rows = rows.where(F.col("file").isin(links))
        rows = marked(rows, spanned(reader, known.spans()))
        bad = _left_out(rows, files)
        fresh = with_growth(rows.where(F.col("bad").isNull()), before(reader, known)).drop("twice")
        summed = by_broker(fresh)
        replicas = fresh if replicas is None else replicas.unionByName(fresh)
        brokers = summed if brokers is None else brokers.unionByName(summed)
    assert replicas is not None and brokers is not None
    replicas, brokers = (table.where(F.col("cluster") == name) for table in (replicas, brokers))
    times = [each.time for each in (*known.held, *known.waiting.values())]
    return History(
        cluster=name,
        first=min(times),
        last=max(times),
        replicas=replicas,
        brokers=brokers,
        newest=_newest(reader, known, files, replicas, SnapshotKey(name, max(times))),
        bad=bad,
    )


def _known(reader: Reader, found: Listing) -> Listing:
    """The listing with what tables elsewhere hold: only Spark sees their manifests.

    Raises Invalid for a snapshot that is older than those and is not among them.
    """
    elsewhere = tuple(path for path in found.rolled if is_elsewhere(path))
    if not elsewhere:
        return found
    brokers = rolled(reader, replace(found, rolled=elsewhere), "brokers")
    rows = brokers.select("cluster", F.unix_seconds("time")).distinct().collect()
    there = {SnapshotKey(cluster, datetime.fromtimestamp(second, UTC)) for cluster, second in rows}
    known = listing(found.rolled, found.held | there, found.waiting)
    if known.late:
        raise Invalid(
            Parameter("history"),
            f" {known.late[0]}: is older than what is rolled of its cluster in {', '.join(elsewhere)}, and "
            "not in it: leave it out, or roll all snapshots again",
        )
    return replace(known, late=found.late)


def _newest(reader: Reader, listing: Listing, files: Files, replicas: DataFrame, taken: SnapshotKey) -> DataFrame:
    link = next((link for link, path in files.names.items() if listing.waiting.get(Path(path)) == taken), None)
    if link is not None:
        # Without the growth, which would take all the others.
        return from_snapshots(reader, files).where(F.col("file") == link)
    now = replicas.where((F.col("date") == f"{taken.time:%Y-%m-%d}") & (F.col("time") == F.lit(taken.time)))
    null = F.lit(None).cast("string")
    told = {"time": F.lit(taken.stamp), "file": F.lit(""), "problem": null, "offline": F.lit(False)}
    return now.select(*(told.get(name, F.col(name)).alias(name) for name in (*ROW, "file", "problem", "offline")))


def _left_out(rows: DataFrame, files: Files) -> int:
    """How many rows of good files are none of a replica. Raises Invalid for a file that is unusable, naming it."""
    unusable = F.max(F.when(F.col("bad") != NO_REPLICA, F.struct("file", "bad")))
    found, count = rows.agg(unusable, F.count_if(F.col("bad") == NO_REPLICA)).collect()[0]
    if found:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}; move it out of the history and try again")
    return int(count)


def _bytes_in(mean: float, percentiles: Sequence[float] | None) -> BytesIn:
    low, high, peak = percentiles or (None, None, None)
    return BytesIn(mean=mean, low=low, high=high, peak=peak)
