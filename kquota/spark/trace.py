"""The job of a large trace. It simulates the requests of each stream in order, and all streams in parallel.

This is the only job that runs Python in Spark. The answer of a broker depends on its previous answers, and rejected
requests are sent again, so sums over columns are not enough. The code is sent by value, so workers do not need kquota.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

import kquota.errors
import kquota.quota_keys
import kquota.simulate
from kquota.simulate.answer import ClientSimulation, Flow
from kquota.simulate.curve import Curve
from kquota.simulate.load import Quotas, Request
from kquota.simulate.trace import COLUMNS, DECIMAL, WHOLE, Answered, TraceStream
from kquota.spark.reader import CORRUPT, Reader, parsed, schema_of
from kquota.spark.trace_files import BadRows, TraceFiles

if TYPE_CHECKING:
    from pyspark.sql.udtf import UserDefinedTableFunction

_CHUNK_MS: Final = 60_000
"""The time in ms that one row of a stream covers. If each row had only one request, sending the rows to Python would
take ten times as long as simulating the requests.
"""
_CURVE: Final = "struct<seconds: bigint, first: bigint, cells: array<bigint>>"
_FLOW: Final = {
    **dict.fromkeys(("begin", "end", "admitted", "rejected", "delayed", "bytes", "mutations", "total_wait"), "bigint"),
    **dict.fromkeys(("first_wait", "first_at", "worst_wait", "worst_at"), "bigint"),
    **dict.fromkeys(("steady_bytes", "steady_mutations"), "double"),
    **dict.fromkeys(("by", "costs"), "array<string>"),
    "unfinished": "boolean",
    **dict.fromkeys(("bytes_curve", "mutations_curve"), _CURVE),
}
_ANSWER: Final = schema_of(dict.fromkeys(TraceStream._fields, "string") | _FLOW)


def answered(reader: Reader, trace: TraceFiles, quotas: Quotas, bad: BadRows, *, closed_loop: bool) -> list[Answered]:
    """Simulate a trace in Spark, and return the result of each stream, sorted by stream.

    The result is the same as from `simulate.trace.answered`, to the millisecond. Invalid rows go to `bad`.
    """
    rows = requests(reader, trace)
    streams, columns = TraceStream._fields, Request._fields
    minute = F.expr(f"at div {_CHUNK_MS}").alias("minute")
    in_order = F.sort_array(F.collect_list(F.struct(*columns))).alias("in_order")
    # Shuffle the rows once, by stream. The next steps need no other shuffle.
    good = rows.where(~F.col("bad")).repartition(*streams)
    minutes = good.groupBy(*streams, minute).agg(in_order)
    apart = minutes.select(*streams, "minute", *(F.col("in_order")[name].alias(name) for name in columns))
    walk = cast(
        "UserDefinedTableFunction",
        F.udtf(walking(quotas, closed_loop=closed_loop), returnType=_ANSWER, useArrow=False),
    )
    found = walk(apart.asTable().partitionBy(*streams).orderBy("minute")).collect()
    # This is a separate query, because Spark Connect cannot observe rows on their way to Python.
    surveyed(rows, bad)
    return sorted(map(_answered, found), key=lambda one: one.stream)


def surveyed(rows: DataFrame, bad: BadRows) -> tuple[int, int] | None:
    """Return the earliest and the latest time of the valid rows in ms, or None without a valid row.

    `rows` come from `requests`. Invalid rows go to `bad`.
    """
    example, at = F.when(F.col("bad"), F.struct("file", "value")), F.when(~F.col("bad"), F.col("at"))
    bad.count, found, first, last = rows.agg(F.count_if("bad"), F.min(example), F.min(at), F.max(at)).collect()[0]
    bad.example = None if found is None else (found["file"], found["value"])
    return None if last is None else (first, last)


def requests(reader: Reader, trace: TraceFiles) -> DataFrame:
    """Return a row for each request: its stream, its numbers, the original `file` and `value`, and `bad`, which is true
    if the row is invalid.
    """
    lines = reader.lines(trace.files)
    skipped = F.trim("value") == ""
    if trace.header is None:
        places = {name: name for name in COLUMNS}
    else:
        skipped |= F.col("value") == trace.header
        places = {name: f"c{n}" for n, name in enumerate(trace.names)}
    row = parsed(schema_of(dict.fromkeys(places.values(), "string")), csv=trace.header is not None)
    found = lines.where(~skipped).select("file", "value", row)
    cells = {name: F.trim(F.coalesce(f"parsed.{places[name]}", F.lit(""))) for name in COLUMNS if name in places}
    text = found.select(
        "file", "value", F.col(f"parsed.{CORRUPT}"), *(cells.get(name, F.lit("")).alias(name) for name in COLUMNS)
    )
    return text.select(*TraceStream._fields, *_request(), "file", "value", _is_bad().alias("bad"))


def _is_bad() -> Column:
    good = F.col(CORRUPT).isNull() & _matches(F.col("ms"), WHOLE)
    for name, pattern in {"bytes": WHOLE, "mutations": WHOLE, "thread_ms": DECIMAL}.items():
        good &= _matches(_number(name), pattern)
    return ~good | ((_number("bytes").try_cast("bigint") > 0) & (_number("mutations").try_cast("bigint") > 0))


def _matches(column: Column, pattern: str) -> Column:
    return column.rlike(rf"^(?:{pattern})\z")


def _number(name: str) -> Column:
    return F.when(F.col(name) == "", F.lit("0")).otherwise(F.col(name))


def _request() -> Iterator[Column]:
    kinds = {"at": ("ms", "bigint"), "thread_ms": ("thread_ms", "double")}
    for name in Request._fields:
        column, kind = kinds.get(name, (name, "bigint"))
        yield _number(column).try_cast(kind).alias(name)


def walking(quotas: Quotas, *, closed_loop: bool) -> type:
    """Return the class that simulates one stream on a worker. cloudpickle sends the kquota code of the class by value,
    so workers do not need kquota.
    """
    names = tuple(_FLOW)

    class Walking:
        def __init__(self) -> None:
            self.walk = ClientSimulation(quotas=quotas, closed_loop=closed_loop)
            self.stream: tuple[str, ...] = ()

        def eval(self, row: Any) -> None:
            self.stream = (row["broker"], row["user"], row["client_id"])
            for request in zip(row["at"], row["bytes"], row["thread_ms"], row["mutations"], strict=True):
                self.walk.take(Request(*request))

        def terminate(self) -> Iterator[tuple[object, ...]]:
            if not self.stream:  # because Spark also calls this for a partition without rows
                return
            flow = self.walk.flow()
            curves = ((c.seconds, c.first, c.cells) for c in (flow.bytes_curve, flow.mutations_curve))
            yield (*self.stream, *(getattr(flow, name) for name in names[:-2]), *curves)

    for module in (kquota.simulate, kquota.quota_keys, kquota.errors):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # PySpark has no type for it
    return Walking


def _answered(row: Row) -> Answered:
    fields: dict[str, Any] = {name: row[name] for name in _FLOW}
    for name in ("by", "costs"):
        fields[name] = tuple(fields[name])
    for name in ("bytes_curve", "mutations_curve"):
        fields[name] = Curve(**fields[name].asDict())
    return Answered(stream=TraceStream(*(row[name] for name in TraceStream._fields)), flow=Flow(**fields))
