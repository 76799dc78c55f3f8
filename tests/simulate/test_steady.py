"""The throttle time of steady pieces, against the same pieces as requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.simulate import Quotas, Request, flow
from kquota.simulate.steady import ThrottledTime, throttled_time
from tests.profiles import examples

LIMIT = 1e6
SIZE = 100_000
Pieces = list[tuple[float, int]]


def requests(pieces: Pieces) -> Iterator[Request]:
    begin = 0.0
    for rate, seconds in pieces:
        yield from (Request(int((begin + n * SIZE / rate) * 1_000), SIZE) for n in range(int(rate * seconds / SIZE)))
        begin += seconds


PIECES = st.lists(
    st.tuples(st.sampled_from([1e5, 4e5, 8e5, 1.2e6, 1.5e6, 2.5e6]), st.sampled_from([30, 60, 120])),
    min_size=1,
    max_size=6,
)


@examples(30)
@given(PIECES)
def test_it_is_close_to_the_waits_of_every_request(pieces: Pieces) -> None:
    calm = [(1e5, 60), *pieces, (1e5, 1_800)]
    exact = flow(requests(calm), Quotas(producer_byte_rate=LIMIT)).total_wait / 1_000
    assert throttled_time(calm, LIMIT).seconds == pytest.approx(exact, rel=0.1, abs=3)


@given(PIECES, st.floats(1.01, 3))
def test_a_higher_limit_never_throttles_for_longer(pieces: Pieces, factor: float) -> None:
    low, high = (throttled_time([*pieces, (0, 10_000)], limit) for limit in (LIMIT, LIMIT * factor))
    assert high.seconds <= low.seconds + 1e-6


@given(PIECES)
def test_a_client_below_its_limit_never_waits(pieces: Pieces) -> None:
    assert throttled_time(pieces, max(rate for rate, _ in pieces)) == ThrottledTime()


def test_all_waits_count_and_the_longest_is_known() -> None:
    found = throttled_time([(0.0, 100), (2e6, 60), (0.0, 300), (2e6, 20), (0.0, 300)], LIMIT)
    assert not found.unfinished
    assert found.longest == pytest.approx(112.5)
    assert found.seconds == pytest.approx(112.5 + 32.5)
    assert throttled_time([(2e6, 60)], LIMIT).unfinished
