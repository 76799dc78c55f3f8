"""Why a move makes no progress: one case for each symptom, and the moves that have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquota.reassign.plan import Plan
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_REPLICAS, LEADER_REPLICAS, LOG_DIR_RATE, BrokerId
from kquota.watch.observation import MoveWatch
from kquota.watch.symptom import (
    CaughtReplica,
    DestinationDown,
    FullDisk,
    IdleLogDir,
    LastPartition,
    NoLeader,
    NotBegun,
    NothingArrives,
    NotStarted,
    RunOpen,
    StarvedCopies,
    Symptom,
    ThrottleLeft,
    ThrottleSide,
    Undo,
)
from tests.stores.record.hosts import RUN
from tests.watch.stage import MB, Watched, brokers, name

THREE = BrokerId(3)


@pytest.fixture
def stage(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@dataclass(frozen=True)
class Case:
    """`make` prepares the cluster and returns the plan, if any; `then` happens after the first 12 seconds."""

    make: Callable[[Watched], Plan | None]
    then: Callable[[Watched], object] = lambda _: None
    seconds: float = 30.0


def running(stage: Watched) -> None:
    stage.topic(1)
    stage.drain(1, MB)


def leaderless(stage: Watched) -> None:
    stage.cluster.lose(2)
    stage.cluster.lose(1)


def starved_leader(stage: Watched) -> None:
    """In-sync followers take 3 of 5 MB/s, so 2 are left for the copies, and producers write 3."""
    stage.topic(1, size=500 * MB, writes=3 * MB)
    stage.drain(1, throttle=5 * MB)


def from_two_leaders(stage: Watched) -> None:
    stage.cluster.partition(name(0), (1,), 500 * MB, 2 * MB)
    stage.cluster.partition(name(1), (2,), 500 * MB, 2 * MB)
    stage.move({name(0): brokers(3), name(1): brokers(3)}, 3 * MB)


def out_of_sync(stage: Watched) -> None:
    """Broker 2 restarts: its replica of partition 1, which stays on brokers 1 and 2, falls behind."""
    now = stage.cluster.partitions[name(1)]
    stage.cluster.partitions[name(1)] = replace(now, isr=brokers(1))


def with_a_healthy_replica(stage: Watched) -> None:
    stage.topic(2)
    stage.move({name(0): brokers(1, 3), name(1): brokers(1, 2, 3)}, MB)


def one_stuck(stage: Watched) -> None:
    stage.topic(3, size=10 * MB)
    stage.cluster.stuck.add((name(2), THREE))
    stage.cluster.sizes[name(2), THREE] = 0
    stage.drain(3, throttle=5 * MB)


def never_created(stage: Watched) -> None:
    running(stage)
    stage.cluster.stuck.add((name(0), THREE))


def over_zookeeper(stage: Watched) -> None:
    stage.on_zookeeper = True
    running(stage)


def idle_controller(stage: Watched) -> None:
    stage.on_zookeeper = True
    running(stage)
    stage.cluster.stuck.add((name(0), THREE))
    stage.cluster.idle.add(name(0))


def between_log_dirs(stage: Watched) -> Plan:
    stage.topic(1)
    stage.cluster.futures[name(0), BrokerId(1)] = 10 * MB
    return Plan(targets={name(0): brokers(1, 2)}, log_dirs={(name(0), BrokerId(1)): "/other"})


def throttled_log_dirs(stage: Watched) -> Plan:
    stage.cluster.configs[Setting.of_broker(BrokerId(1), LOG_DIR_RATE)] = "7"
    return between_log_dirs(stage)


def small(stage: Watched) -> Plan:
    stage.topic(1, size=MB)
    return stage.drain(1, throttle=MB)


def recorded(stage: Watched) -> Plan:
    plan = small(stage)
    stage.runs.begin(replace(RUN, plan=plan, handed_over=frozenset(plan.targets)))
    return plan


def unthrottled(stage: Watched) -> Plan:
    """Another throttle lists the partition of the run."""
    plan = small(stage)
    stage.runs.begin(replace(RUN, plan=plan, handed_over=frozenset(plan.targets), taken={}, rate=None))
    return plan


def swapped(stage: Watched, source: int = 3) -> Plan:
    """A run with one copy to broker 3, and with a partition that leaves broker `source`."""
    stage.cluster.partition(name(0), (1, 2), 100 * MB)
    stage.cluster.partition(name(1), (1, source), 100 * MB)
    plan = Plan(targets={name(0): brokers(1, 3), name(1): brokers(1, 2)})
    rollback = Plan(targets={name(0): brokers(1, 2), name(1): brokers(1, source)})
    stage.runs.begin(replace(RUN, plan=plan, rollback=rollback, handed_over=frozenset(plan.targets)))
    stage.move(plan.targets, MB)
    return plan


def half_swapped(stage: Watched, source: int = 3) -> Plan:
    """The same run, after the partition has left broker `source`."""
    plan = swapped(stage, source)
    stage.cluster.finish(name(1))
    return plan


def without_both(stage: Watched) -> None:
    stage.cluster.lose(3)
    stage.cluster.lose(4)


def half_swapped_from_four(stage: Watched) -> Plan:
    return half_swapped(stage, 4)


CASES: dict[str, tuple[Case, Symptom]] = {
    "starved by a leader's throttle": (
        Case(make=starved_leader, seconds=18),
        StarvedCopies(broker=BrokerId(1), side=ThrottleSide.LEADER, rate=5 * MB, used=5e6, followers=3e6, written=3e6),
    ),
    "starved by a destination's throttle": (
        Case(make=from_two_leaders, seconds=18),
        StarvedCopies(broker=THREE, side=ThrottleSide.FOLLOWER, rate=3 * MB, used=3e6, followers=0.0, written=4e6),
    ),
    "dead destination": (
        Case(make=running, then=lambda s: s.cluster.lose(3), seconds=1),
        DestinationDown(broker=THREE, copies=1, why=None),
    ),
    "dead destination, also a source whose move still runs": (
        Case(make=swapped, then=lambda s: s.cluster.lose(3), seconds=1),
        DestinationDown(broker=THREE, copies=1, why=None, undo=Undo.WHOLE),
    ),
    "dead destination, also a source whose move has ended": (
        Case(make=half_swapped, then=lambda s: s.cluster.lose(3), seconds=1),
        DestinationDown(broker=THREE, copies=1, why=None, undo=Undo.RUNNING),
    ),
    "dead destination, and the dead source of a move that has ended": (
        Case(make=half_swapped_from_four, then=without_both, seconds=1),
        DestinationDown(broker=THREE, copies=1, why=None, undo=Undo.RUNNING),
    ),
    "dead destination over ZooKeeper": (
        Case(make=over_zookeeper, then=lambda s: s.cluster.lose(3), seconds=1),
        DestinationDown(broker=THREE, copies=1, why=None, undo=Undo.NONE),
    ),
    "silent destination": (
        Case(make=running, then=lambda s: s.cluster.unanswered.update({THREE: "no answer"}), seconds=1),
        DestinationDown(broker=THREE, copies=1, why="no answer"),
    ),
    "no leader": (
        Case(make=running, then=leaderless, seconds=1),
        NoLeader(partitions=(name(0),), replicas=brokers(1, 2)),
    ),
    "no log on the destination": (
        Case(make=never_created, seconds=2),
        NotStarted(broker=THREE, copies=1, first=name(0), seconds=14.0),
    ),
    "a controller that does not begin the move": (
        Case(make=idle_controller, seconds=2),
        NotBegun(partitions=1, first=name(0), seconds=14.0),
    ),
    "full disk": (
        Case(make=running, then=lambda s: s.cluster.usable.update({THREE: 5 * MB}), seconds=1),
        FullDisk(broker=THREE, log_dir="/data", usable=5 * MB, left=100 * MB - 13 * MB, error=None),
    ),
    "failed disk": (
        Case(make=running, then=lambda s: s.cluster.errors.update({THREE: "KafkaStorage (56)"}), seconds=1),
        FullDisk(broker=THREE, log_dir="/data", usable=None, left=100 * MB - 13 * MB, error="KafkaStorage (56)"),
    ),
    "one slow last partition": (
        Case(make=one_stuck, seconds=64),
        LastPartition(run=None, partition=name(2), destination=THREE, left=10 * MB, seconds=72.0, seconds_left=None),
    ),
    "finished, throttle still set": (Case(make=small, seconds=1), ThrottleLeft(run=None)),
    "finished, run and throttle still there": (Case(make=recorded, seconds=1), ThrottleLeft(run=RUN.id)),
    "finished, run without a throttle still open": (Case(make=unthrottled, seconds=1), RunOpen(run=RUN.id)),
    "a log dir without progress": (
        Case(make=between_log_dirs, seconds=24),
        IdleLogDir(partition=name(0), broker=BrokerId(1), log_dir="/other", seconds=36.0, rate=None),
    ),
    "a log dir under a throttle": (
        Case(make=throttled_log_dirs, seconds=24),
        IdleLogDir(partition=name(0), broker=BrokerId(1), log_dir="/other", seconds=36.0, rate=7),
    ),
    "a healthy replica caught by the throttle": (
        Case(make=with_a_healthy_replica, then=out_of_sync, seconds=6),
        CaughtReplica(partition=name(1), broker=BrokerId(2), more=0),
    ),
    "nothing arrives": (
        Case(make=running, then=lambda s: s.cluster.stuck.add((name(0), THREE)), seconds=34),
        NothingArrives(run=None, seconds=33.0, left=100 * MB - 12 * MB),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_symptom(stage: Watched, case: str) -> None:
    given_, expected = CASES[case]
    plan = given_.make(stage)
    watch = stage.watch(plan)
    assert kinds(stage, watch, 12) <= ({type(expected)} if given_.then is Case.then else set())
    given_.then(stage)
    found = stage.look(watch, given_.seconds).symptoms
    [named] = [one for one in found if type(one) is type(expected)]
    assert rounded(named) == rounded(expected)


@pytest.mark.parametrize(
    ("key", "listed"), [(FOLLOWER_REPLICAS, "0:3,1:4"), (LEADER_REPLICAS, "0:1,1:2")], ids=["follower", "leader"]
)
def test_a_replica_on_brokers_outside_the_move_is_caught(stage: Watched, key: str, listed: str) -> None:
    """Partition 1 stays on brokers 2 and 4. Another tool left its throttle set."""
    stage.cluster.partition(name(0), (1,), 100 * MB)
    stage.cluster.partition(name(1), (2, 4), 100 * MB)
    stage.move({name(0): brokers(3)}, MB)
    stage.cluster.configs[Setting.of_topic("orders", key)] = listed
    watch = stage.watch()
    stage.look(watch, 2)
    stage.cluster.partitions[name(1)] = replace(stage.cluster.partitions[name(1)], isr=brokers(2))
    found = stage.look(watch, 6).symptoms
    assert CaughtReplica(partition=name(1), broker=BrokerId(4), more=0) in found


def test_a_controller_has_ten_seconds_to_begin_a_move(stage: Watched) -> None:
    idle_controller(stage)
    watch = stage.watch()
    assert NotBegun not in kinds(stage, watch, 9)
    assert NotBegun in kinds(stage, watch, 1)


def test_a_copy_that_received_bytes_has_started(stage: Watched) -> None:
    """Its log dir failed, so the destination shows no log of it anymore."""
    running(stage)
    stage.clock.sleep(12)
    watch = stage.watch()
    watch.look()
    stage.cluster.stuck.add((name(0), THREE))
    del stage.cluster.sizes[name(0), THREE]
    assert NotStarted not in kinds(stage, watch, 12)


def test_a_replica_on_a_dead_broker_is_not_caught(stage: Watched) -> None:
    with_a_healthy_replica(stage)
    watch = stage.watch()
    stage.look(watch, 2)
    stage.cluster.lose(2)
    assert CaughtReplica not in kinds(stage, watch, 6)


def test_a_replica_of_a_topic_outside_the_move_is_caught_until_it_is_in_sync(stage: Watched) -> None:
    """Most readings cover only the watched topics, and topics that recently had out-of-sync replicas."""
    running(stage)
    stage.topic(1, topic="audit")
    stage.cluster.configs[Setting.of_topic("audit", FOLLOWER_REPLICAS)] = "0:2"
    healthy = stage.cluster.partitions[name(0, "audit")]
    stage.cluster.partitions[name(0, "audit")] = replace(healthy, isr=brokers(1))
    found = stage.look(stage.watch(), 10, 5).symptoms
    assert CaughtReplica(partition=name(0, "audit"), broker=BrokerId(2), more=0) in found


def test_a_throttled_list_that_cannot_be_read_keeps_its_last_value(stage: Watched) -> None:
    watch = stage.watch(small(stage))
    assert ThrottleLeft in kinds(stage, watch, 2)
    stage.cluster.unreadable.add("orders")
    assert ThrottleLeft in kinds(stage, watch, 60)


def test_a_deleted_topic_is_not_throttled(stage: Watched) -> None:
    """Brokers report no list of a topic that does not exist."""
    watch = stage.watch(small(stage))
    assert ThrottleLeft in kinds(stage, watch, 2)
    del stage.cluster.partitions[name(0)], stage.cluster.producers[name(0)]
    stage.cluster.unreadable.add("orders")
    assert kinds(stage, watch, 60) == set()


def test_a_throttle_that_outlives_its_run_is_not_the_throttle_of_this_run(stage: Watched) -> None:
    """Another run still lists the partition, so the ended run cannot be continued to restore it."""
    watch = stage.watch(recorded(stage))
    assert ThrottleLeft(run=RUN.id) in stage.look(watch, 2).symptoms
    [run] = stage.runs.unfinished()
    stage.runs.update(replace(run, finished=stage.clock.now()))
    assert stage.look(watch, 2).symptoms == (ThrottleLeft(run=None),)


def kinds(stage: Watched, watch: MoveWatch, seconds: float) -> set[type[Symptom]]:
    return {type(one) for one in stage.look(watch, seconds).symptoms}


def rounded(symptom: Symptom) -> Symptom:
    match symptom:
        case StarvedCopies():
            used, followers = round(symptom.used, -5), round(symptom.followers, -5)
            return replace(symptom, used=used, followers=followers, written=round(symptom.written, -5))
        case NothingArrives():
            return replace(symptom, seconds=33.0)
        case _:
            return symptom


@pytest.mark.parametrize("interval", [30.0, 90.0])
def test_starved_copies_are_found_in_readings_that_are_farther_apart_than_a_window(
    stage: Watched, interval: float
) -> None:
    stage.cluster.partition(name(0), (1,), 500 * MB, 2 * MB)
    stage.move({name(0): brokers(3)}, MB)
    watch = stage.watch()
    for _ in range(3):
        assert StarvedCopies in {type(one) for one in stage.look(watch, interval, interval).symptoms}


def test_a_throttle_below_the_write_rate_is_called_starved_within_30_seconds(stage: Watched) -> None:
    for lumps in (False, True):
        stage.cluster.lumps = lumps
        stage.cluster.partition(name(int(lumps)), (1,), 500 * MB, 2 * MB)
        stage.move({name(int(lumps)): brokers(3)}, MB)
        watch = stage.watch()
        assert StarvedCopies in kinds(stage, watch, 24)


@given(
    throttle=st.integers(2, 20),
    share=st.floats(0.0, 0.7),
    lumps=st.booleans(),
    late=st.integers(0, 15),
    interval=st.sampled_from([1.0, 2.0, 5.0, 12.0, 15.0, 30.0]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_move_that_progresses_has_no_symptom(
    tmp_path: Path, throttle: int, share: float, lumps: bool, late: int, interval: float
) -> None:
    """Whenever the watch begins, and also if copies arrive in bursts of a quota window."""
    stage = Watched(tmp_path)
    stage.cluster.lumps = lumps
    stage.cluster.partition(name(0), (1,), 5000 * MB, int(throttle * share * MB))
    stage.move({name(0): brokers(3)}, throttle * MB)
    stage.clock.sleep(late)
    watch = stage.watch()
    for _ in range(int(60 / interval)):
        assert watch.look().symptoms == ()
        stage.clock.sleep(interval)
