"""The bytes that each broker copies in a move: measured cases, and unknown rates that stay unknown."""

from __future__ import annotations

import pytest

from kquota.measure import ByteRate
from kquota.pace.share import Side, pace
from kquota.reassign.moves import PartitionReplicas, carried, moves
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MB = 1_000_000


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def held(*replicas: int, isr: tuple[int, ...] | None = None, leader: int | None = None) -> PartitionReplicas:
    in_sync = b(*(replicas if isr is None else isr))
    return PartitionReplicas(replicas=b(*replicas), leader=BrokerId(leader or replicas[0]), isr=in_sync)


CASES = {
    # partition now, target, bytes, written, throttle: whether it can end, and the throttle that it needs
    "the in-sync follower eats the throttle, as measured: 5 MB/s": (held(1, 2), b(1, 3), 91 * MB, 3 * MB, 5, False, 6),
    "... and 8 MB/s": (held(1, 2), b(1, 3), 91 * MB, 3 * MB, 8, True, 6),
    "a follower out of sync eats nothing yet": (held(1, 2, isr=(1,)), b(1, 3), 91 * MB, 3 * MB, 5, True, 3),
    "two copies at once": (held(1), b(2, 3), MB, 2 * MB, 4, False, 4),
    "no writes": (held(1, 2), b(3, 4), MB, 0, 1, True, 0),
    "the leader is not the first": (held(1, 2, leader=2), b(1, 3), MB, 3 * MB, 5, False, 6),
}


@pytest.mark.parametrize(("now", "target", "size", "written", "rate", "ends", "least"), CASES.values(), ids=CASES)
def test_a_move_ends_if_the_throttle_exceeds_the_writes(
    now: PartitionReplicas, target: tuple[BrokerId, ...], size: int, written: int, rate: int, ends: bool, least: int
) -> None:
    moving = moves(Plan(targets={T0: target}), {T0: now})
    found = pace(carried(moving, {T0: now}, {T0: size}, {T0: float(written)}), ByteRate(rate * MB))
    assert (found.feasible, found.least_throttle) == (ends, least * MB)


def test_each_broker_carries_the_sum_of_its_copies() -> None:
    partitions = {T0: held(1, 2), T1: held(1, 2)}
    moving = moves(Plan(targets={T0: b(1, 3), T1: b(2, 3)}), partitions)
    found = pace(carried(moving, partitions, {T0: 10, T1: 20}, {T0: 1.0, T1: 2.0}), ByteRate(100))
    assert [(s.broker, s.side, s.copies, s.bytes, s.keep_up, s.writes) for s in found.shares] == [
        (1, Side.LEADER, 2, 30, 3.0, 3.0),
        (3, Side.DESTINATION, 2, 30, 0.0, 3.0),
    ]


def test_an_unknown_rate_is_never_taken_for_0() -> None:
    partitions = {T0: held(1, 2), T1: held(2)}
    moving = moves(Plan(targets={T0: b(1, 3), T1: b(3)}), partitions)
    found = pace(carried(moving, partitions, {T0: 10, T1: 20}, {T0: 1.0}), ByteRate(100))
    assert found.feasible is None
    one, three = found.shares[0], found.shares[2]
    assert (one.broker, one.writes) == (1, 1.0)
    assert (three.broker, three.side, three.writes) == (3, Side.DESTINATION, None)


def test_a_move_without_copies_needs_no_throttle() -> None:
    partitions = {T0: held(1, 2, 3), T1: PartitionReplicas(replicas=b(1, 2))}
    moving = moves(Plan(targets={T0: b(1, 2), T1: b(3)}), partitions)
    assert carried(moving, partitions, {T0: 10}, {}).links == ()
