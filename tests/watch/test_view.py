"""Progress of moves: bytes, throughput, lag, time left and its drift."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquota.reassign.course import Course
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.recovery import backwards
from kquota.reassign.run import PAUSED_RATE
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.copies import PlannedCopies, copies
from kquota.watch.link_pace import Trend
from kquota.watch.observation import MoveWatch
from kquota.watch.reading import WatchedMove, shrunk
from kquota.watch.symptom import DestinationDown, NotStarted
from tests.stores.record.hosts import RUN
from tests.watch.stage import MB, Watched, brokers, name


@pytest.fixture
def stage(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_a_throttled_copy(stage: Watched) -> None:
    stage.topic(4, size=50 * MB)
    stage.drain(4, throttle=5 * MB)
    found = stage.look(stage.watch(), 20)
    [move] = found.view.moves
    [lane] = move.destinations
    assert (move.run, move.partitions, move.done, move.moving) == (None, 4, 2, 2)
    assert (lane.broker, lane.copies, lane.done) == (3, 4, 2)
    assert (lane.copied, lane.left) == (100 * MB, 100 * MB)
    assert lane.throughput == pytest.approx(5 * MB, rel=0.01)
    assert (lane.throttle, lane.throttled) == (5 * MB, True)
    assert move.seconds_left == pytest.approx(20, rel=0.05)
    [leader, destination] = found.view.brokers
    assert (leader.broker, destination.broker) == (1, 3)
    assert (destination.lag, destination.trend) == (100 * MB, Trend.FALLING)
    assert found.symptoms == ()


@pytest.mark.parametrize("interval", [11.5, 30.0, 90.0])
def test_readings_that_are_farther_apart_than_a_window_are_compared(stage: Watched, interval: float) -> None:
    stage.topic(1, size=5000 * MB)
    stage.drain(1, throttle=5 * MB)
    found = stage.look(stage.watch(), interval, interval)
    [move] = found.view.moves
    assert move.throughput == pytest.approx(5 * MB, rel=0.01)
    assert move.seconds_left == pytest.approx(1000 - interval, rel=0.01)
    [leader, destination] = found.view.brokers
    assert (leader.sent, destination.received) == pytest.approx((5 * MB, 5 * MB), rel=0.01)
    assert destination.trend is Trend.FALLING


def test_a_new_wave_does_not_look_like_a_growing_lag(stage: Watched) -> None:
    """The copies of a new wave add their whole lag at once, although all copies make progress."""
    stage.topic(3, size=500 * MB)
    stage.drain(1, throttle=10 * MB)
    watch = stage.watch()
    stage.look(watch, 8)
    stage.move({name(2): brokers(1, 3)}, throttle=10 * MB)
    trends = [next(one.trend for one in stage.look(watch, 2).view.brokers if one.broker == 3) for _ in range(8)]
    assert trends == [None, *[Trend.FALLING] * 7]


def test_the_waves_of_an_undo_do_not_look_like_a_growing_lag(stage: Watched) -> None:
    """An undo copies back partitions that were already seen to move."""
    stage.topic(2, size=100 * MB)
    plan = stage.drain(2, throttle=10 * MB)
    back = Plan(targets=dict.fromkeys(plan.targets, brokers(1, 2)))
    stage.runs.begin(replace(RUN, plan=plan, rollback=back, handed_over=frozenset(plan.targets)))
    watch = stage.watch(run=RUN.id)
    stage.look(watch, 40)
    for partition in plan.targets:
        del stage.cluster.sizes[partition, BrokerId(2)]
    [run] = stage.runs.unfinished()
    stage.runs.update(backwards(run))
    stage.look(watch, 40)
    trends = []
    for partition in plan.targets:
        stage.move({partition: brokers(1, 2)})
        looks = [stage.look(watch, seconds).view.brokers for seconds in (0, 2, 2)]
        trends += [next(one.trend for one in found if one.broker == 2) for found in looks]
    assert trends == [None, None, Trend.FALLING] * 2


class Truth(NamedTuple):
    size: int
    throttle: int
    writes: int
    lumps: bool


@pytest.mark.parametrize(
    "case",
    [
        Truth(size=100 * MB, throttle=2 * MB, writes=0, lumps=False),
        Truth(size=100 * MB, throttle=4 * MB, writes=MB, lumps=False),
        Truth(size=400 * MB, throttle=5 * MB, writes=0, lumps=True),
        Truth(size=600 * MB, throttle=8 * MB, writes=MB, lumps=True),
        Truth(size=2000 * MB, throttle=6 * MB, writes=MB, lumps=True),
    ],
    ids=str,
)
def test_from_a_quarter_on_time_left_is_within_a_fifth_of_the_truth(stage: Watched, case: Truth) -> None:
    """A broker that takes a quota window at once ends about a window earlier or later than its rate predicts."""
    stage.cluster.lumps = case.lumps
    stage.topic(1, size=case.size, writes=case.writes)
    stage.drain(1, throttle=case.throttle)
    watch, told = stage.watch(), []
    while not (found := watch.look()).ended:
        told.append((stage.clock.slept, found.view.moves[0].seconds_left))
        stage.clock.sleep(1.0)
    end = stage.clock.slept
    slack = 15.0 if case.lumps else 1.0
    for at, left in told:
        if at >= end / 4:
            assert left is not None
            assert abs(left - (end - at)) <= max(0.2 * (end - at), slack), (at, left, end)


def test_drift_is_measured_from_the_first_prediction(stage: Watched) -> None:
    stage.topic(1, size=200 * MB)
    stage.drain(1, throttle=4 * MB)
    watch = stage.watch()
    [before] = stage.look(watch, 15).view.moves
    assert before.drift == pytest.approx(0, abs=1)
    stage.cluster.throttle(2 * MB, (1, 2, 3, 4))
    [slower] = stage.look(watch, 20).view.moves
    assert slower.seconds_left == pytest.approx(50, rel=0.1)
    assert slower.drift == pytest.approx(35, rel=0.15)


def test_drift_of_a_run_is_measured_from_its_expected_end(stage: Watched) -> None:
    stage.topic(1, size=200 * MB)
    plan = stage.drain(1, throttle=4 * MB)
    begun, course = stage.clock.now(), Course(expected=40.0)
    stage.runs.begin(replace(RUN, begun=begun, plan=plan, handed_over=frozenset(plan.targets), course=course))
    [move] = stage.look(stage.watch(plan), 15).view.moves
    assert move.drift == pytest.approx(10, abs=1)


def test_without_a_throttle(stage: Watched) -> None:
    stage.cluster.pipe = 10 * MB
    stage.topic(1, size=200 * MB)
    stage.drain(1)
    [move] = stage.look(stage.watch(), 10).view.moves
    [lane] = move.destinations
    assert (lane.throttle, lane.throttled) == (None, False)
    assert move.seconds_left == pytest.approx(10, rel=0.05)


def test_a_throttle_that_lists_no_copy_does_not_limit_the_move(stage: Watched) -> None:
    stage.topic(1)
    stage.topic(1, topic="audit")
    stage.move({name(0, "audit"): brokers(1, 3)}, throttle=MB)
    plan = stage.drain(1)
    [lane] = stage.look(stage.watch(plan), 1).view.moves[0].destinations
    assert (lane.throttle, lane.throttled) == (None, False)


def test_a_paused_throttle_has_no_time_left(stage: Watched) -> None:
    stage.topic(1)
    stage.drain(1, throttle=PAUSED_RATE)
    watch = stage.watch()
    stage.look(watch, 15)
    stage.cluster.sizes[name(0), BrokerId(3)] += 15 * PAUSED_RATE
    [move] = stage.look(watch, 1).view.moves
    assert (move.left, move.seconds_left) == (100 * MB - 15 * PAUSED_RATE, None)


def test_the_last_destination_is_the_one_whose_copies_end_last(stage: Watched) -> None:
    stage.cluster.fair = True
    stage.topic(3)
    targets = {name(0): brokers(1, 3), name(1): brokers(1, 4), name(2): brokers(1, 4)}
    stage.move(targets, throttle=2 * MB)
    watch = stage.watch()
    assert watch.look().view.moves[0].last is None
    [move] = stage.look(watch, 15).view.moves
    assert [(lane.broker, lane.copies, lane.left) for lane in move.destinations] == [
        (3, 1, 85 * MB),
        (4, 2, 185 * MB),
    ]
    assert move.last is not None
    assert move.last.broker == 4


def test_over_zookeeper_only_partitions_and_throttles_are_known(stage: Watched) -> None:
    stage.on_zookeeper = True
    stage.topic(2)
    stage.drain(2, throttle=5 * MB)
    stage.cluster.finish(name(0))
    [move] = stage.look(stage.watch(), 10).view.moves
    [lane] = move.destinations
    assert (move.partitions, move.moving) == (1, 1)
    assert (lane.copied, lane.left, lane.throughput, lane.seconds_left) == (None, None, None, None)
    assert (move.seconds_left, move.drift, lane.throttle) == (None, None, 5 * MB)


def test_a_broker_that_does_not_answer_leaves_its_bytes_unknown(stage: Watched) -> None:
    stage.topic(1)
    stage.drain(1, throttle=MB)
    watch = stage.watch()
    stage.look(watch, 10)
    stage.cluster.unanswered[BrokerId(3)] = "no answer"
    [move] = stage.look(watch, 2).view.moves
    assert (move.copied, move.left, move.seconds_left) == (None, None, None)
    stage.cluster.unanswered.clear()
    [again] = stage.look(watch, 2).view.moves
    assert again.left == 100 * MB - 14 * MB
    assert again.throughput == pytest.approx(MB, rel=0.01)


def test_the_slowest_copy_is_the_one_without_progress(stage: Watched) -> None:
    stage.topic(3, size=50 * MB)
    stage.cluster.stuck.add((name(1), BrokerId(3)))
    stage.drain(3, throttle=2 * MB)
    [move] = stage.look(stage.watch(), 10).view.moves
    slowest = move.destinations[0].slowest
    assert slowest is not None
    assert (slowest.partition, slowest.left, slowest.seconds) == (name(1), 50 * MB, None)


def test_bytes_from_before_the_first_answer_of_a_broker_are_not_progress(stage: Watched) -> None:
    stage.topic(1, size=200 * MB)
    stage.drain(1, throttle=MB)
    stage.clock.sleep(30)
    stage.cluster.unanswered[BrokerId(3)] = "no answer"
    watch = stage.watch()
    watch.look()
    stage.cluster.unanswered.clear()
    [unknown] = stage.look(watch, 10).view.moves[0].destinations
    assert unknown.slowest is not None
    assert (unknown.slowest.left, unknown.slowest.seconds) == (160 * MB, None)
    [known] = stage.look(watch, 70).view.moves[0].destinations
    assert known.slowest is not None
    assert known.slowest.left == 90 * MB
    assert known.slowest.seconds == pytest.approx(90, rel=0.01)


def test_a_plan_counts_partitions_that_are_done_already(stage: Watched) -> None:
    stage.topic(2)
    plan = stage.drain(2, throttle=5 * MB)
    stage.cluster.finish(name(0))
    [move] = stage.look(stage.watch(plan), 5).view.moves
    assert (move.partitions, move.done, move.moving) == (2, 1, 1)


def test_cancelled_and_deleted_partitions_have_ended_elsewhere(stage: Watched) -> None:
    stage.topic(2)
    plan = stage.drain(2, throttle=5 * MB)
    watch = stage.watch(plan)
    stage.look(watch, 5)
    stage.cluster.cancel(name(0))
    del stage.cluster.partitions[name(1)], stage.cluster.producers[name(1)]
    found = stage.look(watch, 1)
    assert (found.view.moves[0].elsewhere, found.ended) == (2, True)


def test_a_cancelled_partition_has_no_bytes_left(stage: Watched) -> None:
    stage.topic(2)
    plan = stage.drain(2, throttle=MB)
    watch = stage.watch(plan)
    stage.look(watch, 5)
    stage.cluster.cancel(name(0))
    [move] = stage.look(watch, 1).view.moves
    assert move.left == 100 * MB - stage.cluster.sizes[name(1), BrokerId(3)]
    assert [lane.copies for lane in move.destinations] == [1]


SEEN = {name(0): brokers(3)}
SUBMITTED: dict[str, tuple[frozenset[TopicPartition] | None, dict[TopicPartition, Replicas], int]] = {
    "unknown": (None, {}, 1),
    "unknown, but seen to move": (None, SEEN, 0),
    "waits to be submitted": (frozenset(), {}, 1),
    "waits to be submitted again": (frozenset(), SEEN, 1),
    "submitted": (frozenset({name(0)}), {}, 0),
}


@pytest.mark.parametrize(("submitted", "known", "count"), SUBMITTED.values(), ids=SUBMITTED)
def test_only_a_copy_that_was_submitted_can_be_cancelled(
    stage: Watched,
    submitted: frozenset[TopicPartition] | None,
    known: dict[TopicPartition, Replicas],
    count: int,
) -> None:
    stage.topic(1)
    reading = stage.look(stage.watch(), 0).reading
    move = WatchedMove(run="r", targets={name(0): brokers(1, 3)}, submitted=submitted)
    planned = PlannedCopies().again((move,), reading.topics, known)
    assert len(list(copies(planned, reading))) == count


def test_a_copy_of_a_partition_without_a_leader_keeps_its_bytes(stage: Watched) -> None:
    stage.topic(1)
    stage.drain(1, throttle=MB)
    watch = stage.watch()
    stage.look(watch, 12)
    held = stage.cluster.partitions[name(0)]
    stage.cluster.partitions[name(0)] = replace(held, leader=None)
    found = stage.look(watch, 60)
    assert found.view.moves[0].copied == 12 * MB
    assert not any(isinstance(symptom, NotStarted) for symptom in found.symptoms)
    stage.cluster.partitions[name(0)] = held
    [move] = stage.look(watch, 1).view.moves
    assert move.throughput is not None and move.throughput <= MB


def test_a_failed_log_dir_leaves_its_bytes_unknown(stage: Watched) -> None:
    """A broker does not list the replicas of a log dir that failed."""
    stage.topic(1)
    stage.cluster.stuck.add((name(0), BrokerId(3)))
    stage.cluster.errors[BrokerId(3)] = "KafkaStorage (56)"
    stage.drain(1, throttle=MB)
    found = stage.look(stage.watch(), 15)
    assert found.view.moves[0].copied is None
    assert not any(isinstance(symptom, NotStarted) for symptom in found.symptoms)


def test_a_copy_between_log_dirs_of_a_partition_that_moves_is_counted(stage: Watched) -> None:
    """Broker 2 does not lead the partition, and its replica stays."""
    stage.topic(1)
    copy = (name(0), BrokerId(2))
    stage.cluster.futures[copy] = 10 * MB
    stage.move(targets := {name(0): brokers(1, 2, 3)}, throttle=MB)
    [move] = stage.look(stage.watch(Plan(targets=targets, log_dirs={copy: "/other"})), 3).view.moves
    assert (move.moving, move.log_dirs) == (1, 1)


def test_a_copy_between_log_dirs_keeps_the_move_running(stage: Watched) -> None:
    """Its partition already has the replicas of the plan."""
    stage.topic(1)
    copy = (name(0), BrokerId(1))
    stage.cluster.futures[copy] = 10 * MB
    watch = stage.watch(Plan(targets={name(0): brokers(1, 2)}, log_dirs={copy: "/other"}))
    found = stage.look(watch, 3)
    assert (found.ended, found.view.moves[0].log_dirs) == (False, 1)
    assert (found.view.moves[0].seconds_left, found.view.moves[0].drift) == (None, None)
    stage.cluster.futures.clear()
    found = stage.look(watch, 1)
    assert (found.ended, found.view.moves[0].log_dirs) == (True, 0)
    assert found.view.moves[0].seconds_left == 0.0


@pytest.mark.parametrize("lost", ["silent", "dead"])
def test_a_copy_between_log_dirs_of_a_broker_that_does_not_answer_has_not_ended(stage: Watched, lost: str) -> None:
    stage.topic(1)
    copy = (name(0), BrokerId(1))
    watch = stage.watch(Plan(targets={name(0): brokers(1, 2)}, log_dirs={copy: "/other"}))
    if lost == "silent":
        stage.cluster.unanswered[BrokerId(1)] = "no answer"
    else:
        stage.cluster.lose(1)
    found = stage.look(watch, 1)
    assert (found.ended, found.view.moves[0].log_dirs) == (False, 1)
    [symptom] = found.symptoms
    assert isinstance(symptom, DestinationDown)
    assert (symptom.broker, symptom.copies) == (1, 1)


@pytest.mark.parametrize("silent", [(), (3,), (4,)])
def test_follower_traffic_counts_once_whichever_destination_is_silent(stage: Watched, silent: tuple[int, ...]) -> None:
    stage.topic(1, writes=MB)
    stage.cluster.stuck |= {(name(0), broker) for broker in brokers(3, 4)}
    stage.move({name(0): brokers(1, 2, 3, 4)}, throttle=5 * MB)
    stage.cluster.unanswered.update(dict.fromkeys(brokers(*silent), "no answer"))
    [leader] = [one for one in stage.look(stage.watch(), 10).view.brokers if one.broker == 1]
    assert leader.sent == MB


def test_deleted_segments_are_not_negative_follower_traffic(stage: Watched) -> None:
    stage.topic(1, writes=MB)
    stage.drain(1, throttle=5 * MB)
    watch = stage.watch()
    stage.look(watch, 5)
    stage.cluster.delete_segments(name(0), 30 * MB)
    [leader, _] = stage.look(watch, 1).view.brokers
    assert leader.sent == pytest.approx(4 * MB, rel=0.3)


def test_moves_of_others_are_watched_when_they_start(stage: Watched) -> None:
    stage.topic(3, topic="orders")
    stage.topic(1, topic="audit")
    watch = stage.watch()
    assert stage.look(watch, 0).view.moves == ()
    stage.drain(1, throttle=5 * MB)
    assert stage.look(watch, 2).view.moves[0].partitions == 1
    stage.move({name(0, "audit"): brokers(1, 4)})
    [move] = stage.look(watch, 2).view.moves
    assert (move.partitions, [lane.broker for lane in move.destinations]) == (2, [3, 4])


def test_the_end_of_all_moves_is_read_again_when_reads_are_not_stale_anymore(stage: Watched) -> None:
    stage.topic(1)
    plan = stage.drain(1)
    watch = stage.watch(plan)
    stage.look(watch, 0)
    stage.cluster.stale_seconds, stage.cluster.seconds = 0.5, stage.clock.monotonic
    stage.cluster.finish(name(0))
    found = watch.look()
    assert (found.view.moves[0].done, found.view.moves[0].elsewhere) == (1, 0)


def test_each_reading_asks_for_the_logs_once(stage: Watched) -> None:
    stage.topic(2)
    stage.drain(2, throttle=MB)
    stage.look(stage.watch(), 40)
    assert stage.cluster.asked == 41


@pytest.mark.parametrize("throttle", [MB, None])
def test_the_time_left_is_known_soon_after_a_destination_has_restarted(stage: Watched, throttle: int | None) -> None:
    """While the destination is dead, its throttle and its pace do not count."""
    stage.topic(size=200 * MB)
    stage.cluster.pipe = MB
    stage.drain(throttle=throttle)
    watch = stage.watch()
    stage.look(watch, 20)
    stage.cluster.lose(3)
    assert stage.look(watch, 40).view.moves[0].seconds_left is None
    stage.cluster.alive.add(BrokerId(3))
    [move] = stage.look(watch, 12).view.moves
    assert move.left is not None
    assert move.seconds_left == pytest.approx(move.left / MB, rel=0.2)


def outgrown(stage: Watched, *, writes: int = 0) -> MoveWatch:
    """Watches a copy of 60 MB. Then the leader deletes 950 of its 1,000 MB."""
    stage.topic(size=1000 * MB, writes=writes)
    stage.cluster.delete_segments(name(0), 900 * MB)
    stage.drain(throttle=MB)
    watch = stage.watch()
    stage.look(watch, 60)
    assert stage.cluster.asked_starts == 0
    stage.cluster.delete_segments(name(0), 50 * MB)
    return watch


def test_a_copy_that_is_larger_than_the_log_of_its_leader_is_not_almost_done(stage: Watched) -> None:
    """The copy lacks 40 of the 50 MB of the leader, although it has 60 MB itself."""
    found = outgrown(stage).look()
    [move] = found.view.moves
    assert move.copied == pytest.approx(60 * MB, rel=0.02)
    assert move.left == pytest.approx(40 * MB, rel=0.02)
    assert stage.cluster.asked_starts == 1


def test_the_missing_bytes_are_unknown_if_the_first_offset_of_the_leader_is_unknown(
    stage: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = outgrown(stage)
    monkeypatch.setattr(stage.cluster, "starts", lambda _wanted: {})
    assert watch.look().view.moves[0].left is None


def test_a_copy_that_lacks_the_whole_log_of_its_leader_lacks_its_size(stage: Watched) -> None:
    """All bytes of the copy are deleted on the leader."""
    watch = outgrown(stage, writes=2 * MB)
    leader = name(0), BrokerId(1)
    stage.cluster.delete_segments(name(0), stage.cluster.sizes[leader] - 10 * MB)
    assert watch.look().view.moves[0].left == 10 * MB


def test_one_copy_with_known_bytes_does_not_hide_another_that_is_larger_than_its_log(stage: Watched) -> None:
    stage.topic(1, topic="audit", size=1000 * MB)
    stage.move({name(0, "audit"): brokers(1, 2, 4)})
    stage.cluster.stuck.add((name(0, "audit"), BrokerId(4)))
    lanes = outgrown(stage).look().view.moves[0].destinations
    assert [(lane.broker, lane.left) for lane in lanes] == [(3, pytest.approx(40 * MB, rel=0.02)), (4, 1000 * MB)]


@given(
    sizes=st.lists(st.integers(0, 80 * MB), min_size=1, max_size=4),
    throttle=st.sampled_from([None, MB, 5 * MB]),
    writes=st.sampled_from([0, 100_000, 2 * MB]),
    lumps=st.booleans(),
    interval=st.sampled_from([1.0, 3.0, 7.0]),
    shrink=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_left_are_never_negative(
    tmp_path: Path,
    sizes: list[int],
    throttle: int | None,
    writes: int,
    lumps: bool,
    interval: float,
    shrink: bool,
) -> None:
    """Also if retention makes the log of the leader smaller than that of the copy."""
    stage = Watched(tmp_path)
    stage.cluster.lumps, stage.cluster.pipe = lumps, 3 * MB
    for number, size in enumerate(sizes):
        stage.cluster.partition(name(number), (1, 2), size, writes)
    stage.drain(len(sizes), throttle=throttle)
    watch = stage.watch()
    for round_ in range(8):
        found = watch.look()
        for move in found.view.moves:
            for lane in move.destinations:
                assert lane.left is None or lane.left >= 0
                assert lane.throughput is None or lane.throughput >= 0
                assert lane.seconds_left is None or lane.seconds_left >= 0
        for broker in found.view.brokers:
            assert broker.lag is None or broker.lag >= 0
        if shrink and round_ == 4:
            for replica in list(stage.cluster.sizes):
                if replica[1] == 1:
                    stage.cluster.sizes[replica] //= 10
        stage.clock.sleep(interval)


SHRUNK = {
    "in sync": ((1, 2), (1, 2), 0),
    "a replica fell out of sync": ((1, 2), (1,), 1),
    "it was already out of sync": ((1,), (1,), 0),
    "it is in sync again": ((1,), (1, 2), 0),
    "it is not a replica anymore": ((1, 9), (1, 2), 0),
    "two of them": ((1, 2, 3), (1,), 1),
}


@pytest.mark.parametrize(("before", "now", "count"), SHRUNK.values(), ids=SHRUNK)
def test_partitions_that_lost_an_in_sync_replica(before: tuple[int, ...], now: tuple[int, ...], count: int) -> None:
    held = PartitionReplicas(replicas=brokers(1, 2, 3), isr=brokers(*now))
    assert shrunk({name(0): brokers(*before), name(1): brokers(1)}, {name(0): held}) == count
