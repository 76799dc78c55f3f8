"""`leader-election` on real brokers, compared with Kafka's own tool, and with a broker that died."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kquota.terms import TopicPartition
from tests.cli.kafka_tools import KafkaTools, Tools
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import Desk
from tests.stores.moves_stage import OtherHand, until

pytestmark = [pytest.mark.kafka, pytest.mark.parametrize("way", ["4.3.1 Admin API"])]

TOOL = "org.apache.kafka.tools.LeaderElectionCommand"


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def preferred(desk: Desk, topic: str, orders: dict[int, tuple[int, ...]]) -> None:
    """Gives the partitions another preferred leader. Their leaders stay."""
    plan = desk.plan({(topic, number): ids for number, ids in orders.items()})
    assert desk.run("--execute", plan).code == 0
    until(lambda: desk.run("--verify", plan).code == 0, "the new order is seen")


def kquota_on(desk: Desk) -> Callable[..., Ran]:
    return partial(kquota, "leader-election", "--bootstrap-server", desk.hand.servers.bootstrap)


def kafka_on(desk: Desk, tool: KafkaTools) -> Callable[..., Ran]:
    return partial(tool, TOOL, "--bootstrap-server", desk.hand.servers.bootstrap)


def leaders(desk: Desk, topic: str) -> list[object]:
    shown = kquota(
        "topics", "--bootstrap-server", desk.hand.servers.bootstrap, "--describe", "--topic", topic, "--output", "json"
    )
    return [partition["leader"] for partition in json.loads(shown.out)["topics"][0]["partitions"]]


def shows(desk: Desk, topic: str, expected: list[int]) -> bool:
    return leaders(desk, topic) == expected


def both(desk: Desk, tool: KafkaTools, topics: tuple[str, str], *options: str) -> list[tuple[int, str]]:
    """Exit code and stdout of kquota for one topic, and of Kafka's tool for the other, without their names."""
    found = []
    for run, topic in ((kquota_on(desk), topics[0]), (kafka_on(desk, tool), topics[1])):
        file = desk.folder / f"{topic}.json"
        file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": n} for n in (0, 1)]}))
        ran = run("--election-type", "preferred", *(word.format(topic=topic, file=file) for word in options))
        found.append((ran.code, ran.out.replace(topic, "TOPIC")))
    return found


def test_kquota_and_kafkas_tool_print_the_same(desk: Desk, kafka_tools: Tools) -> None:
    first, second = (desk.hand.topic({0: (1, 2), 1: (2, 3)}) for _ in range(2))
    for topic in (first, second):
        preferred(desk, topic, {0: (2, 1), 1: (3, 2)})
    tool = kafka_tools("4.3.1")
    one = ("--topic", "{topic}", "--partition", "0")
    for options in (one, ("--path-to-json-file", "{file}"), one):
        ours, theirs = both(desk, tool, (first, second), *options)
        assert ours == theirs
    for topic in (first, second):
        until(partial(shows, desk, topic, [2, 3]), "the preferred leaders are seen")


def test_batches_elect_every_partition_that_needs_it(desk: Desk) -> None:
    topic = desk.hand.topic({n: (1 + n % 3, 1 + (n + 1) % 3) for n in range(9)})
    preferred(desk, topic, {n: (1 + (n + 1) % 3, 1 + n % 3) for n in range(9)})
    before = leaders(desk, topic)
    listed = kquota_on(desk)("--election-type", "preferred", "--all-topic-partitions", "--dry-run")
    assert all(f"{topic}-{n}" in listed.out for n in range(9))
    assert leaders(desk, topic) == before
    ran = kquota_on(desk)("--election-type", "preferred", "--all-topic-partitions", "--batch", "4")
    assert ran.code == 0, ran.err
    assert all(f"{topic}-{n}" in ran.out for n in range(9))
    until(partial(shows, desk, topic, [1 + (n + 1) % 3 for n in range(9)]), "the preferred leaders are seen")
    again = kquota_on(desk)("--election-type", "preferred", "--all-topic-partitions", "--batch", "4")
    assert (again.code, again.out) == (0, "")


def test_an_unclean_election_gives_a_partition_a_leader_again(desk: Desk) -> None:
    name = TopicPartition(desk.hand.topic({0: (3,)}), 0)
    ran = kquota_on(desk)("--election-type", "unclean", "--topic", name.topic, "--partition", "0")
    assert (ran.code, ran.out) == (0, f"Valid replica already elected for partitions {name}\n")
