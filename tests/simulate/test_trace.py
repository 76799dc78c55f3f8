"""Rows of a trace, the curve of any trace, and the library as docs/loads.md shows it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from kquota.errors import Invalid
from kquota.simulate import Bucket, Draft, Manner, Mutations, Quotas, Request, Spread, deploy, flow, rate_within
from kquota.simulate import trace as traces
from kquota.simulate.curve import MOST, Curve, total
from kquota.simulate.trace import TraceStream
from tests.cli.run import run

NAMES = ("ms", "bytes", "thread_ms", "mutations", "broker", "user", "client_id")
UNNAMED = TraceStream("", "", "")
ROWS = {
    "5,10,0.25,,1,a,b": (TraceStream("1", "a", "b"), Request(5, 10, 0.25, 0)),
    "5,,,80,,,": (UNNAMED, Request(5, 0, 0.0, 80)),
    ' 5 , 10 ,,,,"a,b",': (TraceStream("", "a,b", ""), Request(5, 10)),
    "5,,,,,,": (UNNAMED, Request(5)),
    ",10,,,,,": None,
    "5.0,10,,,,,": None,
    "-5,10,,,,,": None,
    "5,1e3,,,,,": None,
    "5,10,-1,,,,": None,
    "5,10,nan,,,,": None,
    "5,10,,80,,,": None,
    "5,10": None,
    "5,10,,,,,,": None,
    "٥,10,,,,,": None,
}


@pytest.mark.parametrize(("line", "expected"), ROWS.items(), ids=ROWS)
def test_a_row(line: str, expected: tuple[TraceStream, Request] | None) -> None:
    row = traces.of_csv(line, NAMES)
    assert (row and traces.request(row)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"ms": 5, "bytes": "10", "user": null, "more": [1]}', (UNNAMED, Request(5, 10))),
        ('{"ms": 5, "thread_ms": 0.10, "broker": 3}', (TraceStream("3", "", ""), Request(5, 0, 0.1))),
        ('{"ms": 5.0}', None),
        ('{"ms": NaN}', None),
        ("[5]", None),
        ("{", None),
    ],
)
def test_a_row_of_json(line: str, expected: tuple[TraceStream, Request] | None) -> None:
    row = traces.of_json(line)
    assert (row and traces.request(row)) == expected


NO_HEADER = {
    "nothing": "",
    "no time": "bytes",
    "nothing but the time": "ms",
    "nothing that was asked for": "ms,user",
    "one twice": "ms,bytes,ms",
    "a row": "5,10",
    "a cell beyond what csv takes": f"ms,{'b' * 140_000}",
}


@pytest.mark.parametrize("line", NO_HEADER.values(), ids=NO_HEADER)
def test_invalid_headers(line: str) -> None:
    with pytest.raises(Invalid, match="x: the first line must name the column ms"):
        traces.header(line, "x")


HAPPENED = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**9)), max_size=60).map(sorted)


def curve(happened: list[tuple[int, int]]) -> Curve:
    found = Curve()
    for ms, amount in happened:
        found.add(ms, amount)
    return found


@given(st.lists(HAPPENED, max_size=5), st.integers(1, MOST))
def test_curves_lose_nothing_and_add_up(all_of_them: list[list[tuple[int, int]]], cells: int) -> None:
    together = curve(sorted(one for each in all_of_them for one in each))
    found = total([curve(each) for each in all_of_them])
    assert sum(found.cells) == sum(together.cells) == sum(amount for each in all_of_them for _, amount in each)
    assert len(found.cells) <= MOST
    assert len(found.within(cells).cells) <= max(2, cells)


def test_a_cell_begins_at_a_whole_multiple_of_its_width() -> None:
    found = curve([(7_000, 1), (130_000, 2)])
    assert (found.seconds, found.first, len(found.cells), found.cells[0], found.cells[-1]) == (2, 3, 63, 1, 2)


def test_a_sum_keeps_the_seconds_of_its_curves() -> None:
    found = total([curve([(5_000, 1)]), curve([(5_999, 2), (7_000, 4)])])
    assert (found.seconds, found.first, found.cells) == (1, 5, [3, 0, 4])


def test_the_library() -> None:
    assert deploy([80] * 7, Mutations(Bucket(rate=5))).ms == 85_000
    assert rate_within([12] * 2_000, 600_000, lambda rate: Mutations(Bucket(rate=rate))) == 40
    load = (Request(at, 1_000_000) for at in range(0, 60_000, 40))
    assert flow(load, Quotas(producer_byte_rate=10e6)).worst_wait == 1_100


@given(st.integers(1, 10**6), st.integers(1, 20_000))
def test_the_long_run_rate_of_an_unthrottled_client_is_its_send_rate(size: int, every: int) -> None:
    """The rate contains no additional request, because the last request has no duration yet."""
    load = [Request(at, size) for at in range(0, 90_000, every)]
    assert flow(load, Quotas(producer_byte_rate=1e12)).steady_bytes == pytest.approx(size * 1_000 / every)


@pytest.mark.parametrize("lasts", [0, 21_000, 32_000])
def test_the_long_run_begins_after_two_windows_and_takes_one(lasts: int) -> None:
    quotas = Quotas(producer_byte_rate=1e12)
    assert flow([Request(at, 1) for at in range(0, lasts, 1_000)], quotas).steady_bytes is None
    assert flow([Request(at, 1) for at in range(0, 34_000, 1_000)], quotas).steady_bytes == 1


NO_QUOTAS: dict[str, Callable[[], object]] = {
    "a rate of 0": lambda: Quotas(producer_byte_rate=0),
    "a rate below 0": lambda: Quotas(consumer_byte_rate=-1),
    "a rate that is not a number": lambda: Quotas(request_percentage=math.nan),
    "a rate without end": lambda: Quotas(controller_mutation_rate=math.inf),
    "a bucket that nothing fills": lambda: Bucket(rate=0),
    "a draft that nothing fills": lambda: Draft(spread=Spread.EVEN, rate=0, samples=11),
    "no topic in any request": lambda: Manner(per_request=-1),
    "a deploy under no percentage": lambda: Manner(quotas=Quotas(request_percentage=0)),
    "no sample": lambda: Quotas(samples=0),
    "both sides of one connection": lambda: Quotas(producer_byte_rate=1, consumer_byte_rate=1),
}


@pytest.mark.parametrize("made", NO_QUOTAS.values(), ids=NO_QUOTAS)
def test_an_invalid_quota_is_refused_by_its_constructor(made: Callable[[], object]) -> None:
    with pytest.raises(Invalid, match=r"must be more than 0 and finite|must be 1 or more|produces or consumes"):
        made()


def test_a_load_for_which_no_rate_is_enough() -> None:
    slow = Manner(quotas=Quotas(request_percentage=1), per_request=1, thread_ms=500)
    with pytest.raises(Invalid, match="the request percentage alone makes the load take longer than the given time"):
        rate_within([1] * 100, 1_000, lambda rate: Mutations(Bucket(rate=rate)), slow)


WORKER = """
import pathlib
import sys
sys.modules["kquota"] = None
from pyspark import cloudpickle

stream = cloudpickle.loads(pathlib.Path(sys.argv[1]).read_bytes())()
row = {"broker": "1", "user": "alice", "client_id": "c"}
stream.eval(row | {"at": [0, 100], "bytes": [90, 90], "thread_ms": [0.5, 0.5], "mutations": [0, 0]})
print(next(stream.terminate())[:5])
"""


def test_a_worker_of_spark_does_not_need_kquota(tmp_path: Path) -> None:
    """The code that Spark sends refers to no module of kquota."""
    from kquota.spark.trace import walking

    sent = tmp_path / "sent"
    walk = walking(Quotas(producer_byte_rate=1_000.0), closed_loop=False)
    sent.write_bytes(cloudpickle.dumps(walk))  # type: ignore[no-untyped-call]  # PySpark has no type for it
    ran = run([sys.executable, "-c", WORKER, str(sent)])
    assert (ran.code, ran.err, ran.out) == (0, "", "('1', 'alice', 'c', 0, 100)\n")
