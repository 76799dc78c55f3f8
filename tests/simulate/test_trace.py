"""Rows of a trace, the curve that fits whatever happened, and the library as docs/loads.md shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.simulate import Bucket, Mutations, Quotas, Request, deploy, flow, rate_within
from kquota.simulate import trace as traces
from kquota.simulate.curve import MOST, Curve, total
from kquota.simulate.trace import Stream

NAMES = ("ms", "bytes", "thread_ms", "mutations", "broker", "user", "client_id")
NOBODY = Stream("", "", "")
ROWS = {
    "5,10,0.25,,1,a,b": (Stream("1", "a", "b"), Request(5, 10, 0.25, 0)),
    "5,,,80,,,": (NOBODY, Request(5, 0, 0.0, 80)),
    ' 5 , 10 ,,,,"a,b",': (Stream("", "a,b", ""), Request(5, 10)),
    "5,,,,,,": (NOBODY, Request(5)),
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
def test_a_row(line: str, expected: tuple[Stream, Request] | None) -> None:
    row = traces.of_csv(line, NAMES)
    assert (row and traces.request(row)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"ms": 5, "bytes": "10", "user": null, "more": [1]}', (NOBODY, Request(5, 10))),
        ('{"ms": 5, "thread_ms": 0.10, "broker": 3}', (Stream("3", "", ""), Request(5, 0, 0.1))),
        ('{"ms": 5.0}', None),
        ('{"ms": NaN}', None),
        ("[5]", None),
        ("{", None),
    ],
)
def test_a_row_of_json(line: str, expected: tuple[Stream, Request] | None) -> None:
    row = traces.of_json(line)
    assert (row and traces.request(row)) == expected


@pytest.mark.parametrize("line", ["", "bytes", "ms", "ms,user", "ms,bytes,ms", "5,10"])
def test_what_is_no_header(line: str) -> None:
    with pytest.raises(Invalid, match="x: its first line must name the columns"):
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


def test_the_library() -> None:
    assert deploy([80] * 7, Mutations(Bucket(rate=5))).ms == 85_000
    assert rate_within([12] * 2_000, 600_000, lambda rate: Mutations(Bucket(rate=rate))) == 40
    load = (Request(at, 1_000_000) for at in range(0, 60_000, 40))
    assert flow(load, Quotas(producer_byte_rate=10e6)).worst_wait == 1_100


def test_a_rate_that_is_never_enough() -> None:
    from kquota.simulate import Manner

    slow = Manner(per_request=1, request_percentage=1, thread_ms=500)
    with pytest.raises(Invalid, match="the request percentage alone takes longer"):
        rate_within([1] * 100, 1_000, lambda rate: Mutations(Bucket(rate=rate)), slow)
