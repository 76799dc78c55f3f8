"""A history as an estimate asks for it: the newest sizes of one cluster, and what was written how fast until then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.errors import Invalid
from kquota.measure import human_duration
from kquota.sizes.bytes_in import BytesIn
from kquota.sizes.history import Listing, Taken, chosen
from kquota.spark.files import Files
from kquota.spark.growth import before, by_broker, marked, rolled, spanned, with_growth
from kquota.spark.reader import Reader
from kquota.spark.sizes import ROW, from_snapshots
from kquota.terms import BrokerId

_ENOUGH: Final = 20
"""Of fewer rates than these no percentile is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One cluster's part of a history: its two tables (docs/history.md), the rolled and the waiting together.

    `first` and `last` are the times of its oldest and its newest snapshot; `newest` is the latter, in the columns that
    `spark.sizes` tells.
    """

    cluster: str
    first: datetime
    last: datetime
    replicas: DataFrame
    brokers: DataFrame
    newest: DataFrame

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
            F.when(F.count("*") >= _ENOUGH, percentiles).alias("percentiles"),
        )
        return {row["broker"]: _bytes_in(row["mean"], row["percentiles"]) for row in found.orderBy("broker").collect()}

    def check(self, window: float | None) -> None:
        """Raises Invalid where the history does not reach so many seconds back from its newest snapshot."""
        covered = (self.last - self.first).total_seconds()
        if window is not None and covered < window:
            names = f"{Taken('', self.first).stamp} to {Taken('', self.last).stamp}"
            raise Invalid(
                f"--history-window {human_duration(window)}: the history covers {human_duration(covered)} of cluster "
                f"{self.cluster}, {names}; ask for less, or for all there is: without --history-window"
            )

    def _in(self, window: float | None) -> Column:
        if window is None:
            return F.lit(True)
        begin = self.last - timedelta(seconds=window)
        # Spark skips the folders of earlier dates, and rows told of by their end are in with their end.
        return (F.col("date") >= f"{begin:%Y-%m-%d}") & (F.col("time") > F.lit(begin))


def opened(reader: Reader, listing: Listing, files: Files, cluster: str | None = None) -> History:
    """The history that `listing` names; `files` lays out what it has waiting.

    Raises Invalid for no snapshot, for a row that is none, and where it holds several clusters, or not the one asked
    for.
    """
    replicas = rolled(reader, listing, "replicas") if listing.rolled else None
    brokers = rolled(reader, listing, "brokers") if listing.rolled else None
    if listing.waiting:
        rows = marked(from_snapshots(reader, files), spanned(reader, listing.spans()))
        _check(rows, files)
        fresh = with_growth(rows, before(reader, listing)).drop("twice")
        summed = by_broker(fresh)
        replicas = fresh if replicas is None else replicas.unionByName(fresh)
        brokers = summed if brokers is None else brokers.unionByName(summed)
    times = _times(listing, brokers)
    name = chosen(sorted(times), cluster)
    first, last = times[name]
    assert replicas is not None and brokers is not None
    replicas, brokers = (table.where(F.col("cluster") == name) for table in (replicas, brokers))
    return History(
        cluster=name,
        first=first,
        last=last,
        replicas=replicas,
        brokers=brokers,
        newest=_newest(reader, listing, files, replicas, Taken(name, last)),
    )


def _newest(reader: Reader, listing: Listing, files: Files, replicas: DataFrame, taken: Taken) -> DataFrame:
    link = next((link for link, path in files.names.items() if listing.waiting.get(Path(path)) == taken), None)
    if link is not None:
        # Without the growth, which would take all the others.
        return from_snapshots(reader, files).where(F.col("file") == link)
    now = replicas.where((F.col("date") == f"{taken.time:%Y-%m-%d}") & (F.col("time") == F.lit(taken.time)))
    null = F.lit(None).cast("string")
    told = {"time": F.lit(taken.stamp), "file": F.lit(""), "problem": null, "offline": F.lit(False)}
    return now.select(*(told.get(name, F.col(name)).alias(name) for name in (*ROW, "file", "problem", "offline")))


def _check(rows: DataFrame, files: Files) -> None:
    found = rows.agg(F.max(F.when(F.col("bad").isNotNull(), F.struct("file", "bad")))).collect()[0][0]
    if found:
        raise Invalid(f"{files.name(found['file'])}: {found['bad']}; move it out of the history, and try again")


def _times(listing: Listing, brokers: DataFrame | None) -> dict[str, tuple[datetime, datetime]]:
    """Each cluster's first and last snapshot."""
    taken = {*listing.held, *listing.waiting.values()}
    if taken or brokers is None:
        return {
            cluster: (min(times), max(times))
            for cluster in {each.cluster for each in taken}
            if (times := [each.time for each in taken if each.cluster == cluster])
        }
    ends = brokers.groupBy("cluster").agg(F.unix_seconds(F.min("time")), F.unix_seconds(F.max("time")))
    return {
        row[0]: (datetime.fromtimestamp(row[1], UTC), datetime.fromtimestamp(row[2], UTC)) for row in ends.collect()
    }


def _bytes_in(mean: float, percentiles: Sequence[float] | None) -> BytesIn:
    low, high, peak = percentiles or (None, None, None)
    return BytesIn(mean=mean, low=low, high=high, peak=peak)
