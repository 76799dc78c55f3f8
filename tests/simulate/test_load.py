"""Clients under quotas: the accepted requests and their times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.simulate.answer import deploy
from kquota.simulate.delay import Bucket, Draft, Mutations, Spread
from kquota.simulate.load import Manner, Quotas, Request, Sent, SimulatedClient, rounds

KB = 1_000


def sent(load: list[Request], closed_loop: bool = False, **quotas: Any) -> list[Sent]:
    client = SimulatedClient(quotas=Quotas(**quotas), closed_loop=closed_loop)
    return [one for request in load for one in client.send(request)]


def test_seven_topics_of_80_partitions_at_rate_5() -> None:
    """A bucket of 55 accepts the first topic and owes 25. Each later topic waits for the 80 of the previous one."""
    told = [(r.at, r.admitted, r.wait_ms) for r in rounds([80] * 7, Mutations(Bucket(rate=5)))]
    assert told == [(0, 1, 5_000), *((5_000 + n * 16_000, 1, 16_000) for n in range(5)), (85_000, 1, 0)]


def test_an_old_client_is_accepted_and_waits_afterwards() -> None:
    """KIP-599: all in one request, or topic by topic, each after the wait of the previous one."""
    (once,) = rounds([80] * 7, Mutations(Bucket(rate=5)), Manner(quotas=Quotas(strict=False)))
    assert (once.admitted, once.wait_ms) == (7, (560 - 55) * 200)
    each = list(rounds([80] * 7, Mutations(Bucket(rate=5)), Manner(quotas=Quotas(strict=False), per_request=1)))
    assert [r.at for r in each] == [0, *(5_000 + n * 16_000 for n in range(6))]


@pytest.mark.parametrize("spread", Spread)
def test_an_old_client_under_a_draft(spread: Spread) -> None:
    (once,) = rounds([80] * 7, Draft(spread=spread, rate=5, samples=100), Manner(quotas=Quotas(strict=False)))
    assert once.wait_ms == 12_000


def test_a_deploy_under_a_request_quota_waits_for_the_longer_of_the_two() -> None:
    """KIP-599: throttle_time_ms is the larger one. 300 ms of a thread for each request are 30, and 1% allows 10."""
    manner = Manner(quotas=Quotas(request_percentage=1), thread_ms=300)
    told = [(r.at, r.wait_ms) for r in rounds([6] * 10, Mutations(Bucket(rate=5)), manner)]
    assert told == [(0, 1_000)]
    slow = [r.wait_ms for r in rounds([80] * 7, Mutations(Bucket(rate=5)), manner)]
    assert slow == [5_000, 16_000, 16_000, 16_000, 16_000, 16_000, 1_000]
    assert deploy([6] * 9, Mutations(Bucket(rate=5)), manner).next_wait_ms == 1_000
    assert deploy([80] * 7, Mutations(Bucket(rate=5)), manner).next_wait_ms == 16_000


@given(st.lists(st.integers(1, 500), min_size=1, max_size=40), st.integers(1, 1_000))
def test_all_items_are_accepted_in_the_time_of_their_mutations(items: list[int], rate: int) -> None:
    told = list(rounds(items, Mutations(Bucket(rate=rate))))
    assert sum(r.admitted for r in told) == len(items)
    assert [r.mutations for r in told] == [sum(items[r.first : r.first + r.admitted]) for r in told]
    owed = max(0.0, sum(items[:-1]) - 11 * rate)
    # Each wait is rounded to a ms. A client whose wait was rounded down retries a ms later.
    assert told[-1].at == pytest.approx(owed / rate * 1_000, abs=2 * len(told))
    assert all(r.admitted or r.wait_ms == 1 for r in told)


@pytest.mark.parametrize("side", ["producer_byte_rate", "consumer_byte_rate"])
@given(quota_kb=st.integers(1, 50), times=st.integers(1, 20))
def test_the_long_run_rate_is_the_quota(side: str, quota_kb: int, times: int) -> None:
    load = [Request(n * 100, quota_kb * KB * times // 10) for n in range(1_200)]
    held: dict[str, Any] = {side: quota_kb * KB}
    told = sent(load, **held)
    seconds = (told[-1].at + told[-1].wait_ms) / 1_000
    rate = sum(one.bytes for one in told) / max(seconds, 120)
    assert rate <= quota_kb * KB * 1.1
    # A fetch that comes too early also waits for its own bytes, although it has not received them yet.
    assert times == 1 or rate == pytest.approx(quota_kb * KB, rel=0.1 if side == "producer_byte_rate" else 0.2)
    assert sum(one.bytes for one in told) == sum(one.bytes for one in load)


@pytest.mark.parametrize("closed_loop", [False, True])
def test_a_muted_client_sends_nothing(closed_loop: bool) -> None:
    """KIP-219: the broker reads nothing before the mute ends, whatever the client does."""
    told = sent([Request(0, 30 * KB)] * 20, closed_loop=closed_loop, producer_byte_rate=1 * KB)
    assert all(after.at == before.at + before.wait_ms for before, after in pairwise(told))
    assert told[-1].by == "byte rate"


def test_requests_pile_up_behind_a_mute_unless_the_loop_is_closed() -> None:
    load = [Request(0, 50 * KB), Request(60_000, KB), Request(61_000, KB)]
    assert [one.at for one in sent(load, producer_byte_rate=1 * KB)] == [0, 60_000, 61_000]
    moved = [one.at for one in sent(load, closed_loop=True, producer_byte_rate=1 * KB)]
    assert moved == [0, 40_000 + 60_000, 40_000 + 61_000]


def test_a_throttled_fetch_is_answered_empty_and_uses_nothing() -> None:
    """KafkaApis removes the bytes of the empty answer from its sums. 15 kB in 10 s are 50% too much, and 10 s later
    the first samples have expired.
    """
    told = sent([Request(0, 10 * KB), Request(0, 5 * KB)], consumer_byte_rate=1 * KB)
    assert told[:2] == [
        Sent(0, 10 * KB, 0, 0, None, True),
        Sent(0, 0, 0, 5_000, "byte rate", False),
    ]
    assert [one.bytes for one in told if one.served] == [10 * KB, 5 * KB]


def test_a_fetch_larger_than_a_window_is_answered_in_parts() -> None:
    """A broker limits a fetch to its quota times all samples but one; otherwise it could never be answered."""
    told = sent([Request(0, 25 * KB)], consumer_byte_rate=1 * KB)
    assert [one.bytes for one in told if one.served] == [10 * KB, 10 * KB, 5 * KB]


def test_a_fetch_that_its_quota_never_allows_is_given_up() -> None:
    told = sent([Request(0, 1, 500), Request(0, 1, 500)], consumer_byte_rate=1 * KB, request_percentage=1)
    assert (len(told), {one.served for one in told}, told[-1].wait_ms) == (1_000, {False}, 1_000)


def test_the_longer_of_two_waits_counts_not_their_sum() -> None:
    held: dict[str, Any] = {"producer_byte_rate": 1 * KB, "request_percentage": 1.0}
    (both,) = sent([Request(0, 50 * KB, 500)], **held)
    assert (both.wait_ms, both.by) == (40_000, "byte rate")
    (short,) = sent([Request(0, 1, 500)], **held)
    assert (short.wait_ms, short.by) == (1_000, "request percentage")
    (alike,) = sent([Request(0, 11 * KB, 500)], **held)
    assert (alike.wait_ms, alike.by) == (1_000, "request percentage")


def test_bytes_threads_and_mutations_of_one_client_are_counted_side_by_side() -> None:
    held: dict[str, Any] = {
        "producer_byte_rate": 1 * KB,
        "request_percentage": 1.0,
        "controller_mutation_rate": 5.0,
    }
    create = Request(0, thread_ms=20, mutations=80)
    told = sent([create, create, Request(0, 12 * KB, 100), Request(0, 0, 100)], **held)
    assert [(one.at, one.mutations, one.wait_ms, one.by) for one in told] == [
        (0, 80, 0, None),
        # 25 tokens are missing, at 5 a second.
        (0, 0, 5_000, "mutation rate"),
        (5_000, 80, 0, None),
        # 12 kB in 10 s; 16% of a thread's second are 1.6 times too much. The reported delay is at most one sample.
        (5_000, 0, 2_000, "byte rate"),
        # Until 10 s have passed the rate stays the same, and an empty request waits as long again.
        (7_000, 0, 2_000, "byte rate"),
    ]
    old = sent([create, create], strict=False, **held)
    assert [(one.at, one.wait_ms, one.served) for one in old] == [(0, 5_000, True), (5_000, 16_000, True)]
