"""`quota simulate --trace`: simulates each client of a trace, on this machine or, for a large trace, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kquota.cli import world
from kquota.cli.contract import say
from kquota.cli.engine_options import engine
from kquota.cli.progress import stages
from kquota.cli.quota.simulate.answer import UNFINISHED, StreamShown, Traced, name
from kquota.cli.quota.simulate.command import SimulateOptions, option
from kquota.errors import Invalid
from kquota.quota_keys import QUOTA_KEYS
from kquota.simulate import trace as traces
from kquota.simulate.curve import total
from kquota.simulate.load import Quotas
from kquota.simulate.trace import Answered
from kquota.spark import trace_files
from kquota.spark.engine import Engine
from kquota.spark.session import session
from kquota.spark.trace_files import Bad, TraceFiles

_MUCH: Final = 20_000_000
"""Bytes of text that take as long here as the start of Spark."""
_LONGEST_SHOWN: Final = 200


def answer(given: SimulateOptions, held: Quotas) -> Traced:
    """Invalid rows are left out and reported on stderr.

    Raises Invalid for files that are not a trace, for a trace without a valid row, and for a quota whose column is
    missing in a header.
    """
    where = engine(given.spark_master, given.spark_remote, given.conf)
    with world.workspace() as scratch:
        trace = trace_files.opened(given.trace or (), scratch)
        columns = {key: QUOTA_KEYS[key].counts for key in held.limits}
        for key, column in columns.items():
            if trace.header is not None and column not in trace.names:
                raise Invalid(f"{option(key)} has no effect: --trace {trace.files.told()[0]} has no column {column}")
        bad = Bad()
        found = _answered(given, held, trace, bad, where, scratch)
        if bad.example is not None:
            link, line = bad.example
            shown = line[:_LONGEST_SHOWN] + ("..." if len(line) > _LONGEST_SHOWN else "")
            say(
                f"rows left out: {bad.count}, for example in {trace.files.name(link)}: {shown!r}. "
                "A number is missing or not valid, or one row has both bytes and mutations"
            )
    if not found:
        raise Invalid("--trace: contains no valid row")
    costs = {cost for one in found for cost in one.flow.costs}
    for key, column in columns.items():
        if column not in costs:
            say(f"warning: {option(key)} has no effect: no row has {column}")
    for one in found:
        if one.flow.unfinished:
            say(f"warning: {name(one.stream)}: {UNFINISHED}. The figures cover the time before")
    return Traced(
        held=held,
        streams=tuple(StreamShown(stream=one.stream, flow=one.flow) for one in found),
        bytes_curve=total([one.flow.bytes_curve for one in found]),
        mutations_curve=total([one.flow.mutations_curve for one in found]),
    )


def _answered(
    given: SimulateOptions, held: Quotas, trace: TraceFiles, bad: Bad, where: Engine, scratch: Path
) -> list[Answered]:
    if not _asks_for_spark(where, given) and trace.text_size() < _MUCH:
        return traces.answered(trace_files.rows(trace, bad), held, closed_loop=given.closed_loop)
    with stages() as told, session(scratch, trace.files, say, engine=where, told=told) as spark:
        # Only a trace of this size needs PySpark.
        from kquota.spark.reader import Reader
        from kquota.spark.trace import answered

        reader = Reader(spark=spark, scratch=scratch, uploads=where.uploads)
        return answered(reader, trace, held, bad, closed_loop=given.closed_loop)


def _asks_for_spark(where: Engine, given: SimulateOptions) -> bool:
    return where.master is not None or where.remote is not None or bool(given.conf)
