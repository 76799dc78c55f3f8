"""KIP-73's MoveRatio and MoveTime, as its Q&A 1 writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.measure import ByteRate
from kquota.pace.kip73 import MoveTime

GB = 10**9
MB = 10**6


def move_time(quota: int, bytes_in: float | None, moved: int = 25, total: int = 100) -> MoveTime:
    return MoveTime(
        partitions_to_be_moved=moved,
        total_partition_count=total,
        total_log_size=40 * GB,
        brokers=4,
        replication_quota=ByteRate(quota),
        max_bytes_in=bytes_in,
    )


CASES = {
    # quota, max(BytesInPerSec): MoveTime, IN < T
    "no writes": (10 * MB, 0.0, 1000.0, True),
    "writes eat half of it": (10 * MB, 5.0 * MB, 2000.0, True),
    "writes eat all of it: never": (10 * MB, 10.0 * MB, None, False),
    "writes are more than it: never": (10 * MB, 11.0 * MB, None, False),
    "unknown writes: unknown, not 0": (10 * MB, None, None, None),
}


@pytest.mark.parametrize(("quota", "bytes_in", "seconds", "below"), CASES.values(), ids=CASES.keys())
def test_move_time(quota: int, bytes_in: float | None, seconds: float | None, below: bool | None) -> None:
    answer = move_time(quota, bytes_in)
    assert answer.move_ratio == 0.25
    assert answer.log_size_per_broker == 10 * GB
    assert answer.seconds == seconds
    assert answer.in_below_throttle is below


def test_an_empty_cluster_has_ratio_0_and_divides_by_nothing() -> None:
    answer = MoveTime(
        partitions_to_be_moved=0,
        total_partition_count=0,
        total_log_size=0,
        brokers=0,
        replication_quota=ByteRate(1),
        max_bytes_in=0.0,
    )
    assert (answer.move_ratio, answer.log_size_per_broker, answer.seconds) == (0.0, 0.0, 0.0)


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(0, 10**12))
def test_a_higher_quota_is_never_slower(quota: int, more: int, bytes_in: int) -> None:
    slow, fast = move_time(quota, float(bytes_in)).seconds, move_time(quota + more, float(bytes_in)).seconds
    assert slow is None or (fast is not None and fast <= slow)
