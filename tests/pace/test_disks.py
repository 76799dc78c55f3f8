"""The size of a broker's disks, as far as the broker reports it."""

from __future__ import annotations

import pytest

from kquota.pace.disk_space import Volume, disks


def volume(log_dir: str, total: int | None, usable: int | None = 0) -> Volume:
    return Volume(broker=1, log_dir=log_dir, total=total, usable=usable)


CASES = {
    "none": ([], {}),
    "two volumes": ([volume("/a", 10), volume("/b", 20)], {1: 30}),
    "two log dirs of one volume": ([volume("/a", 10, 4), volume("/b", 10, 4)], {1: 10}),
    "an unknown volume": ([volume("/a", 10), volume("/b", None, None)], {}),
}


@pytest.mark.parametrize(("volumes", "sizes"), CASES.values(), ids=CASES)
def test_the_disks_of_a_broker(volumes: list[Volume], sizes: dict[int, int]) -> None:
    assert disks(volumes) == sizes
