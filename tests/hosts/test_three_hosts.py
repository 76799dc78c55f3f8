"""Three hosts share a record, and random commands die, sleep and lose answers. No throttle of kquota is left.

`python -m tests.hosts` plays many rounds, and repeats one of them.
"""

from __future__ import annotations

import pytest

from tests.hosts.coverage import Met
from tests.hosts.remembered import Remembered
from tests.hosts.round import folder, on_machines, play

ROUNDS = 150
"""In this number of rounds each command meets each fault once."""


def test_no_throttle_of_kquota_stays_set() -> None:
    met = Met()
    with folder() as states, on_machines():
        for seed in range(ROUNDS):
            played = play(seed, states, met)
            assert played.violation is None, "\n".join([f"python -m tests.hosts --seed {seed} --runs 1", *played.trace])
    met.must_be_whole(ROUNDS)


def test_a_seed_repeats_a_round_exactly() -> None:
    with folder() as states, on_machines():
        first, second = (play(7, states, Met()) for _ in range(2))
    assert first == second


def test_a_value_that_a_process_changes_is_noticed_by_the_others() -> None:
    remembered: Remembered[list[int]] = Remembered()
    assert remembered.of("a sheet", lambda: [1]) is remembered.of("a sheet", lambda: [1])
    remembered.of("a sheet", lambda: [1]).append(2)
    with pytest.raises(AssertionError, match=r"a process changed \[1, 2\], which was decoded as \[1\]"):
        for _ in range(100):
            remembered.of("a sheet", lambda: [1])
