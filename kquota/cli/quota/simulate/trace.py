"""What `quota simulate --trace` does: each client of a trace by itself, here or, where there is much, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli.actions import stands
from kquota.cli.contract import say
from kquota.cli.engine_options import engine
from kquota.cli.progress import stages
from kquota.cli.quota.simulate import printed
from kquota.cli.quota.simulate.options import Given
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.simulate.load import Quotas
    from kquota.simulate.trace import Answered
    from kquota.spark.engine import Engine
    from kquota.spark.trace_files import Bad, TraceFiles

_MUCH: Final = 20_000_000
"""Bytes of text that take as long here as Spark needs to start."""
_LONGEST_SHOWN: Final = 200
_COLUMNS: Final = {
    "--producer-byte-rate": "bytes",
    "--consumer-byte-rate": "bytes",
    "--request-percentage": "thread_ms",
    "--controller-mutation-rate": "mutations",
}
"""What a quota counts."""


def answer(given: Given, held: Quotas) -> str:
    """Bad rows are left out, and told on stderr.

    Raises Invalid for files that are no trace, for no good row, and for a quota whose column a header does not name.
    """
    from kquota.spark import trace_files
    from kquota.spark.trace_files import Bad
    from kquota.stores.workspace import workspace

    where = engine(given.spark_master, given.spark_remote, given.conf)
    with workspace() as scratch:
        trace = trace_files.opened(given.trace or (), scratch)
        for option, column in _COLUMNS.items():
            if stands(given, option[2:]) and trace.header is not None and column not in trace.names:
                raise Invalid(f"{option} has no effect: --trace {trace.files.told()[0]} has no column {column}")
        bad = Bad()
        found = _answered(given, held, trace, bad, where, scratch)
        if bad.example is not None:
            link, line = bad.example
            shown = line[:_LONGEST_SHOWN] + ("..." if len(line) > _LONGEST_SHOWN else "")
            say(
                f"rows left out: {bad.count}; a number is missing, or is none, or bytes and mutations stand in one; "
                f"as in {trace.files.name(link)}: {shown!r}"
            )
    if not found:
        raise Invalid("--trace: holds no good row")
    costs = {cost for one in found for cost in one.flow.costs}
    for option, column in _COLUMNS.items():
        if stands(given, option[2:]) and column not in costs:
            say(f"warning: {option} has no effect: no row has {column}")
    for one in found:
        if one.flow.unfinished:
            say(f"warning: {printed.name(one.stream)}: {printed.UNFINISHED}; told is what came before")
    return printed.traced(found, held, given.output)


def _answered(given: Given, held: Quotas, trace: TraceFiles, bad: Bad, where: Engine, scratch: Path) -> list[Answered]:
    from kquota.simulate import trace as traces
    from kquota.spark import trace_files
    from kquota.spark.session import session

    if not _asks_for_spark(where, given) and trace.text_size() < _MUCH:
        return traces.answered(trace_files.rows(trace, bad), held, closed_loop=given.closed_loop)
    with stages() as told, session(scratch, trace.files, say, engine=where, told=told) as spark:
        from kquota.spark.reader import Reader
        from kquota.spark.trace import answered

        reader = Reader(spark=spark, scratch=scratch, uploads=where.uploads)
        return answered(reader, trace, held, bad, closed_loop=given.closed_loop)


def _asks_for_spark(where: Engine, given: Given) -> bool:
    return where.master is not None or where.remote is not None or bool(given.conf)
