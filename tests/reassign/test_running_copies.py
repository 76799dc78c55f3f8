"""The bytes that copies of running moves still need, from the log dirs of all brokers."""

from __future__ import annotations

import pytest

from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.running_copies import RunningCopy, before_the_move, running_copies, under_way
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import BrokerId, TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def b(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def log_dir(broker: int, *replicas: Replica, error: str | None = None, path: str = "/d") -> LogDir:
    return LogDir(
        broker=BrokerId(broker),
        rack=None,
        path=path,
        error=error,
        volume_total=None,
        volume_usable=None,
        replicas=replicas,
    )


def log(
    size: int, end: int | None = None, *, leader: bool = False, start: int | None = None, future: bool = False
) -> Replica:
    return Replica(
        partition=T0,
        size=size,
        offset_lag=0,
        future=future,
        end_offset=end,
        local_start_offset=start,
        leader=leader,
    )


RUNNING = {T0: PartitionReplicas(replicas=b(1, 2, 3), adding=b(3), removing=b(2))}
LEADER = log_dir(1, log(90, 900, leader=True, start=0))
CASES: dict[str, tuple[list[LogDir], RunningCopy]] = {
    "a part is copied": ([LEADER, log_dir(3, log(30, 300))], RunningCopy(copied=30, left=60)),
    "nothing is copied yet": ([LEADER, log_dir(3)], RunningCopy(copied=0, left=90)),
    "everything is copied, and retention was slower": (
        [LEADER, log_dir(3, log(95, 900))],
        RunningCopy(copied=95, left=0),
    ),
    "the same end, but smaller, because it was compacted": (
        [LEADER, log_dir(3, log(40, 900))],
        RunningCopy(copied=40, left=0),
    ),
    "behind, but larger, because the leader was compacted": (
        [LEADER, log_dir(3, log(100, 800))],
        RunningCopy(copied=100, left=10),
    ),
    "offsets are unknown": (
        [log_dir(1, log(90, leader=True)), log_dir(3, log(30))],
        RunningCopy(copied=30, left=60),
    ),
    "offsets are unknown, and the sizes are equal": (
        [log_dir(1, log(90, leader=True)), log_dir(3, log(90))],
        RunningCopy(copied=90, left=None),
    ),
    "offsets are unknown, and the leader is empty": (
        [log_dir(1, log(0, leader=True)), log_dir(3, log(0))],
        RunningCopy(copied=0, left=0),
    ),
    "only some offsets of the leader are left": (
        [log_dir(1, log(90, 900, leader=True, start=850)), log_dir(3, log(95, 700))],
        RunningCopy(copied=95, left=90),
    ),
    "offsets are unknown, and the copy is larger": (
        [log_dir(1, log(90, leader=True)), log_dir(3, log(91))],
        RunningCopy(copied=91, left=None),
    ),
    "the start of the log is unknown": (
        [log_dir(1, log(90, 900, leader=True)), log_dir(3, log(90, 800))],
        RunningCopy(copied=90, left=None),
    ),
    "the partition has no leader": ([log_dir(1, log(90)), log_dir(3, log(30))], RunningCopy(copied=30, left=None)),
    "its broker does not answer": ([LEADER], RunningCopy(copied=None, left=None)),
    "its broker cannot read a log dir": (
        [LEADER, log_dir(3), log_dir(3, error="KAFKA_STORAGE_ERROR", path="/e")],
        RunningCopy(copied=None, left=None),
    ),
    "it moves between log dirs at the same time": (
        [LEADER, log_dir(3, log(30, 300)), log_dir(3, log(10, future=True), path="/e")],
        RunningCopy(copied=30, left=60),
    ),
}


@pytest.mark.parametrize(("found", "expected"), CASES.values(), ids=CASES)
def test_a_copy_misses_the_bytes_that_only_its_leader_has(found: list[LogDir], expected: RunningCopy) -> None:
    assert running_copies(RUNNING, found) == {(T0, BrokerId(3)): expected}


def test_a_new_replica_that_was_elected_leader_misses_nothing() -> None:
    found = [log_dir(1, log(90, 800)), log_dir(3, log(90, 900, leader=True, start=0))]
    assert running_copies(RUNNING, found) == {}


def test_only_running_copies_are_left_out_of_the_sizes() -> None:
    found = [LEADER, log_dir(2, log(90, 900)), log_dir(3, log(30, 300))]
    left = before_the_move(found, running_copies(RUNNING, found))
    assert [(one.broker, len(one.replicas)) for one in left] == [(1, 1), (2, 1), (3, 0)]


def test_a_plan_is_compared_with_what_is_running() -> None:
    """T0 moves as planned, T1 elsewhere, and T2 is not in the plan."""
    running = dict.fromkeys((T0, T1, T2), RUNNING[T0])
    copies = {(name, BrokerId(3)): RunningCopy(copied=30, left=60) for name in (T0, T1, T2)}
    found = under_way(running, copies, {T0: b(3, 1), T1: b(1, 4)})
    assert (found.partitions, found.elsewhere, found.others) == ((T0,), (T1,), 1)
    assert (found.copied, found.left, found.unknown_copies) == (30, 60, 0)


def test_an_unknown_copy_makes_the_sum_unknown_not_smaller() -> None:
    copies = {
        (T0, BrokerId(3)): RunningCopy(copied=30, left=60),
        (T0, BrokerId(4)): RunningCopy(copied=5, left=None),
    }
    found = under_way(RUNNING, copies, {T0: b(1, 3)})
    assert (found.copied, found.left, found.unknown_copies) == (35, None, 1)
