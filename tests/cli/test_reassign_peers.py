"""kquota and Kafka's own ReassignPartitionsCommand on the same moves: each understands the moves of the other."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.terms import LEADER_RATE
from tests.cli.reassign_command import already_throttled
from tests.cli.run import Ran, kquota, run, started
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SMALL_BATCHES = 50_000
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
    assert f"{LEADER_RATE} on brokers 1,2,3" in done.err, (
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

        def output_of(action: str, *more: str, who: str = who, plan: str = plan, topic: str = topic) -> str:
            ours = who == "kquota"
            ran = desk.run(action, plan, *more) if ours else peer(desk, "--reassignment-json-file", plan, action, *more)
            return re.sub(r'"log_dirs":\[[^]]*\]', '"log_dirs":[]', ran.out.replace(topic, "TOPIC"))

        texts = [output_of("--execute", "--throttle", SLOW), output_of("--verify")]
        desk.hand.unthrottle()
        desk.moved(topic, (1, 3))
        desk.moved(topic, (2, 3), 1)
        for setting, value in rates(SLOW).items():
            desk.hand.write(setting, value)
        outs.append([*texts, output_of("--verify", "--preserve-throttles"), output_of("--verify")])
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
    assert "was undone, cancelled or refused, so " in found.err
    until(lambda: desk.standing(topic) == {}, "everything is restored")


def watched(*words: str) -> dict[str, Any]:
    """The only move of one reading that has not ended."""
    ran = kquota("move", "watch", "--once", "--output", "json", *words)
    assert ran.code == 8, ran
    reading = json.loads(ran.out)
    assert not reading["ended"]
    (move,) = reading["moves"]
    return {**move, "SumReplicaLag": {one["broker"]: one["SumReplicaLag"] for one in reading["brokers"]}}


def test_kquota_watches_a_throttled_move_of_kafkas_tool(desk: Desk) -> None:
    """ZooKeeper stores the throttle and the partitions, but neither sizes nor offsets."""
    topic = desk.hand.topic({0: (1, 2), 1: (1, 2)}, size=LASTING)
    plan = desk.plan({(topic, 0): (1, 3), (topic, 1): (1, 3)})
    already_throttled(desk.hand, SLOW, {topic: ("0:1,0:2,1:1,1:2", "0:3,1:3")})
    ran = peer(desk, "--reassignment-json-file", plan, "--execute", "--throttle", SLOW)
    assert ran.code == 0, ran.out
    state = ("--state-dir", str(desk.folder / "state"))

    def begun() -> bool:
        return bool(watched(*desk.connection, *state)["copied"])

    until(begun, "bytes have arrived")
    move = watched(*desk.connection, *state)
    (to,) = move["destinations"]
    assert (move["run"], move["partitions"], move["moving"], move["done"]) == (None, 2, 2, 0)
    assert move["copied"] + move["left"] == pytest.approx(2 * LASTING, rel=0.02)
    assert move["left"] > LASTING
    assert (to["broker"], to["copies"], to["throttled"], to["throttle"]) == (3, 2, True, int(SLOW))
    assert move["SumReplicaLag"][3] > 0
    if desk.hand.servers.zookeeper:
        found = watched("--zookeeper", desk.hand.servers.zookeeper, *state)
        (to,) = found["destinations"]
        assert (found["run"], found["partitions"], found["moving"], found["done"]) == (None, 2, 2, 0)
        assert (found["copied"], found["left"], found["throughput"], found["seconds_left"]) == (None,) * 4
        assert (to["broker"], to["copies"], to["throttled"], to["throttle"]) == (3, 2, True, int(SLOW))
        assert set(found["SumReplicaLag"].values()) == {None}


@pytest.fixture(scope="module")
def slow_fetches() -> Iterator[Sandbox]:
    """Brokers on ZooKeeper whose fetches take one batch each, so that a copy without a throttle takes some seconds."""
    name = f"fetches-{os.getpid()}"
    properties = {"replica.fetch.max.bytes": "1", "replica.fetch.response.max.bytes": "1"}
    yield sandbox.up(name=name, kafka="3.9.1", brokers=2, owner_pid=os.getpid(), properties=properties)
    sandbox.down(name)


def test_kquota_watches_an_unthrottled_move_of_kafkas_tool(slow_fetches: Sandbox, tmp_path: Path) -> None:
    """Over both connections at the same time, until the move has ended."""
    hand = OtherHand(slow_fetches)
    desk = Desk(hand, ("--bootstrap-server", slow_fetches.bootstrap), tmp_path)
    topic = hand.topic({0: (1,)})
    producer = Producer({"bootstrap.servers": slow_fetches.bootstrap, "batch.num.messages": 1, "log_level": 2})
    for _ in range(SMALL_BATCHES):
        producer.produce(topic, bytes(1_000))
        producer.poll(0)
    assert producer.flush(60) == 0
    assert peer(desk, "--reassignment-json-file", desk.plan({(topic, 0): (2,)}), "--execute").code == 0
    words = ("--interval", "1s", "--output", "json", "--state-dir", str(tmp_path / "state"))
    watches = [
        started("move", "watch", option, str(at), *words)
        for option, at in (("--bootstrap-server", slow_fetches.bootstrap), ("--zookeeper", slow_fetches.zookeeper))
    ]
    brokers, zookeeper = (watch.communicate(timeout=240)[0].splitlines() for watch in watches)
    assert [watch.returncode for watch in watches] == [0, 0]
    *found, end = [json.loads(line)["moves"][0] for line in brokers]
    assert {(one["run"], one["partitions"], one["destinations"][0]["throttled"]) for one in found} == {(None, 1, False)}
    left = [one["left"] for one in (*found, end)]
    assert left == sorted(left, reverse=True)
    assert left[0] > 0
    assert {one["copied"] + one["left"] for one in found} == {end["copied"]}
    assert end["copied"] > SMALL_BATCHES * 1_000
    assert all(one["throughput"] > 0 for one in found[1:])
    assert any(one["seconds_left"] for one in found)
    assert (end["done"], end["left"]) == (1, 0)
    *found, end = [json.loads(line)["moves"][0] for line in zookeeper]
    assert {(one["moving"], one["copied"], one["throughput"]) for one in found} == {(1, None, None)}
    # The destination can be in sync a moment before the controller ends the move.
    assert {one["left"] for one in found} <= {None, 0}
    assert {one["destinations"][0]["throttled"] for one in found} == {False}
    assert (end["done"], end["left"]) == (1, 0)
    hand.close()
