"""The free space of each volume at the worst moment of a move."""

from __future__ import annotations

import pytest

from kquota.pace.disk_space import Arrival, Volume, VolumeSpace, rooms


def volume(broker: int, log_dir: str, usable: int | None, total: int | None = 1000) -> Volume:
    return Volume(broker=broker, log_dir=log_dir, total=total, usable=usable)


def arrival(broker: int, size: int, log_dir: str | None = None, writes: float | None = 0.0) -> Arrival:
    return Arrival(broker=broker, log_dir=log_dir, copies=1, bytes=size, writes=writes, grows=1.0)


CASES: dict[str, tuple[list[Volume], list[Arrival], float | None, list[tuple[int | None, float | None]]]] = {
    # Volumes, arrivals, the duration of the move: for each room the free space without writes and at worst.
    "one volume": ([volume(3, "/a", 500)], [arrival(3, 400, writes=2.0)], 10, [(100, 70)]),
    "too little": ([volume(3, "/a", 300)], [arrival(3, 400)], 10, [(-100, -110)]),
    "enough until producers come": ([volume(3, "/a", 405)], [arrival(3, 400)], 10, [(5, -5)]),
    "writes unknown": ([volume(3, "/a", 500)], [arrival(3, 400, writes=None)], 10, [(100, None)]),
    "time unknown": ([volume(3, "/a", 500)], [arrival(3, 400)], None, [(100, None)]),
    "no known volume": ([], [arrival(3, 400)], 10, [(None, None)]),
    "below Kafka 3.3": ([volume(3, "/a", None, None)], [arrival(3, 400)], 10, [(None, None)]),
    "one of two is silent": ([volume(3, "/a", 500), volume(3, "/b", None)], [arrival(3, 400)], 10, [(None, None)]),
    "two volumes, the broker chooses": (
        [volume(3, "/a", 500), volume(3, "/b", 200)],
        [arrival(3, 600)],
        0,
        [(100, 100)],
    ),
    "two log dirs on one volume": ([volume(3, "/a", 500), volume(3, "/b", 500)], [arrival(3, 600)], 0, [(-100, -100)]),
    "the plan names the log dir": (
        [volume(3, "/a", 500), volume(3, "/b", 200)],
        [arrival(3, 100, "/b"), arrival(3, 450, "/a")],
        0,
        [(50, 50), (100, 100)],
    ),
    "two log dirs on one volume, each named": (
        [volume(3, "/a", 500), volume(3, "/b", 500)],
        [arrival(3, 400, "/a"), arrival(3, 200, "/b")],
        10,
        [(-100, -110), (-100, -110)],
    ),
    "one log dir is named, of the rest the broker chooses": (
        [volume(3, "/a", 500), volume(3, "/b", 200)],
        [arrival(3, 450, "/a", writes=1.0), arrival(3, 300, writes=1.0)],
        10,
        [(-50, -80), (50, 30)],
    ),
    "another broker's volume": ([volume(2, "/a", 500)], [arrival(3, 400)], 10, [(None, None)]),
}


@pytest.mark.parametrize(("volumes", "arrivals", "seconds", "left"), CASES.values(), ids=CASES)
def test_the_free_space(
    volumes: list[Volume],
    arrivals: list[Arrival],
    seconds: float | None,
    left: list[tuple[int | None, float | None]],
) -> None:
    found = rooms(volumes, arrivals, seconds)
    assert [(room.left, room.worst) for room in found] == left
    assert [room.least for room in found] == [empty if worst is None else worst for empty, worst in left]


APART: dict[str, tuple[list[Volume], list[Arrival], list[int | None]]] = {
    "other figures": ([volume(3, "/a", 500), volume(3, "/b", 200)], [arrival(3, 600)], [100]),
    "the empty disks of a new broker": ([volume(3, "/a", 500), volume(3, "/b", 500)], [arrival(3, 600)], [400]),
    "each named": (
        [volume(3, "/a", 500), volume(3, "/b", 500)],
        [arrival(3, 400, "/a"), arrival(3, 200, "/b")],
        [100, 300],
    ),
    "too much for both": ([volume(3, "/a", 500), volume(3, "/b", 500)], [arrival(3, 1100)], [-100]),
    "unknown": ([], [arrival(3, 600)], [None]),
}


@pytest.mark.parametrize(("volumes", "arrivals", "left"), APART.values(), ids=APART)
def test_the_free_space_if_log_dirs_with_equal_figures_are_separate_volumes(
    volumes: list[Volume], arrivals: list[Arrival], left: list[int | None]
) -> None:
    assert [room.apart for room in rooms(volumes, arrivals, None)] == left


def test_rooms_are_ordered_by_broker_and_log_dir() -> None:
    found = rooms([], [arrival(3, 1), arrival(1, 1, "/b"), arrival(1, 1, "/a")], None)
    assert [(room.broker, room.log_dir) for room in found] == [(1, "/a"), (1, "/b"), (3, None)]
    assert all(isinstance(room, VolumeSpace) for room in found)
