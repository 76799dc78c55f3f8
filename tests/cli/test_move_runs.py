"""Runs on real brokers: two at once, a paused twin, moves back and forth, and a topic that changes during a move."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kquota.cli import move_stores, world
from kquota.cli.connection import Connection
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, TopicPartition
from tests.cli.dying import Death, Doom, Mortal
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

BOTH = ["4.3.1 Admin API", "3.9.1 ZooKeeper"]


@pytest.fixture(params=BOTH)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def elsewhere(desk: Desk) -> Desk:
    """Return the same operator on another host, with an empty state folder."""
    folder = desk.folder / "elsewhere"
    folder.mkdir(exist_ok=True)
    return replace(desk, folder=folder)


def move(desk: Desk, verb: str, *more: str) -> Ran:
    return kquota("move", verb, *desk.connection, "--state-dir", str(desk.folder / "state"), *more)


def begun(desk: Desk, plan: str, doom: Doom) -> Mortal:
    """Start an --execute that stops at one of its steps and still exists."""
    where = (*desk.connection, "--state-dir", str(desk.folder / "state"), "--reassignment-json-file", plan)
    arguments = ("reassign-partitions", *where, "--execute", "--throttle", SLOW, "--force")
    mortal = Mortal(*arguments, folder=desk.folder, doom=doom)
    until(lambda: mortal.stopped, "the process is stopped")
    return mortal


def must_be_busy(ran: Ran) -> None:
    """Check that the error names this process, which holds the lock."""
    assert ran.code == 75, ran.err
    who = f"another kquota (reassign-partitions --execute, pid {os.getpid()} on {os.uname().nodename} as "
    assert who in ran.err, ran.err


def must_end(desk: Desk, plan: str, topic: str, target: tuple[int, ...]) -> None:
    """Let the move finish quickly, and check that all throttles are restored."""
    assert desk.run("--execute", plan, "--throttle", FAST).code == 0
    desk.moved(topic, target)
    assert desk.run("--verify", plan).code == 0
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    assert move(desk, "status").code == 0


def test_a_second_execute_names_the_process_of_the_first(desk: Desk) -> None:
    """The same plan and another one; on ZooKeeper also from another host, with which it shares no folder."""
    topic = desk.hand.topic({0: (1, 2), 1: (1, 2)}, size=10_000)
    plan, other = desk.plan({(topic, 0): (1, 3)}), desk.plan({(topic, 1): (1, 3)})
    option, address = desk.connection
    given = Connection(zookeeper=address) if option == "--zookeeper" else Connection(bootstrap_server=address)
    hold = move_stores.LockRequest(doing="reassign-partitions --execute")
    with move_stores.staged(world.where(given), desk.folder / "state", hold):
        for second in [desk, elsewhere(desk)] if option == "--zookeeper" else [desk]:
            for late in (plan, other):
                must_be_busy(second.run("--execute", late, "--throttle", SLOW))
            must_be_busy(second.run("--verify", plan))
            assert second.run("--verify", plan, "--preserve-throttles").code == 1, "reading needs no lock"
    assert desk.standing(topic) == {}
    assert desk.run("--execute", plan, "--throttle", FAST).code == 0
    must_end(desk, plan, topic, (1, 3))


@pytest.mark.parametrize("way", ["3.9.1 ZooKeeper"])
@pytest.mark.parametrize("n", [8, 9, 10, 11, 12, 13])
def test_a_paused_twin_writes_nothing_after_a_takeover(desk: Desk, n: int) -> None:
    """Its lock ended with its session during the pause, and another kquota has resumed and aborted the run since."""
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    name = TopicPartition(topic, 0)
    plan = desk.plan({(topic, 0): (1, 3)})
    paused = begun(desk, plan, Doom(n=n, death=Death.BEFORE, signal=signal.SIGSTOP))
    client = KazooClient(hosts=desk.hand.servers.zookeeper)
    client.start()
    try:
        # On a busy machine the pause lasts longer than the session, so the lock ends by itself.
        with contextlib.suppress(NoNodeError):
            client.delete("/kquota/lock")
    finally:
        client.stop()
        client.close()
    twin = elsewhere(desk)
    known = move(twin, "status").code == 8
    assert move(twin, "resume").code == (8 if known else 0)
    if known:
        lists = {Setting.of_topic(topic, LEADER_REPLICAS): "0:1,0:2", Setting.of_topic(topic, FOLLOWER_REPLICAS): "0:3"}
        # The brokers, which the other client asks, see the change later.
        until(lambda: desk.standing(topic) == lists | rates(SLOW), "the throttle is set")
        until(lambda: set(desk.hand.replicas(name)) == {1, 2, 3}, "the partition moves")
    before = desk.standing(topic), desk.hand.replicas(name)
    paused.wake()
    woken = paused.end()
    assert (woken.code, "Nothing more is written" in woken.err) == (75, True), woken
    assert (desk.standing(topic), desk.hand.replicas(name)) == before
    must_end(twin, plan, topic, (1, 3))


def test_there_and_back_and_there_again_are_three_runs(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=10_000)
    there, back = desk.plan({(topic, 0): (1, 3)}), desk.plan({(topic, 0): (1, 2)})
    for plan, target in ((there, (1, 3)), (back, (1, 2)), (there, (1, 3))):
        assert desk.run("--execute", plan, "--throttle", FAST).code == 0
        desk.moved(topic, target)
        for _ in range(2):
            assert desk.run("--verify", plan).code == 0
            until(lambda: desk.standing(topic) == {}, "everything is restored")
        again = desk.run("--execute", plan, "--throttle", FAST)
        assert (again.code, "Successfully started" in again.out) == (0, False)
        assert desk.standing(topic) == {}
    assert len(list((desk.folder / "state").rglob("*.journal"))) == 3
    for verb in ("resume", "abort"):
        nothing = move(desk, verb)
        assert nothing.code == 0
        assert nothing.err.startswith(f"kquota: no run of a move is open, so there is nothing to {verb}\n")
        alone = "note: kquota cannot see runs of other hosts: this cluster has no shared record" in nothing.err
        assert alone == (desk.connection[0] == "--bootstrap-server")
        assert json.loads(move(desk, verb, "--output", "json").out) == {"version": 1, "runs": []}


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_one_resume_of_two_runs_restores_all_rates(desk: Desk) -> None:
    """The first run ends and hands its current rate over to the second run, which the same command then writes."""
    topic = desk.hand.topic({0: (1, 2), 1: (1, 2)}, size=LASTING)
    first, second = desk.plan({(topic, 0): (1, 3)}), desk.plan({(topic, 1): (1, 3)})
    assert desk.run("--execute", first, "--throttle", SLOW, "--force").code == 0
    assert desk.run("--execute", second, "--throttle", "30000", "--force", "--additional").code == 0
    assert desk.run("--execute", first, "--throttle", FAST, "--force", "--additional").code == 0
    desk.moved(topic, (1, 3))
    desk.moved(topic, (1, 3), 1)
    assert move(desk, "resume").code == 0
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    assert move(desk, "status").code == 0


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_verify_without_the_record_removes_only_what_the_plan_proves(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    leaders = Setting.of_topic(topic, LEADER_REPLICAS)
    desk.hand.write(leaders, "9:9")
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW, "--force").code == 0
    standing = desk.standing(topic)
    meanwhile = elsewhere(desk).run("--verify", plan)
    assert meanwhile.code == 8
    assert "no open run of this plan is recorded here" in meanwhile.err
    assert desk.standing(topic) == standing, "a running move keeps its throttle"
    assert desk.run("--execute", plan, "--throttle", FAST).code == 0
    desk.moved(topic, (1, 3))
    ours = desk.hand.rates()
    found = elsewhere(desk).run("--verify", plan)
    assert found.code == 8, "the rates stay, because this host does not know their owner"
    assert "a throttle is still set, and its run is unknown: " in found.err
    assert all(f"{key} on brokers 1,2,3" in found.err for key in (LEADER_RATE, FOLLOWER_RATE))
    until(lambda: desk.standing(topic) == {leaders: "9:9", **ours}, "only the plan's own entries are removed")
    assert desk.run("--verify", plan).code == 0
    until(lambda: desk.standing(topic) == {leaders: "9:9"}, "everything is restored")


@pytest.mark.parametrize(
    "way", ["4.3.1 Admin API"]
)  # during this time, a controller on ZooKeeper accepts no new partition
def test_a_topic_that_grows_during_its_move(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW, "--force").code == 0
    # Kafka limits the number of replicas to those that the moving partition has now, old and new together.
    until(lambda: len(desk.hand.replicas(TopicPartition(topic, 0))) == 3, "the move is visible")
    grown = [2, 1, 3]
    new = NewPartitions(topic, 2, replica_assignment=[grown])
    desk.hand.admin.create_partitions([new])[topic].result(30)
    desk.moved(topic, tuple(grown), 1)
    assert desk.run("--verify", plan).code == 8
    must_end(desk, plan, topic, (1, 3))
    assert desk.hand.replicas(TopicPartition(topic, 1)) == grown


@pytest.mark.parametrize("verb", ["--verify", "resume", "abort"])
def test_a_topic_that_is_deleted_and_created_again_during_its_move(desk: Desk, verb: str) -> None:
    """The new topic of that name is not the one to move: its lists stay unchanged, and the rates are restored."""
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW, "--force").code == 0
    desk.hand.delete(topic)

    def is_reported_deleted() -> bool:
        """Return True if the topic is reported as deleted. A broker on KRaft may lag for a moment."""
        verified = desk.run("--verify", plan, "--preserve-throttles")
        return verified.code == 1 and f"1 partition does not exist: {topic}-0" in verified.err

    until(is_reported_deleted, "the topic is reported as deleted")
    again = NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])
    until(lambda: desk.hand.admin.create_topics([again])[topic].exception(30) is None, "the topic exists again")
    # On ZooKeeper its move stays recorded forever, because a controller never removes the move of a deleted topic.
    until(lambda: desk.hand.replicas(TopicPartition(topic, 0)) == [1, 2], "its replicas are reported")
    theirs = {Setting.of_topic(topic, LEADER_REPLICAS): "0:1,0:2", Setting.of_topic(topic, FOLLOWER_REPLICAS): "0:3"}
    for setting, value in theirs.items():
        desk.hand.write(setting, value)
    for _ in range(2):
        ran = desk.run("--verify", plan) if verb == "--verify" else move(desk, verb)
        assert ran.code in (0, 1), ran.err
    until(lambda: desk.standing(topic) == theirs, "the rates are restored, the new topic's lists stay")
    assert desk.hand.replicas(TopicPartition(topic, 0)) == [1, 2]
    assert json.loads(move(desk, "status", "--output", "json").out)["runs"] == []
