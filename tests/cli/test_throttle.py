"""`kquota throttle` as a process on real brokers. Another client sets the throttles and checks them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

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
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))


@dataclass(frozen=True, slots=True)
class Desk:
    """One operator at one cluster, with their own state folder."""

    hand: OtherHand
    connection: tuple[str, str]
    folder: Path

    def throttle(self, command: str, *more: str) -> Ran:
        return kquota("throttle", command, *self.connection, "--state-dir", str(self.folder), *more)

    def told(self, command: str, *more: str) -> tuple[int, Any]:
        ran = self.throttle(command, "--output", "json", *more)
        assert ran.out, ran.err
        return ran.code, json.loads(ran.out)

    def rules(self) -> tuple[int, set[str]]:
        code, document = self.told("doctor")
        return code, {one["rule"] for one in document["findings"]}

    def let_pass(self, hours: int) -> None:
        """Make everything that doctor remembers older by this time."""
        (path,) = self.folder.glob("*/leftovers.json")
        document = json.loads(path.read_text())
        assert document["leftovers"]
        for item in document["leftovers"]:
            seen = datetime.fromisoformat(item["first_seen"])
            item["first_seen"] = (seen - timedelta(hours=hours)).isoformat()
        path.write_text(json.dumps(document))

    def standing(self, *topics: str) -> dict[Setting, str]:
        lists = [self.hand.lists(topic) for topic in topics]
        return {**{s: value for found in lists for s, value in found.items()}, **self.hand.rates()}


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def misplaced(hand: OtherHand, change: AlterConfigOpType) -> None:
    """A list on broker 2, as in KIP-73's own text.

    Its value is never reported, so no test can wait until it is readable.
    """
    entry = ConfigEntry(LEADER_REPLICAS, "0:1", incremental_operation=change)
    resource = ConfigResource(ResourceType.BROKER, "2", incremental_configs=[entry])
    hand.admin.incremental_alter_configs([resource])[resource].result(30)


def test_doctor_removes_leftovers_and_nothing_else(desk: Desk) -> None:
    topic, ours = desk.hand.topic({0: (1, 2), 1: (2, 3)}, size=10_000), desk.hand.topic({0: (3,)}, size=10_000)
    leaders, followers = Setting.of_topic(topic, LEADER_REPLICAS), Setting.of_topic(topic, FOLLOWER_REPLICAS)
    retention = Setting.of_topic(topic, "retention.ms")
    desk.hand.write(retention, "123456789")
    assert desk.throttle("set", "--topic", ours, "--broker", "3", "--throttle", "5MB/s", "--sample", "0").code == 0
    held = {
        Setting.of_topic(ours, LEADER_REPLICAS): "*",
        Setting.of_topic(ours, FOLLOWER_REPLICAS): "*",
        Setting.of_broker(THREE, LEADER_RATE): "5000000",
        Setting.of_broker(THREE, FOLLOWER_RATE): "5000000",
    }
    # On ZooKeeper the brokers, which the other client asks, see the change later.
    until(lambda: desk.standing(ours) == held, "all four values are set")

    desk.hand.write(leaders, "0:1,0:2,7:7")
    desk.hand.write(followers, "0:2")
    desk.hand.write(Setting.of_broker(ONE, LEADER_RATE), "10000000")
    code, shown = desk.told("show", "--sample", "0")
    assert code == 0
    (run,) = shown["runs"]
    assert (run["purpose"], run["rate"]) == ("throttle", 5_000_000)
    rates = {one["broker"]: one["rates"] for one in shown["brokers"]}
    assert rates[3][LEADER_RATE]["runs"] == [run["run"]]
    assert rates[1][LEADER_RATE] == {
        "value": "10000000",
        "source": "DYNAMIC_BROKER_CONFIG",
        "in_force": True,
        "runs": [],
    }
    assert desk.rules() == (
        8,
        {
            *("lists-without-rates", "stale-entry", "caught-up-replica", "list-without-move"),
            "rates-differ-between-sides",
        },
    )
    before = desk.standing(topic, ours)
    assert desk.throttle("doctor", "--fix", "--yes", "--older-than", "1h").code == 8
    assert desk.standing(topic, ours) == before
    desk.let_pass(hours=2)
    fixed = desk.throttle("doctor", "--fix", "--yes", "--older-than", "1h")
    assert (fixed.code, fixed.out) == (0, ""), fixed.err
    until(lambda: desk.standing(topic, ours) == held, "leftovers are removed, values of a run are not")
    assert desk.hand.value(retention) == "123456789"
    assert desk.throttle("clear").code == 0
    until(lambda: desk.standing(topic, ours) == {}, "everything is restored")


@pytest.mark.parametrize("way", ["4.3.1 Admin API", "3.9.1 ZooKeeper"])
def test_a_list_on_a_broker_is_reported(desk: Desk) -> None:
    misplaced(desk.hand, AlterConfigOpType.SET)
    until(lambda: "list-on-broker" in desk.rules()[1], "doctor reports the list on a broker")
    misplaced(desk.hand, AlterConfigOpType.DELETE)
    until(lambda: desk.rules() == (0, set()), "the list on a broker is removed")


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_clear_restores_the_previous_throttle(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=10_000)
    prior = {Setting.of_topic(topic, LEADER_REPLICAS): "7:7,0:1", Setting.of_broker(ONE, LEADER_RATE): "123456789"}
    for setting, value in prior.items():
        desk.hand.write(setting, value)
    asked = ("--topic", topic, "--throttle", "5MB/s", "--sample", "0")
    dry = desk.throttle("set", *asked, "--dry-run")
    assert f"broker 1 {LEADER_RATE}: 123456789 B/s -> 5MB/s\n" in dry.out
    assert desk.standing(topic) == prior
    for _ in range(2):
        assert desk.throttle("set", *asked).code == 0
    (run,) = desk.told("show", "--sample", "0")[1]["runs"]
    assert desk.throttle("set", "--run", run["run"], "--throttle", "7MB/s").code == 0
    until(lambda: desk.hand.value(Setting.of_broker(ONE, LEADER_RATE)) == "7000000", "the rate has changed")
    assert desk.throttle("clear").code == 0
    until(lambda: desk.standing(topic) == prior, "all values are as before")
    assert desk.throttle("clear", "--all", "--yes").code == 0
    until(lambda: desk.standing(topic) == {}, "no throttle is set")


REFUSED: dict[str, tuple[tuple[str, ...], int, str]] = {
    "no such topic": (("--topic", "no-such", "--throttle", "1MB/s"), 1, "topic no-such does not exist"),
    "no such broker": (("--all-topics", "--broker", "9", "--throttle", "1MB/s"), 1, "broker 9 does not exist"),
    "no such returning broker": (("--recovering", "9", "--throttle", "1MB/s"), 1, "broker 9 does not exist"),
    "no rate": (("--all-topics", "--all-brokers", "--throttle", "0"), 2, "must be at least 1 byte per second"),
    "no such run": (("--run", "x", "--throttle", "1MB/s"), 1, "run x: no open run with this id is recorded here"),
    "nothing named": (("--throttle", "1MB/s"), 2, "give exactly one target"),
    "two things named": (("--recovering", "1", "--all-topics", "--throttle", "1MB/s"), 2, "give exactly one target"),
    "no throttle": (("--recovering", "1"), 2, "the rate is missing. "),
}


WITHOUT_TERMINAL = {
    "fix": (("doctor", "--fix"), "confirmation needs a terminal. Nothing was written. Give --yes"),
    "clear all": (("clear", "--all"), "confirmation needs a terminal. Nothing was written. Give --yes"),
    "yes without fix": (("doctor", "--yes"), "--yes needs --fix"),
    "an age without fix": (("doctor", "--older-than", "1h"), "--older-than needs --fix"),
    "all of a broker that is gone": (("clear", "--all", "--gone", "9"), "--gone cannot be combined with --all"),
    "no broker": (
        ("clear", "--gone", "none"),
        "--gone 'none': not a list of broker ids. Write broker ids joined by commas",
    ),
}


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_invalid_throttles_are_refused_before_any_write(desk: Desk) -> None:
    for arguments, code, words in REFUSED.values():
        ran = desk.throttle("set", *arguments)
        assert (ran.code, ran.out) == (code, ""), ran.err
        assert words in ran.err
    for command, words in WITHOUT_TERMINAL.values():
        ran = desk.throttle(*command)
        assert (ran.code, ran.out) == (2, ""), ran.err
        assert words in ran.err
    assert desk.hand.rates() == {}


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
def test_a_returning_broker_is_throttled_until_it_is_in_sync(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 3), 1: (2, 1)}, size=10_000)
    asked = ("--recovering", "3", "--throttle", "50kB/s")
    desk.hand.servers.broker(3).process.stop()
    try:
        desk.hand.fill(topic, [0], 40_000_000)
        code, away = desk.told("set", *asked, "--once")
        assert (code, away["unlimited"], away["done"]) == (8, [3], False)
        assert {"topic": topic, "partition": 0} in away["behind"]
    finally:
        desk.hand.start_broker(3)
    code, back = desk.told("set", *asked, "--once")
    assert (code, back["unlimited"]) == (8, [])
    lists = {Setting.of_topic(topic, LEADER_REPLICAS): "0:1", Setting.of_topic(topic, FOLLOWER_REPLICAS): "0:3"}
    assert desk.hand.lists(topic) == lists
    assert desk.hand.value(Setting.of_broker(THREE, FOLLOWER_RATE)) == "50000"
    assert desk.throttle("set", "--run", back["run"], "--throttle", "400kB/s").code == 0

    def flows() -> bool:
        """Return True if a sample shows progress. Some samples do not, because a throttled fetch pauses after 1 MB."""
        _, shown = desk.told("show", "--sample", "3s", "--topic", topic)
        told = {one["broker"]: one for one in shown["brokers"]}
        assert told[3]["SumReplicaLag"] > 0
        return bool(told[3]["FollowerReplicationThrottledRate"] and told[1]["LeaderReplicationThrottledRate"])

    until(flows, "copies make progress")

    faster = desk.throttle("set", "--recovering", "3", "--throttle", "50MB/s")
    assert faster.code == 0, faster.err
    assert "in sync for all its partitions" in faster.err
    until(lambda: desk.standing(topic) == {}, "no value of the move is left")
    assert desk.told("set", *asked, "--once")[0] == 0


@pytest.mark.parametrize("way", ["3.9.1 Admin API"])
def test_a_broker_that_never_returns_can_be_released(desk: Desk) -> None:
    """A throttle's run and a move's run wait for their values on it. On KRaft, the controllers would accept them.

    A live broker is not released, not even by a dry run.
    """
    rate = Setting.of_broker(THREE, LEADER_RATE)
    topic = desk.hand.topic({0: (1, 2), 1: (1, 3)}, size=2_000_000)
    plan = desk.folder / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1, 3]}]}))
    moved = ("--reassignment-json-file", str(plan), "--state-dir", str(desk.folder))
    move = ("move", "resume", *desk.connection, "--state-dir", str(desk.folder))
    assert desk.throttle("set", "--topic", topic, "--broker", "3", "--throttle", "5MB/s", "--sample", "0").code == 0
    status = kquota("move", "status", *desk.connection, "--state-dir", str(desk.folder))
    assert (status.code, status.err.count("\n")) == (0, 3)
    assert "note: kquota cannot see runs of other hosts: this cluster has no shared record" in status.err
    assert "1 run without a move holds a throttle (" in status.err
    ran = kquota("reassign-partitions", *desk.connection, "--execute", "--throttle", "3MB/s", "--force", *moved)
    assert ran.code == 0, ran.err
    until(lambda: desk.hand.replicas(TopicPartition(topic, 0)) == [1, 3], "the partition is moved")
    for alive in (desk.throttle("clear", "--gone", "3"), kquota(*move, "--gone", "2,3")):
        assert (alive.code, alive.out) == (1, "")
        assert "is alive, so its throttle can be restored. Nothing was written" in alive.err
    desk.hand.servers.broker(3).process.stop()
    try:
        until(lambda: kquota(*move).code == 8, "the move waits for its rate")
        assert desk.throttle("clear").code == 8
        for dry in (kquota(*move, "--gone", "3", "--dry-run"), desk.throttle("clear", "--gone", "3", "--dry-run")):
            assert (dry.code, "kquota does not restore broker 3 leader.replication.throttled.rate" in dry.err) == (
                0,
                True,
            ), dry.err
        assert kquota(*move).code == desk.throttle("clear").code == 8
        for done in (kquota(*move, "--gone", "3"), desk.throttle("clear", "--gone", "3")):
            assert (done.code, f"kquota does not restore {rate} of run" in done.err) == (0, True), done.err
        assert "no run is open" in kquota("move", "status", *desk.connection, "--state-dir", str(desk.folder)).err
        assert desk.throttle("clear", "--gone", "3").code == 0
    finally:
        desk.hand.start_broker(3)
    assert set(desk.standing(topic)) == {rate, Setting.of_broker(THREE, FOLLOWER_RATE)}
    assert desk.throttle("doctor", "--fix", "--yes").code == 0
    until(lambda: desk.standing(topic) == {}, "doctor removes the rate of the returned broker")
