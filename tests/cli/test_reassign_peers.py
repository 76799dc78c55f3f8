"""kquota and Kafka's own ReassignPartitionsCommand on the same moves: each understands the moves of the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.terms import LEADER_RATE
from tests.cli.reassign_command import already_throttled
from tests.cli.run import Ran, run
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand, until

pytestmark = pytest.mark.kafka

COMPLETED = re.compile(r"Reassignment of partition \S+ is complete(d)?\.")


@pytest.fixture
def desk(cluster: Sandbox, tmp_path: Path) -> Iterator[Desk]:
    hand = OtherHand(cluster)
    yield Desk(hand, ("--bootstrap-server", cluster.bootstrap), tmp_path)
    hand.close()


def peer(desk: Desk, *arguments: str) -> Ran:
    servers = desk.hand.servers
    assert servers.kafka
    old = servers.kafka.startswith("2.")
    tool = (
        "kafka.admin.ReassignPartitionsCommand" if old else "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    )
    return run(kafka_tool(servers, tool, "--bootstrap-server", servers.bootstrap, *arguments))


def saved(desk: Desk, out: str) -> str:
    """The text that --execute prints to be saved for a rollback, saved to a file."""
    return desk.saved(json.loads(out.split("\n")[2]))


def test_kafkas_tool_verifies_and_rolls_back_a_move_of_kquota(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=1_000_000)
    plan = desk.plan({(topic, 0): (1, 3)})
    started = desk.run("--execute", plan, "--throttle", FAST)
    assert started.code == 0, started.err
    desk.moved(topic, (1, 3))
    assert COMPLETED.search(peer(desk, "--reassignment-json-file", plan, "--verify").out)
    assert desk.run("--verify", plan).code == 0
    back = saved(desk, started.out)
    assert desk.run("--execute", back).code == 0
    desk.moved(topic, (1, 2))
    assert desk.run("--verify", back).code == 0
    until(lambda: desk.standing(topic) == {}, "no throttle is set")


def test_kquota_verifies_and_rolls_back_a_move_of_kafkas_tool(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    already_throttled(desk.hand, SLOW, {topic: ("0:1,0:2", "0:3")})
    started = peer(desk, "--reassignment-json-file", plan, "--execute", "--throttle", SLOW)
    assert started.code == 0, started.out
    assert desk.run("--verify", plan).code == 8
    faster = peer(desk, "--reassignment-json-file", plan, "--execute", "--additional", "--throttle", "50000000")
    assert faster.code == 0, faster.out
    desk.moved(topic, (1, 3))
    assert desk.hand.lists(topic)
    done = desk.run("--verify", plan)
    assert done.code == 8
    assert f"{LEADER_RATE} on broker 1,2,3" in done.err, (
        "kquota did not set the throttle, and does not know what needs it"
    )
    until(lambda: desk.hand.lists(topic) == {}, "the plan proves the entries of the lists")
    assert desk.standing(topic) == rates("50000000"), "no plan proves which move owns the rates"
    peer(desk, "--reassignment-json-file", plan, "--verify")
    back = saved(desk, started.out)
    if desk.hand.servers.kafka == "4.3.1":
        assert "/" in Path(back).read_text(), "the tool of this Kafka release writes log dirs"
    rolled = desk.run("--execute", back)
    assert rolled.code == 0, rolled.err
    desk.moved(topic, (1, 2))


@pytest.mark.parametrize("cluster", ["kafka_431"], indirect=True)
def test_the_words_are_kafkas(desk: Desk) -> None:
    """Only the output of a second --execute differs: kquota still prints the plan back to the original replicas."""
    outs = []
    for who in ("kquota", "kafka"):
        topic = desk.hand.topic({0: (1, 2), 1: (2, 1)}, size=LASTING)
        plan = desk.plan({(topic, 0): (1, 3), (topic, 1): (2, 3)})
        if who == "kafka":
            already_throttled(desk.hand, SLOW, {topic: ("0:1,0:2,1:1,1:2", "0:3,1:3")})

        def said(action: str, *more: str, who: str = who, plan: str = plan, topic: str = topic) -> str:
            ours = who == "kquota"
            ran = desk.run(action, plan, *more) if ours else peer(desk, "--reassignment-json-file", plan, action, *more)
            return re.sub(r'"log_dirs":\[[^]]*\]', '"log_dirs":[]', ran.out.replace(topic, "TOPIC"))

        texts = [said("--execute", "--throttle", SLOW), said("--verify")]
        desk.hand.unthrottle()
        desk.moved(topic, (1, 3))
        desk.moved(topic, (2, 3), 1)
        for setting, value in rates(SLOW).items():
            desk.hand.write(setting, value)
        outs.append([*texts, said("--verify", "--preserve-throttles"), said("--verify")])
    assert outs[0] == outs[1]


@pytest.mark.parametrize("cluster", ["kafka_431"], indirect=True)
def test_a_move_that_kafkas_tool_cancels_is_reported_as_ended_elsewhere(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    assert peer(desk, "--reassignment-json-file", plan, "--cancel", "--preserve-throttles").code == 0
    desk.moved(topic, (1, 2))
    assert desk.standing(topic)
    found = desk.run("--verify", plan)
    assert found.code == 1
    assert "replica set is 1,2 rather than 1,3." in found.out
    assert "was undone, cancelled or refused, so only " in found.err
    until(lambda: desk.standing(topic) == {}, "everything is restored")
