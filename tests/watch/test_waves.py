"""The time left of moves in waves, to several destinations, from several leaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquota.measure import ByteRate
from kquota.reassign.execution import carry_out
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare
from kquota.reassign.wave import MoveLimits
from kquota.terms import BrokerId
from kquota.watch.observation import MoveWatch
from kquota.watch.view import WatchedMoveView
from tests.watch.fake import CopyingCluster
from tests.watch.stage import MB, Watched, brokers, name

RATE = ByteRate(5 * MB)
INTERVAL = 5.0
SLACK = 4.0
"""Seconds. A run checks every 2 s whether a wave has ended, and the watch sees the end up to 2 s late."""
BATCH_1, BATCH_2, BATCH_3 = (MoveLimits(partitions=count) for count in (1, 2, 3))


class PartitionMove(NamedTuple):
    """A partition, and the brokers that get a new replica."""

    leader: int
    to: tuple[int, ...]
    size: int = 100 * MB
    writes: int = 0


@pytest.fixture
def stage(tmp_path: Path) -> Watched:
    return Watched(tmp_path, cluster=CopyingCluster(alive=set(brokers(*range(1, 8))), fair=True))


def run(
    stage: Watched, moves: list[PartitionMove], limits: MoveLimits, rate: ByteRate | None = RATE
) -> Iterator[tuple[float, WatchedMoveView]]:
    """Return the readings of `move run` until the move has ended, with their times."""
    for number, (leader, _, size, writes) in enumerate(moves):
        stage.cluster.partition(name(number), (leader,), size, writes)
    plan = Plan(targets={name(number): brokers(move.leader, *move.to) for number, move in enumerate(moves)})
    sizes = {name(number): move.size for number, move in enumerate(moves)}
    asked = MoveRequest(throttle=rate, limits=limits, sizes=sizes, force=True)
    found: list[tuple[float, WatchedMoveView]] = []
    watches: list[MoveWatch] = []

    def look() -> bool:
        watches[:] = watches or [stage.watch(plan)]
        observed = watches[0].look()
        found.append((stage.clock.slept, observed.view.moves[0]))
        return observed.ended

    def wait(seconds: float) -> None:
        stage.clock.sleep(seconds)
        if not found or stage.clock.slept - found[-1][0] >= INTERVAL:
            look()

    carry_out(prepare(stage.ports, plan, asked), wait=wait)
    while not look():
        stage.clock.sleep(2.0)
    return iter(found)


def wrong(
    found: Iterator[tuple[float, WatchedMoveView]], slack: float = SLACK
) -> list[tuple[float, float | None, float]]:
    """The readings from a quarter on whose time left is unknown, or more than 20% from the truth: the time, the time
    left, and the truth.
    """
    readings = [(at, move.seconds_left) for at, move in found]
    end = readings[-1][0]
    return [
        (at, left, end - at)
        for at, left in readings
        if at >= end / 4 and (left is None or abs(left - (end - at)) > max(0.2 * (end - at), slack))
    ]


def to(*destinations: int, leader: int = 1) -> list[PartitionMove]:
    return [PartitionMove(leader, (destination,)) for destination in destinations]


WAVES: dict[str, tuple[list[PartitionMove], MoveLimits]] = {
    "one destination": (to(3, 3, 3, 3, 3, 3), BATCH_1),
    "one destination after the other": (to(3, 3, 3, 3, 3, 4, 4, 4, 4, 4), BATCH_1),
    "one destination after the other, in pairs": (to(3, 3, 3, 3, 3, 4, 4, 4, 4, 4), BATCH_2),
    "alternating destinations": (to(3, 4, 3, 4, 3, 4, 3, 4, 3, 4), BATCH_1),
    "each partition to another destination": (to(3, 4, 5, 6, 7), BATCH_1),
    "one copy for each destination": (to(3, 3, 3, 3, 4, 4), MoveLimits(per_broker=1)),
    "one copy for each destination, from two leaders": (
        [*to(3, 3, 3, 3), *to(4, 4, leader=2)],
        MoveLimits(per_broker=1),
    ),
    "later waves have more destinations": ([*to(3, 3, 3, 3), *to(4, 5, 4, 5), *to(6, 7, 6, 7, leader=2)], BATCH_2),
    "later waves have fewer destinations": ([*to(3, 4), *to(5, 6, leader=2), *to(7, 7, 7, 7)], BATCH_3),
    "two replicas of each partition": ([PartitionMove(1, (3, 4)), PartitionMove(2, (5, 6))] * 3, BATCH_2),
    "sizes differ": (
        [PartitionMove(1, (3 + n % 2,), size * MB) for n, size in enumerate((20, 180, 40, 120, 60, 20, 160))],
        BATCH_2,
    ),
    "bytes in flight": (to(3, 4, 5, 3, 4, 5), MoveLimits(in_flight=250 * MB)),
    "producers write": ([PartitionMove(1, (3 + n % 2,), 100 * MB, 200_000) for n in range(8)], BATCH_1),
    "without waves, one leader, two destinations": ([*to(3, 3, 3, 3, 3, 3, 3, 3), *to(4, 4)], MoveLimits()),
    "without waves, two leaders, two destinations": ([*to(3, 3, 3, 4), *to(4, 4, leader=2)], MoveLimits()),
}


@pytest.mark.parametrize(("moves", "limits"), WAVES.values(), ids=WAVES)
def test_from_a_quarter_on_time_left_is_known_and_within_a_fifth_of_the_truth(
    stage: Watched, moves: list[PartitionMove], limits: MoveLimits
) -> None:
    assert wrong(run(stage, moves, limits)) == []


SOME_MOVES = st.builds(
    PartitionMove,
    leader=st.sampled_from([1, 2]),
    to=st.lists(st.integers(3, 6), min_size=1, max_size=2, unique=True).map(tuple),
    size=st.integers(60, 200).map(lambda count: count * MB),
    writes=st.just(0),
)
SOME_LIMITS = st.sampled_from(
    [BATCH_1, BATCH_2, BATCH_3, MoveLimits(per_broker=1), MoveLimits(per_broker=2), MoveLimits(in_flight=250 * MB)]
)


@given(moves=st.lists(SOME_MOVES, min_size=6, max_size=10), limits=st.one_of(SOME_LIMITS, st.just(MoveLimits())))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_limits_leaders_and_destinations_of_a_run_do_not_make_time_left_wrong(
    tmp_path_factory: pytest.TempPathFactory, moves: list[PartitionMove], limits: MoveLimits
) -> None:
    stage = Watched(tmp_path_factory.mktemp("law"), cluster=CopyingCluster(alive=set(brokers(*range(1, 8))), fair=True))
    assert wrong(run(stage, moves, limits), slack=2 * SLACK) == []


@pytest.mark.parametrize("fair", [True, False])
def test_a_leader_that_serves_one_destination_after_the_other(stage: Watched, fair: bool) -> None:
    """A destination whose leader is busy with other copies receives nothing yet, but its time is known."""
    stage.cluster.fair = fair
    moves = [*to(3, 3, 3, 3, 3, 3, 3, 3), *to(4, 4)]
    assert wrong(run(stage, moves, MoveLimits())) == []


def test_without_a_throttle_a_later_destination_is_as_fast_as_the_first(stage: Watched) -> None:
    stage.cluster.pipe = 5 * MB
    assert wrong(run(stage, to(3, 3, 3, 3, 4, 4, 4, 4), BATCH_1, rate=None)) == []


def test_a_slow_destination_is_measured(stage: Watched) -> None:
    """Its disk is slower than the throttle."""
    stage.cluster.slow = {BrokerId(4): MB}
    found = list(run(stage, [*to(3), *to(4, 4, 4, leader=2)], MoveLimits()))
    end = found[-1][0]
    assert wrong(iter([one for one in found if one[0] >= end / 2 or one is found[-1]])) == []


def test_a_destination_that_receives_nothing_makes_the_time_unknown(stage: Watched) -> None:
    stage.topic(1)
    stage.cluster.partition(name(1), (2,), 500 * MB)
    stage.cluster.stuck.add((name(1), BrokerId(4)))
    stage.move({name(0): brokers(1, 2, 3), name(1): brokers(2, 4)}, throttle=MB)
    [move] = stage.look(stage.watch(), 60).view.moves
    assert {lane.broker: lane.seconds_left is None for lane in move.destinations} == {3: False, 4: True}
    assert move.seconds_left is None


@pytest.mark.parametrize("rate", [0, 1], ids=["a rate of 0", "paused"])
def test_a_run_that_copies_nothing_has_no_time_left(stage: Watched, rate: int) -> None:
    stage.topic(1)
    stage.drain(1, throttle=rate)
    [move] = stage.look(stage.watch(), 6).view.moves
    assert move.seconds_left is None


def in_second_wave(stage: Watched, view: Callable[[WatchedMoveView], bool]) -> WatchedMoveView:
    """A reading of a move whose first wave copies to broker 3, while the partitions to broker 4 wait."""
    return next(move for _, move in run(stage, to(3, 3, 4, 4), BATCH_1) if view(move))


def test_a_copy_that_waits_is_not_the_slowest(stage: Watched) -> None:
    move = in_second_wave(stage, lambda move: move.done == 1 and move.moving == 1)
    slowest = {lane.broker: lane.slowest and lane.slowest.partition for lane in move.destinations}
    assert slowest == {3: name(1), 4: None}


def test_the_least_time_leaves_out_destinations_of_later_waves(stage: Watched) -> None:
    move = in_second_wave(stage, lambda move: move.done == 1 and move.moving == 1)
    [running] = [lane for lane in move.destinations if lane.running]
    assert running.left is not None
    assert move.least_seconds == pytest.approx(running.left / RATE)


def test_the_time_left_of_each_destination_includes_the_wait(stage: Watched) -> None:
    move = in_second_wave(stage, lambda move: move.done == 1 and move.moving == 1)
    first, second = (lane.seconds_left for lane in move.destinations)
    assert first is not None and second is not None
    assert second == pytest.approx(first + 40, abs=SLACK)
    assert move.seconds_left == second


def test_a_long_move_is_simulated_only_in_part(stage: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquota.watch.forecast._MOST_WORK", 3)
    assert wrong(run(stage, to(*[3, 4] * 8), BATCH_1)) == []
