"""The window of a rate: a sample counts until it is as old as all samples together."""

from __future__ import annotations

import pytest

from kquota.simulate.rate import Rate

SAMPLES, SAMPLE_MS = 3, 1000


@pytest.mark.parametrize(("now", "left"), [(2999, 100.0), (3000, 0.0)])
def test_a_sample_counts_to_the_end_of_the_window_and_not_longer(now: int, left: float) -> None:
    rate = Rate(samples=SAMPLES, sample_ms=SAMPLE_MS)
    rate.record(100.0, 0)
    measured, window_ms = rate.observed(now)
    assert measured * window_ms / 1000 == pytest.approx(left)


def test_the_window_of_a_steady_client_has_one_sample_more_than_the_quota() -> None:
    rate = Rate(samples=11)
    windows = []
    for now in range(0, 60_000, 10):
        rate.record(1.0, now)
        windows.append(rate.observed(now)[1])
    assert windows[0] == 10_000
    steady = windows[len(windows) // 2 :]
    assert 10_990 <= min(steady) <= max(steady) < 12_000
    assert max(steady) >= 11_980
