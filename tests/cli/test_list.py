"""`reassign-partitions --list` against Kafka's own tool: the same moves in the same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.reassign_command import ReassignCommand, ReassignCommands, already_throttled
from tests.cli.run import kquota, kquota_here
from tests.cli.test_reassign_partitions import LASTING
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

NONE = "No partition reassignments found.\n"


@pytest.fixture(params=["kafka_431", "kafka_282"], ids=["4.3.1", "2.8.2"])
def hand(request: pytest.FixtureRequest) -> Iterator[OtherHand]:
    servers: Sandbox = request.getfixturevalue(request.param)
    found = OtherHand(servers)
    yield found
    found.close()


def connections(servers: Sandbox) -> list[tuple[str, str]]:
    on_zookeeper = [("--zookeeper", servers.zookeeper)] if servers.zookeeper else []
    return [("--bootstrap-server", servers.bootstrap), *on_zookeeper]


def start(hand: OtherHand, tool: ReassignCommand, plan: Path, entries: dict[tuple[str, int], list[int]]) -> None:
    """Start moves with Kafka's own tool, with a throttle that keeps them in progress.

    Moves that already run continue.
    """
    partitions = [{"topic": topic, "partition": n, "replicas": replicas} for (topic, n), replicas in entries.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    already_throttled(hand, "1000", {topic: ("*", "*") for topic, _ in entries})
    asked = ("--execute", "--additional", "--throttle", "1000", "--reassignment-json-file", str(plan))
    ran = tool("--bootstrap-server", hand.servers.bootstrap, *asked)
    assert ran.code == 0, ran


def test_list_of_no_move_one_move_and_many_moves(
    hand: OtherHand, reassign_commands: ReassignCommands, tmp_path: Path
) -> None:
    tool = reassign_commands(str(hand.servers.kafka))

    def agreed() -> str:
        """Return the output of Kafka's tool, which must also be the output of kquota over every connection."""
        theirs = tool("--bootstrap-server", hand.servers.bootstrap, "--list")
        for connection in connections(hand.servers):
            ran = kquota_here("reassign-partitions", *connection, "--list")
            assert (ran.code, ran.out, ran.err) == (0, theirs.out, ""), connection
        return theirs.out

    assert agreed() == NONE
    b, a = (hand.topic({0: (1, 2), 1: (2, 1), 2: (3, 1)}, size=LASTING) for _ in range(2))
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    start(hand, tool, one, {(b, 1): [2, 3]})
    assert agreed() == f"Current partition reassignments:\n{b}-1: replicas: 2,3,1. adding: 3. removing: 1.\n"
    start(hand, tool, many, {(a, 0): [1, 2, 3], (a, 2): [1, 2], (b, 0): [3, 2]})
    lines = agreed().splitlines()
    assert lines[0] == "Current partition reassignments:"
    assert [line.partition(":")[0] for line in lines[1:]] == sorted([f"{a}-0", f"{a}-2", f"{b}-0", f"{b}-1"])
    assert f"{a}-0: replicas: 1,2,3. adding: 3." in lines

    where = ("reassign-partitions", *connections(hand.servers)[-1], "--list", "--output")
    found = json.loads(kquota(*where, "json").out)
    assert found["version"] == 1
    entry = {"topic": b, "partition": 1, "replicas": [2, 3, 1], "adding": [3], "removing": [1]}
    assert entry in found["reassignments"]
    header, *rows = kquota(*where, "tsv").out.splitlines()
    assert header.split("\t") == ["topic", "partition", "replicas", "adding", "removing"]
    assert [a, "0", "1,2,3", "3", ""] in [row.split("\t") for row in rows]
    for plan in (one, many):
        tool("--bootstrap-server", hand.servers.bootstrap, "--cancel", "--reassignment-json-file", str(plan))
    until(lambda: kquota_here(*where[:-1]).out == NONE, "every move has ended")
    assert agreed() == NONE
