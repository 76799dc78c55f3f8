"""`leader-election` on real brokers, compared with Kafka's own tool, and with a broker that died."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kquota.terms import TopicPartition
from tests.cli.kafka_tools import KafkaTools, Tools
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import Desk
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.parametrize("way", ["4.3.1 Admin API"])]

TOOL = "org.apache.kafka.tools.LeaderElectionCommand"


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def preferred(desk: Desk, topic: str, orders: dict[int, tuple[int, ...]]) -> None:
    """Give the partitions another preferred leader. Their leaders stay."""
    plan = desk.plan({(topic, number): ids for number, ids in orders.items()})
    assert desk.run("--execute", plan).code == 0
    until(lambda: desk.run("--verify", plan).code == 0, "the new order is seen")


def kquota_on(desk: Desk) -> Callable[..., Ran]:
    return partial(kquota, "leader-election", "--bootstrap-server", desk.hand.servers.bootstrap)


def kafka_on(desk: Desk, tool: KafkaTools) -> Callable[..., Ran]:
    return partial(tool, TOOL, "--bootstrap-server", desk.hand.servers.bootstrap)


def described(desk: Desk, topic: str) -> list[dict[str, Any]]:
    shown = kquota(
        "topics", "--bootstrap-server", desk.hand.servers.bootstrap, "--describe", "--topic", topic, "--output", "json"
    )
    return list(json.loads(shown.out)["topics"][0]["partitions"])


def leaders(desk: Desk, topic: str) -> list[object]:
    return [partition["leader"] for partition in described(desk, topic)]


def shows(desk: Desk, topic: str, expected: list[int]) -> bool:
    return leaders(desk, topic) == expected


def both(desk: Desk, tool: KafkaTools, topics: tuple[str, str], *options: str) -> list[tuple[int, str]]:
    """Return the exit code and stdout of kquota for one topic, and of Kafka's tool for the other, without the topic
    names.
    """
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
    """The only in-sync replica is on a dead broker. The replica on broker 3 lacks the last records."""
    servers = desk.hand.servers
    name = TopicPartition(desk.hand.topic({0: (2, 3)}), 0)
    unclean = ("--election-type", "unclean", "--topic", name.topic, "--partition", "0")
    servers.broker(3).process.kill()
    try:
        until(lambda: in_sync(desk, name.topic) == [2], "broker 3 is out of sync")
        desk.hand.fill(name.topic, [0], 10_000)
        servers.broker(2).process.kill()
        desk.hand.start_broker(3)
        until(lambda: leaders(desk, name.topic) == [None], "the partition has no leader")
        preferred = kquota_on(desk)("--election-type", "preferred", *unclean[2:])
        assert preferred.code == 1, preferred
        ran = kquota_on(desk)(*unclean)
        assert (ran.code, ran.out) == (
            0,
            f"Successfully completed leader election (UNCLEAN) for partitions {name}\n",
        )
        assert "an unclean election can lose acknowledged messages" in ran.err
        until(lambda: (leaders(desk, name.topic), in_sync(desk, name.topic)) == ([3], [3]), "broker 3 leads")
    finally:
        for broker in (2, 3):
            desk.hand.start_broker(broker)


def in_sync(desk: Desk, topic: str) -> list[int]:
    """Return the in-sync replicas of partition 0."""
    return list(described(desk, topic)[0]["isr"])


def test_an_unclean_election_does_not_replace_a_leader(desk: Desk) -> None:
    name = TopicPartition(desk.hand.topic({0: (3,)}), 0)
    ran = kquota_on(desk)("--election-type", "unclean", "--topic", name.topic, "--partition", "0")
    assert (ran.code, ran.out) == (0, f"Valid replica already elected for partitions {name}\n")


def aborted(desk: Desk, plan: str, *options: str) -> Ran:
    """Repeat `move abort` until the partition has its previous replicas."""
    at = (*desk.connection, "--state-dir", str(desk.folder / "state"), "--reassignment-json-file", plan)
    ran: list[Ran] = []

    def back() -> bool:
        ran.append(kquota("move", "abort", *at, "--yes", *options))
        return ran[-1].code != 8

    until(back, "the replicas are back")
    return ran[-1]


@pytest.mark.parametrize("elects", [False, True], ids=["the noted command", "--elect-leaders"])
def test_after_an_undo_the_leaders_are_where_they_were(desk: Desk, elects: bool) -> None:
    topic = desk.hand.topic({0: (1, 2), 1: (1, 2)}, size=10_000)
    plan = desk.plan({(topic, n): (2, 3) for n in (0, 1)})
    assert desk.run("--execute", plan, "--throttle", "50MB/s").code == 0
    for n in (0, 1):
        desk.moved(topic, (2, 3), n)
    until(partial(shows, desk, topic, [2, 2]), "broker 1 no longer leads")
    ran = aborted(desk, plan, *(["--elect-leaders"] if elects else []))
    assert ran.code == 0, ran
    assert [desk.hand.replicas(TopicPartition(topic, n)) for n in (0, 1)] == [[1, 2], [1, 2]]
    if elects:
        assert ("Preferred leaders elected: 2" in ran.out, "not led by" in ran.err) == (True, False)
    else:
        assert leaders(desk, topic) == [2, 2]
        note = "note: 2 partitions are not led by their preferred leaders"
        noted = re.search(rf"{note} .* `kquota (leader-election [^`]*)`", ran.err)
        assert noted is not None, ran.err
        assert kquota(*shlex.split(noted[1])).code == 0
    until(partial(shows, desk, topic, [1, 1]), "the leaders are those from before")
