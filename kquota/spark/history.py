"""A history for an estimate: the sizes in one cluster's newest snapshot, and the cluster's earlier write rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
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
    """One cluster's part of a history, with rolled and waiting snapshots."""

    cluster: str
    first: datetime
    """The time of the oldest snapshot."""
    last: datetime
    """The time of the newest snapshot."""
    replicas: DataFrame
    """The table of replicas (`docs/history.md`)."""
    brokers: DataFrame
    """The table of brokers (`docs/history.md`)."""
    newest: DataFrame
    """The rows of the newest snapshot, in the columns of `spark.sizes`."""
    bad: int = 0
    """The number of invalid rows in waiting snapshots. These rows are left out."""

    def by_partition(self, window: float | None = None) -> DataFrame | None:
        """Return the mean write rate of each partition as a table with the columns `topic`, `partition` and `w`.

        `w` is in bytes per second. It covers the last `window` seconds, or the whole history if `window` is None. In
        each snapshot, only the growth of the leader counts. Partitions without a known growth are left out. A single
        snapshot shows no growth, so the result is then None.
        """
        if self.first == self.last:
            return None
        led = self.replicas.where(F.col("leader") & F.col("grown").isNotNull() & self._in(window))
        return led.groupBy("topic", "partition").agg((F.sum("grown") / F.sum("seconds")).alias("w"))

    def by_broker(self, window: float | None = None) -> dict[BrokerId, BytesIn]:
        """Return the mean and the percentiles of the write rate of the partitions that each broker leads.

        Intervals with an unknown rate do not count. A broker that has only such intervals is left out.

        `window` is the same as in `by_partition`. The percentiles give each interval between two snapshots the same
        weight, and are unknown for fewer than `ENOUGH` intervals. The result is empty for a single snapshot.
        """
        if self.first == self.last:
            return {}
        reported = self.brokers.where(F.col("bytes_in").isNotNull() & self._in(window))
        percentiles = F.percentile("bytes_in", F.array(F.lit(0.05), F.lit(0.95), F.lit(0.99)))
        found = reported.groupBy("broker").agg(
            (F.sum(F.col("bytes_in") * F.col("seconds")) / F.sum("seconds")).alias("mean"),
            F.when(F.count("*") >= ENOUGH, percentiles).alias("percentiles"),
        )
        return {row["broker"]: _bytes_in(row["mean"], row["percentiles"]) for row in found.orderBy("broker").collect()}

    def check(self, window: float | None) -> None:
        """Raise Invalid if the history does not cover `window` seconds before its newest snapshot."""
        covered = (self.last - self.first).total_seconds()
        if window is not None and covered < window:
            names = f"{SnapshotKey('', self.first).stamp} to {SnapshotKey('', self.last).stamp}"
            raise Invalid(
                Parameter("history_window"),
                f" {human_duration(window)}: the history of cluster {self.cluster} covers only "
                f"{human_duration(covered)} ({names}). Give a shorter time. To use the whole history, leave out ",
                Parameter("history_window"),
            )

    def _in(self, window: float | None) -> Column:
        if window is None:
            return F.lit(True)
        begin = self.last - timedelta(seconds=window)
        # Spark skips the folders of earlier dates. A row belongs to the window if the end of its interval does.
        return (F.col("date") >= f"{begin:%Y-%m-%d}") & (F.col("time") > F.lit(begin))


def opened(reader: Reader, found: Listing, files: Files, cluster: str | None = None) -> History:
    """Open the history in `found`. `files` has its waiting snapshots.

    Raises Invalid for a history without snapshots, and for an unusable file. Also raises Invalid if the history does
    not contain `cluster`, or if `cluster` is None and the history has several clusters. If the rolled tables are in a
    place that only Spark can read, raises Invalid for a snapshot that is older than these tables and not in them. Also
    raises the errors of `Reader.batches`.
    """
    known = _known(reader, found).of(cluster)
    name = known.clusters()[0]
    tables = [(rolled(reader, known, "replicas"), rolled(reader, known, "brokers"))] if known.rolled else []
    bad = 0
    if known.waiting:
        rows = from_snapshots(reader, files)
        links = [link for link, path in files.names.items() if Path(path) in known.waiting]
        if len(links) < len(files.names):
            rows = rows.where(F.col("file").isin(links))
        rows = marked(rows, spanned(reader, known.spans()))
        bad = _left_out(rows, files)
        fresh = with_growth(rows.where(F.col("bad").isNull()), before(reader, known)).drop("twice")
        tables.append((fresh, by_broker(fresh)))
    of_cluster = F.col("cluster") == name
    replicas, brokers = (reduce(DataFrame.unionByName, parts).where(of_cluster) for parts in zip(*tables, strict=True))
    times = [each.time for each in (*known.held, *known.waiting.values())]
    newest = _newest(reader, known, files, replicas, SnapshotKey(name, max(times)))
    return History(
        cluster=name,
        first=min(times),
        last=max(times),
        replicas=replicas,
        brokers=brokers,
        newest=newest,
        bad=bad,
    )


def _known(reader: Reader, found: Listing) -> Listing:
    """Return the listing, including the snapshots in tables that only Spark can read, for example with the scheme
    `s3a://`.

    Raises Invalid for a snapshot that is older than these tables and not in them.
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
            f" {known.late[0]}: is older than the compacted history of its cluster in {', '.join(elsewhere)}, but is "
            "not part of that history. Leave out this file, or compact all snapshots again",
        )
    return replace(known, late=found.late)


def _newest(reader: Reader, listing: Listing, files: Files, replicas: DataFrame, taken: SnapshotKey) -> DataFrame:
    link = next((link for link, path in files.names.items() if listing.waiting.get(Path(path)) == taken), None)
    if link is not None:
        # Read the newest snapshot without growth, because growth needs all other snapshots.
        return from_snapshots(reader, files).where(F.col("file") == link)
    now = replicas.where((F.col("date") == f"{taken.time:%Y-%m-%d}") & (F.col("time") == F.lit(taken.time)))
    null = F.lit(None).cast("string")
    constants = {"time": F.lit(taken.stamp), "file": F.lit(""), "problem": null, "offline": F.lit(False)}
    return now.select(*(constants.get(name, F.col(name)).alias(name) for name in (*ROW, "file", "problem", "offline")))


def _left_out(rows: DataFrame, files: Files) -> int:
    """Return the number of rows without a replica or a valid size. Raises Invalid for a row that is invalid for another
    reason.
    """
    unusable = F.max(F.when(F.col("bad") != NO_REPLICA, F.struct("file", "bad")))
    found, count = rows.agg(unusable, F.count_if(F.col("bad") == NO_REPLICA)).collect()[0]
    if found:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}. Move the file out of the history and try again")
    return int(count)


def _bytes_in(mean: float, percentiles: Sequence[float] | None) -> BytesIn:
    low, high, peak = percentiles or (None, None, None)
    return BytesIn(mean=mean, low=low, high=high, peak=peak)
