"""A history for an estimate: the sizes in the newest snapshot of one cluster, and its earlier write rates."""

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
from kquota.spark.growth import (
    NO_REPLICA,
    before,
    by_broker,
    marked,
    ordinary,
    rolled,
    spanned,
    with_growth,
    with_known_rates,
)
from kquota.spark.reader import Reader
from kquota.spark.sizes import ROW, from_snapshots
from kquota.terms import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One cluster's part of a history: its two tables (`docs/history.md`), with rolled and waiting snapshots.

    `first` and `last` are the times of its oldest and its newest snapshot. `newest` has the rows of the newest one, in
    the columns of `spark.sizes`. `bad` counts invalid rows of waiting snapshots, which are left out. `unproven` counts
    the topics that may be tiered. The growth of these topics is left out where it would be wrong for a tiered topic.
    """

    cluster: str
    first: datetime
    last: datetime
    replicas: DataFrame
    brokers: DataFrame
    newest: DataFrame
    bad: int = 0
    unproven: int = 0

    def by_partition(self, window: float | None = None) -> DataFrame | None:
        """Return the columns topic, partition and w: the mean write rate in bytes per second.

        The rate covers the last `window` seconds, or the whole history if `window` is None. In each snapshot, only the
        growth of the leader counts. A single snapshot shows no growth, so the result is then None.
        """
        if self.first == self.last:
            return None
        led = self.replicas.where(F.col("leader") & F.col("grown").isNotNull() & self._in(window))
        return led.groupBy("topic", "partition").agg((F.sum("grown") / F.sum("seconds")).alias("w"))

    def by_broker(self, window: float | None = None) -> dict[BrokerId, BytesIn]:
        """Return the write rate of the partitions that each broker leads. Brokers with an unknown rate are left out.

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
                f" {human_duration(window)}: the history covers {human_duration(covered)} of cluster {self.cluster}, "
                f"{names}. Give a shorter time. To use the whole history, leave out ",
                Parameter("history_window"),
            )

    def _in(self, window: float | None) -> Column:
        if window is None:
            return F.lit(True)
        begin = self.last - timedelta(seconds=window)
        # Spark skips the folders of earlier dates. A row belongs to the window if the end of its interval does.
        return (F.col("date") >= f"{begin:%Y-%m-%d}") & (F.col("time") > F.lit(begin))


def opened(
    reader: Reader, found: Listing, files: Files, cluster: str | None = None, live: Files | None = None
) -> History:
    """Open the history in `found`. `files` has its waiting snapshots.

    `live`, if given, has a snapshot of the live cluster, which shows the topics that are not tiered. Otherwise the
    newest snapshot shows them. Raises Invalid if there is no snapshot, if a file is not valid, if the history does not
    contain `cluster`, or if `cluster` is None and the history has several clusters.
    """
    known = _known(reader, found).of(cluster)
    name = known.clusters()[0]
    replicas = rolled(reader, known, "replicas") if known.rolled else None
    brokers = rolled(reader, known, "brokers") if known.rolled else None
    bad, old = 0, brokers is not None and not brokers.where(F.coalesce("unproven", F.lit(1)) > 0).isEmpty()
    if known.waiting:
        rows = from_snapshots(reader, files)
        links = [link for link, path in files.names.items() if Path(path) in known.waiting]
        if len(links) < len(files.names):
            rows = rows.where(F.col("file").isin(links))
        rows = marked(rows, spanned(reader, known.spans()))
        bad, older = _left_out(rows, files)
        old = old or older
        fresh = with_growth(rows.where(F.col("bad").isNull()), before(reader, known)).drop("twice")
        summed = by_broker(fresh)
        replicas = fresh if replicas is None else replicas.unionByName(fresh)
        brokers = summed if brokers is None else brokers.unionByName(summed)
    assert replicas is not None and brokers is not None
    replicas, brokers = (table.where(F.col("cluster") == name) for table in (replicas, brokers))
    times = [each.time for each in (*known.held, *known.waiting.values())]
    newest = _newest(reader, known, files, replicas, SnapshotKey(name, max(times)))
    unproven = 0
    # A single snapshot shows no growth.
    if old and len(set(times)) > 1:
        replicas, unproven = _proven(replicas, from_snapshots(reader, live) if live is not None else newest)
        brokers = by_broker(replicas)
    return History(
        cluster=name,
        first=min(times),
        last=max(times),
        replicas=replicas,
        brokers=brokers,
        newest=newest,
        bad=bad,
        unproven=unproven,
    )


def _proven(replicas: DataFrame, snapshot: DataFrame) -> tuple[DataFrame, int]:
    """Return the replicas, with a null growth where it would be wrong for a tiered topic, and the number of topics that
    may be tiered.
    """
    whole = ordinary(snapshot)
    others = snapshot.where("leader").select("topic").distinct().join(whole, "topic", "left_anti")
    return with_known_rates(replicas, whole), others.count()


def _known(reader: Reader, found: Listing) -> Listing:
    """Return the listing, including the snapshots in tables elsewhere, which only Spark can read.

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
            f" {known.late[0]}: is older than the rolled history of its cluster in {', '.join(elsewhere)}, which "
            "does not contain it. Leave out this file, or roll all snapshots again",
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


def _left_out(rows: DataFrame, files: Files) -> tuple[int, bool]:
    """Return the number of invalid rows in valid files, and whether a leader's row has no local start offset.

    Raises Invalid for an unusable file, and names the file.
    """
    unusable = F.max(F.when(F.col("bad") != NO_REPLICA, F.struct("file", "bad")))
    bad, old = (
        F.count_if(F.col("bad") == NO_REPLICA),
        F.count_if(F.col("leader") & F.col("local_start_offset").isNull()),
    )
    found, count, older = rows.agg(unusable, bad, old).collect()[0]
    if found:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}. Move the file out of the history and try again")
    return int(count), older > 0


def _bytes_in(mean: float, percentiles: Sequence[float] | None) -> BytesIn:
    low, high, peak = percentiles or (None, None, None)
    return BytesIn(mean=mean, low=low, high=high, peak=peak)
