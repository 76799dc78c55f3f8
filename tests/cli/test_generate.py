"""`reassign-partitions --generate` on real brokers, compared with Kafka's own tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kquota.terms import TopicPartition
from tests.cli.reassign_command import ReassignCommand, ReassignCommands
from tests.cli.run import Ran, kquota_here
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

DEPRECATED = "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka.\n"
TITLES = ["Current partition replica assignment", None, "", "Proposed partition reassignment configuration", None, ""]


@dataclass(frozen=True, slots=True)
class Desk:
    """One operator at one cluster, with both tools."""

    hand: OtherHand
    connection: tuple[str, str]
    tool: ReassignCommand
    folder: Path

    def topics(self, *names: str) -> list[str]:
        path = self.folder / "topics.json"
        path.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}))
        return ["--generate", "--topics-to-move-json-file", str(path)]

    def moved(self, topic: str, partition: int, replicas: list[int]) -> None:
        name = TopicPartition(topic, partition)
        until(lambda: self.hand.replicas(name) == replicas, f"{name} is on {replicas}")

    def ours(self, *arguments: str) -> Ran:
        return kquota_here("reassign-partitions", *self.connection, *arguments)

    def theirs(self, *arguments: str) -> Ran:
        return self.tool(*self.connection, *arguments)


@pytest.fixture(params=["4.3.1 Admin API", "2.8.2 ZooKeeper"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], reassign_commands: ReassignCommands, tmp_path: Path) -> Desk:
    return Desk(hand, connection, reassign_commands(str(hand.servers.kafka)), tmp_path)


def plans(ran: Ran) -> tuple[Any, Any]:
    """Return the current and the proposed assignment. The text around them is fixed."""
    assert ran.code == 0, ran
    lines = ran.out.split("\n")
    assert [title and line for title, line in zip(TITLES, lines, strict=True)] == TITLES
    return json.loads(lines[1]), json.loads(lines[4])


def test_the_output_matches_kafka_and_kafkas_tool_executes_it(desk: Desk) -> None:
    """Everything except the proposal matches Kafka exactly, including the log dirs of current replicas.

    Kafka's proposal is random.
    """
    topic = desk.hand.topic({0: (1, 2), 1: (2, 3), 2: (3, 1)}, size=10_000)
    asked = [*desk.topics(topic), "--broker-list", "3,1"]
    theirs, ran = desk.theirs(*asked), desk.ours(*asked, "--seed", "7")
    _, proposed = plans(ran)
    assert ran.out.split("\n")[:4] == theirs.out.removeprefix(DEPRECATED).split("\n")[:4]
    _, random = plans(Ran(theirs.code, theirs.out.removeprefix(DEPRECATED), theirs.err))
    assert [list(entry) for entry in proposed["partitions"]] == [list(entry) for entry in random["partitions"]]
    assert {broker for entry in proposed["partitions"] for broker in entry["replicas"]} == {1, 3}
    assert "MoveRatio 0." in ran.err
    assert desk.ours(*asked, "--seed", "7").out == ran.out

    plan = desk.folder / "plan.json"
    plan.write_text(ran.out.split("\n")[4])
    started = desk.theirs("--execute", "--reassignment-json-file", str(plan))
    assert started.code == 0, started
    for entry in proposed["partitions"]:
        desk.moved(topic, entry["partition"], entry["replicas"])


def test_the_document_and_the_warnings(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1,), 1: (2,), 2: (2,), 3: (2,)}, size=10_000)
    plan = desk.folder / "plan.json"
    more = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1, 2]}]}
    plan.write_text(json.dumps(more))
    assert desk.theirs("--execute", "--reassignment-json-file", str(plan)).code == 0
    desk.moved(topic, 0, [1, 2])
    until(lambda: topic not in desk.ours("--list").out, "the copy is complete")
    ran = desk.ours(*desk.topics(topic), "--broker-list", "1,3", "--output", "json")
    assert ran.code == 0, ran
    found = json.loads(ran.out)
    assert set(found) == {
        *("version", "current", "proposed", "move_ratio", "partitions_to_be_moved", "total_partition_count"),
        *("seed", "warnings"),
    }
    assert found["partitions_to_be_moved"] == 4
    assert found["move_ratio"] == 4 / found["total_partition_count"]
    assert [entry["replicas"] for entry in found["current"]["partitions"]] == [[1, 2], [2], [2], [2]]
    assert all(set(entry["replicas"]) == {1, 3} for entry in found["proposed"]["partitions"])
    mixed, nearly_all = found["warnings"]
    assert mixed.startswith(
        f"topic {topic} has partitions with different numbers of replicas (3 partitions with 1, 1 partition with 2)"
    )
    assert nearly_all.startswith("4 of 4 partitions would be copied")
    assert f"kquota: warning: {mixed}\nkquota: warning: {nearly_all}\n" in ran.err
    again = desk.ours(*desk.topics(topic), "--broker-list", "1,3", "--seed", str(found["seed"]))
    assert plans(again) == (found["current"], found["proposed"])


def test_topics_and_brokers_that_do_not_exist(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=10_000)
    cases = {
        "Topic no-such-topic not found": ("no-such-topic", "1,2"),
        "--broker-list: brokers 8,9 are dead (live brokers: 1,2,3). Start them or leave them out": (topic, "1,9,2,8"),
        f"topic {topic}: Replication factor: 2 larger than available brokers: 1": (topic, "1"),
    }
    for words, (name, brokers) in cases.items():
        ran = desk.ours(*desk.topics(name), "--broker-list", brokers)
        assert (ran.code, ran.out) == (1, ""), ran
        assert words in ran.err
