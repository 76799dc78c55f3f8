"""Where a move is divided into waves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.pace.waves import Split

CASES = {
    "nothing moves": (Split(in_flight=10), [], []),
    "a limit is filled to the byte": (Split(in_flight=10), [4, 6, 1], [0, 2]),
    "one partition alone may be above it": (Split(in_flight=10), [4, 30, 4], [0, 1, 2]),
    "two halves": (Split(waves=2), [5, 5, 5, 5], [0, 2]),
    "more waves than partitions": (Split(waves=9), [5, 5], [0, 1]),
    "nothing to copy: by number": (Split(waves=2), [0, 0, 0, 0], [0, 2]),
}


@pytest.mark.parametrize(("split", "copied", "starts"), CASES.values(), ids=CASES.keys())
def test_where_waves_begin(split: Split, copied: list[int], starts: list[int]) -> None:
    assert split.starts(copied) == starts


copied = st.lists(st.integers(0, 100), max_size=30)


@given(copied=copied, limit=st.integers(1, 200))
def test_no_wave_exceeds_the_limit_and_no_two_neighbors_could_be_merged(copied: list[int], limit: int) -> None:
    waves = cut(copied, Split(in_flight=limit))
    assert [size for wave in waves for size in wave] == copied
    assert all(sum(wave) <= limit or len(wave) == 1 for wave in waves)
    assert all(sum(a) + b[0] > limit for a, b in pairwise(waves))


@given(copied=copied, n=st.integers(1, 8))
def test_even_waves_are_even_to_within_one_partition(copied: list[int], n: int) -> None:
    waves = cut(copied, Split(waves=n))
    assert [size for wave in waves for size in wave] == copied
    assert len(waves) <= n
    assert all(sum(wave) <= sum(copied) / n + max(copied, default=0) for wave in waves)


def cut(copied: list[int], split: Split) -> list[list[int]]:
    starts = split.starts(copied)
    return [copied[a:b] for a, b in zip(starts, [*starts[1:], len(copied)], strict=False)]
