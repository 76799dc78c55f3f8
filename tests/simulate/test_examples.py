"""The examples of the proposals themselves."""

from __future__ import annotations

import heapq

import pytest

from kquota.quota_keys import Model
from kquota.simulate.delay import (
    Bucket,
    Draft,
    Mutations,
    Spread,
    delay_ms,
    most_thread_ms,
    throttle_time_ms,
    throughput,
)

R, B = 5.0, 500
"""KIP-599's example: on average 5 mutations a second, 500 at once; 7 topics of 80 partitions are 560."""
BURST = 7 * 80


def test_560_mutations_at_rate_5_and_burst_500_wait_12_seconds() -> None:
    mutations = Mutations(Bucket(rate=R, samples=B // 5))
    assert mutations.bucket.burst == B
    assert mutations.admit(BURST, 0) is None
    assert mutations.admit(1, 0) == 12_000
    assert mutations.admit(1, 11_999) == 1
    assert mutations.admit(1, 12_000) is None


@pytest.mark.parametrize(
    ("spread", "admitted_after"),
    # 100 x 5.6: after 11 samples 498.4 are left, below the quota; 99 x 5 + 65: after 12 samples 500, at the quota.
    [(Spread.EVEN, 11_000), (Spread.FRONT, 12_000)],
)
def test_the_drafts_also_wait_12_seconds(spread: Spread, admitted_after: int) -> None:
    draft = Draft(spread=spread, rate=R, samples=B // 5)
    assert draft.admit(BURST, 0) is None
    assert draft.average(0) == pytest.approx(5.6)
    assert draft.admit(1, 0) == 12_000
    assert draft.admit(1, admitted_after - 1) is not None
    assert draft.admit(1, admitted_after) is None


def test_at_exactly_the_quota_one_draft_rejects_and_the_other_does_not() -> None:
    even, front = (Draft(spread=spread, rate=R, samples=100) for spread in Spread)
    assert (even.admit(B, 0), front.admit(B, 0)) == (None, None)
    assert (even.admit(1, 0), front.admit(1, 0)) == (0, None)


def test_one_percent_is_10_ms_of_each_second() -> None:
    """KIP-124: during the 10 s of a first measurement, 100 ms of one thread are 1%."""
    quota = throughput(Model.SHARE, 1.0)
    assert quota.record(100 * 0.100, 0) == 0
    assert quota.record(100 * 0.001, 0) > 0


def test_the_delay_brings_the_rate_down_to_the_target() -> None:
    """KIP-124: O x W / (W + X) = T."""
    assert delay_ms(observed=15.0, bound=10.0, window_ms=10_000) == 5_000
    assert 15.0 * 10_000 / (10_000 + 5_000) == 10.0


def test_a_request_of_100_ms_at_a_tenth_of_a_percent_waits_one_sample_only() -> None:
    """KIP-124: a pause of the broker must not block a client for the 90 s that the formula gives."""
    assert throughput(Model.SHARE, 0.1).record(100 * 0.100, 0) == 1_000
    uncapped = throughput(Model.SHARE, 0.1)
    uncapped.longest_ms = None
    assert uncapped.record(100 * 0.100, 0) == 90_000


def test_a_byte_rate_waits_for_the_whole_delay() -> None:
    quota = throughput(Model.RATE, 1_000_000)
    assert quota.record(10_000_000, 0) == 0
    assert quota.record(50_000_000, 0) == 50_000


@pytest.mark.parametrize(
    ("request_ms", "rejected_ms", "waited_ms", "expected"),
    [
        (300, [], 0, 300),
        (300, [12_000, 11_990], 0, 11_990),
        (300, [12_000, 11_990], 1_990, 10_000),
        (300, [1_000], 900, 300),
        (0, [1_000], 4_000, 0),
    ],
)
def test_a_response_has_the_longer_of_both_waits(
    request_ms: int, rejected_ms: list[int], waited_ms: int, expected: int
) -> None:
    """KIP-599: max(request, min(topics) - purgatory)."""
    assert throttle_time_ms(request_ms, rejected_ms, waited_ms) == expected


def thread_ms_per_second(bound: float, connections: int, request_ms: float) -> float:
    """The thread time of a user whose connections send again as soon as they are not muted, after the first bursts."""
    quota = throughput(Model.SHARE, bound)
    free, used, begin, end = [(0.0, n) for n in range(connections)], 0.0, 60_000, 360_000
    while free[0][0] < end:
        at, connection = free[0]
        wait = quota.record(request_ms / 10, int(at + request_ms))
        used += request_ms if at >= begin else 0
        heapq.heapreplace(free, (at + request_ms + wait, connection))
    return used / (end - begin) * 1_000


@pytest.mark.parametrize(
    ("bound", "connections", "request_ms", "expected"),
    [(1, 1, 5, 10), (50, 5, 10, 500), (1, 5, 100, 500), (0.1, 20, 10, 200)],
)
def test_a_user_of_many_connections_gets_the_quota_or_one_request_of_each_per_second(
    bound: float, connections: int, request_ms: float, expected: float
) -> None:
    """KIP-124: max(quota, C x R), because a delay is at most one second. The request itself also takes R."""
    assert most_thread_ms(bound, connections, request_ms) == expected
    got = thread_ms_per_second(bound, connections, request_ms)
    assert expected / (1 + request_ms / 1_000) * 0.99 <= got <= expected * 1.01
