"""KIP-73's condition on replica.fetch.response.max.bytes, with its own two examples."""

from __future__ import annotations

import pytest

from kquota.pace.kip73 import Fetch

MB = 1_000_000

LARGEST = {
    "KIP-73: 5 nodes, a quota of 1 MB/s, GbE": (5, 1 * MB, 100 * MB, 10 * MB),
    "KIP-73: 500 nodes, where the network is the narrow place": (500, 1 * MB, 100 * MB, 2 * MB),
    "unknown network rate": (500, 1 * MB, None, 10 * MB),
}


@pytest.mark.parametrize(("brokers", "throttle", "network", "largest"), LARGEST.values(), ids=LARGEST.keys())
def test_the_largest_fetch(brokers: int, throttle: int, network: int | None, largest: int) -> None:
    """With the window of 10 s that KIP-73 uses."""

    def fetch(response: int) -> Fetch:
        return Fetch(
            brokers=brokers, throttle=throttle, network=network, response_max_bytes=response, window_seconds=10
        )

    assert fetch(largest).largest == pytest.approx(largest)
    assert fetch(largest - 1).holds
    assert not fetch(largest + 1).holds


def test_as_shipped_a_leaders_quota_of_1_mb_per_second_is_enough() -> None:
    assert Fetch(brokers=3, throttle=1 * MB).holds
    assert not Fetch(brokers=3, throttle=MB // 2).holds
