"""Moves between log dirs on the fake: started once, seen, waited for, given up, cancelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kquota.errors import Refused, Unreachable
from kquota.measure import ByteRate
from kquota.reassign import log_dir_actions
from kquota.reassign.log_dir_actions import Started
from kquota.reassign.log_dirs import ReplicaLogDirs
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.preparation import MoveRequest, prepare
from kquota.settings.resource import Setting
from kquota.terms import LOG_DIR_RATE, BrokerId, TopicPartition
from tests.reassign.dirs_contract import ReplicaDirsContract, Stage
from tests.reassign.dirs_fake import MemoryDirs
from tests.reassign.fake import Ticks
from tests.reassign.stage import T0, T1, U0, World

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
A, B = "/data/a", "/data/b"


@pytest.fixture
def dirs() -> MemoryDirs:
    return MemoryDirs(log_dirs={broker: {A: None, B: None} for broker in (ONE, TWO, THREE)})


class TestMemory(ReplicaDirsContract):
    @pytest.fixture
    def stage(self) -> Stage:
        return MemoryDirs(log_dirs={b: {f"/{b}/a": None, f"/{b}/b": None} for b in (ONE, TWO, THREE)})


@pytest.fixture
def name(dirs: MemoryDirs) -> TopicPartition:
    """A partition on brokers 1 and 2, in their first log dirs."""
    return TopicPartition(dirs.topic({0: (ONE, TWO)}), 0)


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


def test_the_rate_is_set_on_the_brokers_that_copy_between_their_log_dirs(tmp_path: Path, dirs: MemoryDirs) -> None:
    """The replica of broker 3 is already in the log dir of the plan."""
    world = World(tmp_path)
    world.cluster.partitions[U0] = PartitionReplicas(replicas=(ONE, THREE), leader=ONE, isr=(ONE, THREE))
    dirs.places = dict.fromkeys([(T0, ONE), (T0, TWO), (T1, TWO)], ReplicaLogDirs(current=A)) | {
        (U0, THREE): ReplicaLogDirs(current=B)
    }
    plan = Plan(
        targets={T0: (ONE, TWO), T1: (ONE, TWO), U0: (ONE, THREE)},
        log_dirs={(T1, TWO): B, (T0, ONE): B, (T0, TWO): B, (U0, THREE): B},
    )
    asked = MoveRequest(log_dir_throttle=ByteRate(1_000))
    prepared = prepare(replace(world.ports, dirs=dirs), plan, asked)
    rates = {name: values for name, values in prepared.wanted.items() if name.key == LOG_DIR_RATE}
    assert list(rates.items()) == [(Setting.of_broker(broker, LOG_DIR_RATE), ("1000",)) for broker in (ONE, TWO)]


def test_only_missing_copies_are_requested_and_only_once(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    dirs.slow(ONE)
    wanted = {(name, ONE): B, (name, TWO): A}
    assert log_dir_actions.start(dirs, clock, wanted) == Started(begun={(name, ONE): B})
    assert (dirs.writes, clock.slept) == (1, 0)
    assert log_dir_actions.start(dirs, clock, wanted) == Started()
    dirs.fast(ONE)
    assert log_dir_actions.start(dirs, clock, wanted) == Started()
    assert dirs.writes == 1


def test_kquota_waits_for_a_replica_that_does_not_exist_yet(
    dirs: MemoryDirs, clock: Ticks, name: TopicPartition
) -> None:
    replica = (name, THREE)
    dirs.late[replica] = 5
    assert log_dir_actions.start(dirs, clock, {replica: B}) == Started(begun={replica: B})
    assert dirs.places[replica] == ReplicaLogDirs(current=B)
    assert 0 < clock.slept < 1


def test_the_wait_for_a_replica_ends(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    wanted = {(name, THREE): B, (name, ONE): B}
    done = log_dir_actions.start(dirs, clock, wanted, timeout=3)
    assert done == Started(begun={(name, ONE): B}, waiting={(name, THREE): "has not begun"})
    assert 3 <= clock.slept < 3.2


def test_a_dead_broker_does_not_delay_the_others(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    dirs.dead.add(TWO)
    done = log_dir_actions.start(dirs, clock, {(name, ONE): B, (name, TWO): B})
    assert done == Started(begun={(name, ONE): B}, waiting={(name, TWO): "it is dead"})
    assert clock.slept < 1


def test_a_refusal_is_reported_and_the_others_start(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    done = log_dir_actions.start(dirs, clock, {(name, ONE): "/no/such", (name, TWO): B})
    assert done.begun == {(name, TWO): B}
    assert "LogDirNotFound (57)" in str(done.refused[name, ONE])
    assert (done.waiting, clock.slept) == ({}, 0)


def test_a_lost_answer_is_settled_by_reading_the_log_dirs(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    dirs.lost.add(ONE)
    dirs.slow(ONE)
    assert log_dir_actions.start(dirs, clock, {(name, ONE): B}) == Started(begun={(name, ONE): B})
    assert dirs.writes == 1


def test_an_announced_replica_is_created_in_its_log_dir(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    wanted = {(name, ONE): B, (name, THREE): B}
    reading = log_dir_actions.check(dirs, wanted)
    log_dir_actions.announce(dirs, wanted, reading)
    assert dirs.places[name, ONE] == ReplicaLogDirs(current=A)
    dirs.reassign(name, (ONE, THREE))
    assert dirs.places[name, THREE] == ReplicaLogDirs(current=B)
    assert log_dir_actions.start(dirs, clock, wanted, before=reading) == Started(begun=wanted)
    assert dirs.writes == 2


def test_a_copy_is_cancelled_and_a_second_cancel_finds_none(
    dirs: MemoryDirs, clock: Ticks, name: TopicPartition
) -> None:
    dirs.slow(ONE)
    wanted = {(name, ONE): B, (name, TWO): A}
    log_dir_actions.start(dirs, clock, wanted)
    assert log_dir_actions.cancel(dirs, clock, wanted) == Started(begun={(name, ONE): A})
    assert dirs.places[name, ONE] == ReplicaLogDirs(current=A)
    assert log_dir_actions.cancel(dirs, clock, wanted) == Started()
    assert dirs.writes == 2


def test_a_copy_that_ends_before_its_cancel_stays(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    class CopyingMeanwhile(Ticks):
        def sleep(self, seconds: float) -> None:
            dirs.fast(ONE)

    replica = (name, ONE)
    dirs.slow(ONE)
    log_dir_actions.start(dirs, clock, {replica: B})
    dirs.deaf.add(ONE)
    assert log_dir_actions.cancel(dirs, CopyingMeanwhile(), {replica: B}) == Started()
    assert dirs.places[replica] == ReplicaLogDirs(current=B)


def test_the_cancel_of_a_copy_on_a_dead_broker_is_unknown(dirs: MemoryDirs, clock: Ticks, name: TopicPartition) -> None:
    dirs.dead.add(ONE)
    assert log_dir_actions.cancel(dirs, clock, {(name, ONE): B}) == Started(waiting={(name, ONE): "it is dead"})


def test_log_dirs_are_checked_before_the_first_write(dirs: MemoryDirs, name: TopicPartition) -> None:
    with pytest.raises(Refused, match=r"broker 1 has no log dir /no/such \(it has: /data/a, /data/b\)"):
        log_dir_actions.check(dirs, {(name, ONE): "/no/such"})
    dirs.dead.add(TWO)
    with pytest.raises(Unreachable, match=r"the log dirs of broker 2 are unknown \(it is dead\). Start the broker"):
        log_dir_actions.check(dirs, {(name, TWO): B})
    reading = log_dir_actions.check(dirs, {(name, ONE): B}, [(name, TWO)])
    assert [reading.place((name, broker)).current for broker in (ONE, TWO)] == [A, None]
    assert dirs.writes == 0
