"""A move cut into waves: its moving partitions in their order, each with the number of its wave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kquota.pace.split import Split
from kquota.spark.partitions import KEY
from kquota.spark.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """Moving partitions with their `wave`, from 1; and by its number the first and the last partition of each."""

    moving: DataFrame
    ends: Mapping[int, tuple[str, str]]


def in_waves(moving: DataFrame, split: Split, reader: Reader) -> Waves:
    """The partitions that move, in the order of topic and partition, cut by `split`."""
    ordered = moving.withColumn("n", F.row_number().over(Window.orderBy(*KEY)) - 1)
    # Only bytes leave Spark, as one list: a million names would be a hundred times as much.
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
    return Waves(
        moving=ordered.join(F.broadcast(table), same & within),
        ends={wave: (names[start], names[stop - 1]) for wave, (start, stop) in enumerate(cuts, 1)},
    )


def _rows(cuts: Iterable[tuple[int, int]], step: int) -> Iterator[str]:
    """Each wave in every step that it touches: a join finds it by the step, however many waves there are."""
    for wave, (start, stop) in enumerate(cuts, 1):
        for touched in range(start // step, (stop - 1) // step + 1):
            yield f'{{"step":{touched},"start":{start},"stop":{stop},"wave":{wave}}}'
