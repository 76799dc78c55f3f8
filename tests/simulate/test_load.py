"""Clients under quotas: what gets through, and when."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.simulate.bucket import Bucket
from kquota.simulate.delay import Mutations, byte_rate, request_percentage
from kquota.simulate.load import Request, rounds, stream

KB = 1_000


def test_seven_topics_of_80_partitions_at_rate_5() -> None:
    """A bucket of 55 lets the first topic through and owes 25; each later one waits for the 80 of the one before."""
    told = [(r.at, r.admitted, r.wait_ms) for r in rounds([80] * 7, Mutations(Bucket(rate=5)))]
    assert told == [(0, 1, 5_000), *((5_000 + n * 16_000, 1, 16_000) for n in range(5)), (85_000, 1, 0)]


@given(st.lists(st.integers(1, 500), min_size=1, max_size=40), st.integers(1, 1_000))
def test_all_items_get_through_in_the_time_that_their_mutations_are_worth(items: list[int], rate: int) -> None:
    told = list(rounds(items, Mutations(Bucket(rate=rate))))
    assert sum(r.admitted for r in told) == len(items)
    owed = max(0.0, sum(items[:-1]) - 11 * rate)
    # Each wait is rounded to a ms; one that was rounded down is found out a ms later.
    assert told[-1].at == pytest.approx(owed / rate * 1_000, abs=2 * len(told))
    assert all(r.admitted or r.wait_ms == 1 for r in told)


@given(st.integers(1, 50), st.integers(1, 20))
def test_what_gets_through_in_the_long_run_is_the_quota(quota_kb: int, times: int) -> None:
    load = [Request(at=n * 100, bytes=quota_kb * KB * times // 10) for n in range(1_200)]
    sent = list(stream(load, byte_rate(quota_kb * KB), None))
    seconds = (sent[-1].at + sent[-1].wait_ms) / 1_000
    rate = sum(one.request.bytes for one in sent) / max(seconds, 120)
    assert rate <= quota_kb * KB * 1.1
    assert times == 1 or rate == pytest.approx(quota_kb * KB, rel=0.1)


def test_a_client_is_silent_for_as_long_as_it_was_told() -> None:
    sent = list(stream([Request(at=0, bytes=30 * KB) for _ in range(20)], byte_rate(1 * KB), None))
    assert all(after.at == before.at + before.wait_ms for before, after in pairwise(sent))
    assert sent[-1].by == "byte rate"


def test_the_longer_of_two_waits_counts_not_their_sum() -> None:
    (both,) = stream([Request(at=0, bytes=50 * KB, thread_ms=500)], byte_rate(1 * KB), request_percentage(1))
    assert (both.wait_ms, both.by) == (40_000, "byte rate")
    (short,) = stream([Request(at=0, bytes=1, thread_ms=500)], byte_rate(1 * KB), request_percentage(1))
    assert (short.wait_ms, short.by) == (1_000, "request percentage")
