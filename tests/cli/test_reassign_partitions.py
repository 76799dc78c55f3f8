"""Throttled moves from end to end: kquota as a process, real brokers, and another client that checks the configs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kquota.settings.resource import Setting
from kquota.terms import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    BrokerId,
    TopicPartition,
)
from tests.cli.run import Ran, kquota
from tests.servers import WAYS
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

SLOW, FAST = "20000", "50MB/s"
LASTING = 16_000_000
"""Bytes of a partition for which a throttled move needs almost three minutes, so that it is still running when a test
reads it, even on a busy machine.

A fetch takes 1 MB at once, and the next one starts after the 11 s of the quota's window, even at a low rate.
"""
ON_282 = [way for way in WAYS if way.startswith("2.8.2")]


@dataclass(frozen=True, slots=True)
class Desk:
    """One operator at one cluster, with their own state folder."""

    hand: OtherHand
    connection: tuple[str, str]
    folder: Path

    def plan(self, targets: Mapping[tuple[str, int], Sequence[int]]) -> str:
        entries = [{"topic": t, "partition": n, "replicas": list(r)} for (t, n), r in targets.items()]
        return self.saved({"version": 1, "partitions": entries})

    def saved(self, document: object) -> str:
        path = self.folder / f"plan-{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps(document))
        return str(path)

    def run(self, action: str, plan: str, *more: str) -> Ran:
        where = (*self.connection, "--state-dir", str(self.folder / "state"), "--reassignment-json-file", plan)
        return kquota("reassign-partitions", *where, action, *more)

    def standing(self, topic: str) -> dict[Setting, str]:
        return {**self.hand.lists(topic), **self.hand.rates()}

    def moved(self, topic: str, target: Sequence[int], partition: int = 0) -> None:
        self.hand.arrived({TopicPartition(topic, partition): target})


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def rates(value: str) -> dict[Setting, str]:
    return {Setting.of_broker(BrokerId(b), key): value for b in (1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)}


def test_a_throttled_move_restores_each_value(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    leaders, followers = Setting.of_topic(topic, LEADER_REPLICAS), Setting.of_topic(topic, FOLLOWER_REPLICAS)
    prior = {leaders: "7:7,0:1", Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    plan = desk.plan({(topic, 0): (1, 3)})

    first = desk.run("--execute", plan, "--throttle", SLOW)
    rollback = (
        f'{{"version":1,"partitions":[{{"topic":"{topic}","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}}]}}'
    )
    assert (first.code, first.out) == (
        0,
        f"Current partition replica assignment\n\n{rollback}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
        "removed.\n"
        "The inter-broker throttle limit was set to 20000 B/s\n"
        f"Successfully started partition reassignment for {topic}-0\n",
    ), first.err
    assert "throttle: 20000 bytes per second (20 kB/s)" in first.err
    assert "If a unit is missing, write 20000kB/s" in first.err
    throttled = {leaders: "7:7,0:1,0:2", followers: "0:3", **rates("20000")}
    until(lambda: desk.standing(topic) == throttled, "the throttle is set")

    moving = desk.run("--verify", plan)
    assert (moving.code, moving.out) == (
        8,
        f"Status of partition reassignment:\nReassignment of partition {topic}-0 is still in progress.\n\n",
    )
    again = desk.run("--execute", plan, "--throttle", SLOW)
    assert again.code == 0, again.err
    assert "Successfully started" not in again.out
    assert desk.standing(topic) == throttled

    assert desk.run("--execute", plan, "--throttle", FAST).code == 0
    desk.moved(topic, (1, 3))
    done = desk.run("--verify", plan)
    assert (done.code, done.out) == (
        0,
        f"Status of partition reassignment:\nReassignment of partition {topic}-0 is completed.\n\n"
        f"Clearing broker-level throttles on brokers 1,2,3\nClearing topic-level throttles on topic {topic}\n",
    ), done.err
    until(lambda: desk.standing(topic) == prior, "everything is restored")
    for action in ("--verify", "--execute"):
        twice = desk.run(action, plan)
        assert twice.code == 0, twice.err
        assert desk.standing(topic) == prior


@pytest.mark.parametrize("way", ["4.3.1 Admin API", "3.9.1 ZooKeeper"])
def test_execute_waits_until_the_move_has_ended(desk: Desk) -> None:
    """It prints the output of --execute, the lines of `move watch`, and the output of --verify."""
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING // 2)
    prior = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    ran = desk.run("--execute", desk.plan({(topic, 0): (1, 3)}), "--throttle", "300kB/s", "--force", "--wait")
    assert ran.code == 0, ran
    assert desk.hand.replicas(TopicPartition(topic, 0)) == [1, 3]
    until(lambda: desk.standing(topic) == prior, "everything is restored")
    status = kquota("move", "status", *desk.connection, "--state-dir", str(desk.folder / "state"))
    assert (status.code, "no run is open" in status.err) == (0, True), status
    before, _, after = ran.out.partition(f"Successfully started partition reassignment for {topic}-0\n")
    assert before.startswith("Current partition replica assignment\n")
    watched, _, verified = after.partition("Status of partition reassignment:\n")
    assert verified.startswith(f"Reassignment of partition {topic}-0 is completed.\n\nClearing broker-level throttles")
    *lines, last = watched.splitlines()
    assert last.endswith(": 1 of 1 partition done")
    copies = [line.partition(" to broker 3: 0 of 1 copy done, ")[2] for line in lines if " to broker 3: " in line]
    assert len(copies) > 2
    assert all(", throttle 300 kB/s, SumReplicaLag " in line for line in copies)
    assert ["bytes left unknown" in line for line in copies] == [desk.connection[0] == "--zookeeper"] * len(copies)


def test_both_documents(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1,)}, size=10_000)
    plan = desk.plan({(topic, 0): (2,)})
    started = json.loads(desk.run("--execute", plan, "--replication-quota", "10MB/s", "--output", "json").out)
    partition = {"topic": topic, "partition": 0}
    assert (started["version"], started["throttle"], started["started"]) == (1, 10_000_000, [partition])
    assert started["rollback"]["partitions"][0]["replicas"] == [1]
    assert Path(started["record"]).is_file()
    desk.moved(topic, (2,))
    found = json.loads(desk.run("--verify", plan, "--output", "json").out)
    assert (found["version"], found["verdict"], found["pending"]) == (1, "done", [])
    assert found["partitions"] == [{**partition, "status": "done", "replicas": [2], "target": [2]}]
    assert {"kind": "broker", "name": "1", "key": LEADER_RATE, "from": "10000000", "to": None} in found["given_back"]
    until(lambda: desk.standing(topic) == {}, "everything is restored")


@pytest.mark.parametrize("way", ON_282)
def test_the_throttle_is_in_force(desk: Desk) -> None:
    """A list that begins with a comma throttles nothing on 2.8: everything would be copied in a second.

    Brokers keep the average of 11 s below the rate (11 samples of 1 s), so a move may begin with a burst of that size.
    """
    size, rate, window = 24_000_000, 1_500_000, 11
    topic = desk.hand.topic({0: (1, 2)}, size=size)
    plan = desk.plan({(topic, 0): (1, 3)})
    began = time.monotonic()
    assert desk.run("--execute", plan, "--throttle", str(rate)).code == 0
    desk.moved(topic, (1, 3))
    assert time.monotonic() - began >= size / rate - window
    assert desk.run("--verify", plan).code == 0
    until(lambda: desk.standing(topic) == {}, "everything is restored")


@pytest.mark.parametrize("way", ["2.8.2 Admin API"])
def test_a_broker_restarts_while_the_throttle_is_set(desk: Desk) -> None:
    """The list that an APPEND leaves below 3.4 prevents brokers from starting."""
    topic = desk.hand.topic({0: (1, 2)}, size=3_000_000)
    plan = desk.plan({(topic, 0): (1, 3)})
    assert desk.run("--execute", plan, "--throttle", SLOW).code == 0
    assert desk.hand.lists(topic)
    desk.hand.restart_broker(2)
    assert desk.run("--execute", plan, "--throttle", FAST).code == 0
    desk.moved(topic, (1, 3))
    assert desk.run("--verify", plan).code == 0
    until(lambda: desk.standing(topic) == {}, "everything is restored")
