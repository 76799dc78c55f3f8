"""`reassign-partitions --cancel` on real brokers, beside Kafka's own tool, and with a broker that has gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kquota.reassign.throttle import Setting
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.cli.test_reassign_partitions import SLOW, Desk
from tests.cli.test_reassign_peers import peer
from tests.stores.moves_stage import OtherHand, until

pytestmark = pytest.mark.kafka

SIZE = 1_500_000
NONE_ACTIVE = "None of the specified partition reassignments are active."


@pytest.fixture(params=["4.3.1 Admin API", "3.9.1 Admin API", "2.8.2 Admin API"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def test_everything_is_taken_back_and_kafkas_tool_sees_it(desk: Desk) -> None:
    """Also a move that only adds a replica, which Kafka's --cancel of 3.7 to 3.9 passes over."""
    topic = desk.hand.topic({0: (1, 2), 1: (2,)}, size=SIZE)
    prior = {Setting.of_topic(topic, LEADER_REPLICAS): "0:1", Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, 0): (1, 3), (topic, 1): (2, 3)})
    started = desk.run("--execute", plan, "--throttle", SLOW, "--force")
    assert started.code == 0, started.err
    assert f"{topic}-0: replicas: " in peer(desk, "--list").out
    stopped = desk.run("--cancel", plan)
    assert stopped.code == 0, stopped.err
    assert f"Successfully cancelled partition reassignments for: {topic}-0,{topic}-1" in stopped.out
    assert "No partition reassignments found." in peer(desk, "--list").out
    assert [desk.hand.replicas(TopicPartition(topic, number)) for number in (0, 1)] == [[1, 2], [2]]
    until(lambda: desk.standing(topic) == prior, "everything is given back")
    again = desk.run("--cancel", plan)
    assert (again.code, NONE_ACTIVE in again.out) == (0, True)
    assert desk.standing(topic) == prior


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_a_move_of_kafkas_tool_is_cancelled_with_its_words(desk: Desk) -> None:
    """Its lists go, since the plan proves them; its rates stay, since nothing does."""
    texts = []
    for cancel in ("kafka", "kquota"):
        topic = desk.hand.topic({0: (1, 2)}, size=SIZE)
        plan = desk.plan({(topic, 0): (1, 3)})
        at = ["--reassignment-json-file", plan]
        assert peer(desk, *at, "--execute", "--throttle", SLOW).code == 0
        if cancel == "kafka":
            stopped = peer(desk, *at, "--cancel", "--preserve-throttles")
        else:
            stopped = desk.run("--cancel", plan, "--preserve-throttles")
        assert stopped.code == 0, stopped.err
        desk.moved(topic, (1, 2))
        texts.append(stopped.out.replace(topic, "TOPIC"))
        assert set(desk.hand.lists(topic).values()) == {"0:1,0:2", "0:3"}
        assert desk.run("--cancel", plan).code == 0
        until(lambda topic=topic: desk.hand.lists(topic) == {}, "the plan proves the entries")  # type: ignore[misc]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_nothing_goes_back_to_a_broker_that_is_gone(desk: Desk) -> None:
    """Refused, unless --force; what only the broker that is gone could take away is pending until it is back."""
    topic = desk.hand.topic({0: (2,)}, size=SIZE)
    other = desk.hand.topic({0: (1, 2)}, size=SIZE)
    plan = desk.plan({(topic, 0): (2, 3), (other, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW, "--force").code == 0
    servers = desk.hand.servers
    servers.stop_broker(2)
    try:
        until(lambda: leaderless(desk, topic), "its partition has no leader")
        before = desk.hand.lists(topic), desk.hand.lists(other)
        refused = desk.run("--cancel", plan)
        assert (refused.code, refused.out) == (1, ""), refused.err
        assert re.search(rf"{topic}-0: of its replicas before the move, 2, none would be in sync", refused.err)
        assert (desk.hand.lists(topic), desk.hand.lists(other)) == before
        forced = desk.run("--cancel", plan, "--force")
        assert forced.code == 8, forced.err
        assert "broker 2" in forced.err
        assert (desk.hand.lists(topic), desk.hand.lists(other)) == ({}, {})
        pending = desk.run("--verify", plan)
        assert pending.code in (1, 8)
    finally:
        servers.start_broker(2)
    until(lambda: desk.run("--cancel", plan).code == 0, "what was pending is given back", 60)
    until(lambda: desk.hand.rates() == {}, "no rate is left")


def leaderless(desk: Desk, topic: str) -> bool:
    leader = desk.hand.admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    return int(leader) < 0
