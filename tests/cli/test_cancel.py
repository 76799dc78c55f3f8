"""`reassign-partitions --cancel` on real brokers: a comparison with Kafka's own tool, and a dead broker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kquota.settings.resource import Setting
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.cli.reassign_command import already_throttled
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import LASTING, SLOW, Desk, rates
from tests.cli.test_reassign_peers import peer
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

NONE_ACTIVE = "None of the specified partition reassignments are active."


@pytest.fixture(params=["4.3.1 Admin API", "3.9.1 Admin API", "2.8.2 Admin API"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def test_cancel_reverts_everything_and_kafkas_tool_agrees(desk: Desk) -> None:
    """Includes a move that only adds a replica, which Kafka's --cancel of 3.7 to 4.0 ignores."""
    topic, other = desk.hand.topic({0: (1, 2)}, size=LASTING), desk.hand.topic({0: (2,)}, size=LASTING)
    prior = {Setting.of_topic(topic, LEADER_REPLICAS): "0:1", Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, 0): (1, 3), (other, 0): (2, 3)})
    started = desk.run("--execute", plan, "--throttle", SLOW, "--force")
    assert started.code == 0, started.err
    assert f"{topic}-0: replicas: " in peer(desk, "--list").out
    stopped = desk.run("--cancel", plan)
    assert stopped.code == 0, stopped.err
    names = ",".join(sorted([f"{topic}-0", f"{other}-0"]))
    assert f"Successfully cancelled partition reassignments for: {names}" in stopped.out
    assert "No partition reassignments found." in peer(desk, "--list").out
    assert [desk.hand.replicas(TopicPartition(name, 0)) for name in (topic, other)] == [[1, 2], [2]]
    until(lambda: desk.standing(topic) | desk.hand.lists(other) == prior, "everything is restored")
    again = desk.run("--cancel", plan)
    assert (again.code, NONE_ACTIVE in again.out) == (0, True)
    assert desk.standing(topic) == prior


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_a_move_of_kafkas_tool_is_cancelled_with_kafkas_messages(desk: Desk) -> None:
    """kquota removes its lists, because they are exactly those of the cancelled move.

    Its rates stay, because their owner is unknown.
    """
    texts = []
    for cancel in (peer, ours):
        topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
        plan = desk.plan({(topic, 0): (1, 3)})
        already_throttled(desk.hand, SLOW, {topic: ("0:1,0:2", "0:3")})
        assert peer(desk, "--reassignment-json-file", plan, "--execute", "--throttle", SLOW).code == 0
        stopped = cancel(desk, "--reassignment-json-file", plan, "--cancel", "--preserve-throttles")
        assert stopped.code == 0, stopped.err
        desk.moved(topic, (1, 2))
        texts.append(stopped.out.replace(topic, "TOPIC").rstrip("\n"))  # Kafka's last line has no line end.
        assert set(desk.hand.lists(topic).values()) == {"0:1,0:2", "0:3"}
    assert texts[0] == texts[1]
    assert peer(desk, "--reassignment-json-file", plan, "--execute").code == 0
    stopped = desk.run("--cancel", plan)
    assert stopped.code == 8, "another host may need the rates that stay"
    assert "leader.replication.throttled.rate on brokers 1,2,3" in stopped.err
    until(lambda: desk.standing(topic) == rates(SLOW), "the lists are restored")


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_no_replica_returns_to_a_dead_broker(desk: Desk) -> None:
    """The cancel is refused, and with --force KRaft itself refuses it.

    The rest is reverted and its throttle restored.
    """
    topic = desk.hand.topic({0: (2,)}, size=LASTING)
    other = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (2, 3), (other, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW, "--force").code == 0
    desk.hand.servers.broker(2).process.stop()
    try:
        until(lambda: leaderless(desk, topic), "its partition has no leader")
        before = desk.hand.lists(topic), desk.hand.lists(other)
        refused = desk.run("--cancel", plan)
        assert (refused.code, refused.out) == (1, ""), refused.err
        assert re.search(
            rf"{topic}-0: the cancellation would leave too few replicas in sync \(in sync: none; replicas: 2; ",
            refused.err,
        )
        assert (desk.hand.lists(topic), desk.hand.lists(other)) == before
        forced = desk.run("--cancel", plan, "--force")
        assert (forced.code, forced.out) == (1, ""), forced.err
        assert f"Error cancelling partition reassignment for: {topic}-0: Unable to revert" in forced.err
        until(
            lambda: [len(desk.hand.lists(name)) for name in (topic, other)] == [2, 0],
            "one partition keeps its throttle",
        )
    finally:
        desk.hand.start_broker(2)
    until(lambda: not leaderless(desk, topic), "its partition has a leader")
    assert desk.run("--cancel", plan).code == 0
    until(lambda: desk.standing(topic) == {}, "everything is restored")


def ours(desk: Desk, *arguments: str) -> Ran:
    return kquota("reassign-partitions", *desk.connection, "--state-dir", str(desk.folder / "state"), *arguments)


def leaderless(desk: Desk, topic: str) -> bool:
    leader = desk.hand.admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    return int(leader) < 0
