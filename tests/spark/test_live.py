"""`kquota move estimate` on a live cluster: its sizes, its leaders, and its sampled write rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kquota.sandbox.cluster import Sandbox
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import Desk
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

TOPIC = "estimated"


def estimate(cluster: Sandbox, folder: Path, replicas: list[int], *more: str, topic: str = TOPIC) -> Ran:
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    words = ["--reassignment-json-file", str(folder / "plan.json"), "--throttle", "8MB/s", "--sample", "1"]
    return kquota("move", "estimate", "--bootstrap-server", cluster.bootstrap, *words, *more, "--output", "json")


@pytest.fixture(scope="module")
def ids(kafka_431: Sandbox) -> list[int]:
    """The brokers. The topic is on the first two and led by the second."""
    admin = AdminClient({"bootstrap.servers": kafka_431.bootstrap, "log_level": 2})
    ids = sorted(admin.list_topics(timeout=30).brokers)
    new = NewTopic(TOPIC, num_partitions=1, replica_assignment=[[ids[1], ids[0]]])
    admin.create_topics([new])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": kafka_431.bootstrap, "acks": "all", "log_level": 2})
    for _ in range(100):
        producer.produce(TOPIC, b"x" * 10_000)
    assert producer.flush(30) == 0
    return ids


@pytest.mark.spark
def test_sizes_leaders_and_rates_come_from_the_cluster(kafka_431: Sandbox, ids: list[int], tmp_path: Path) -> None:
    ran = estimate(kafka_431, tmp_path, [ids[1], ids[2]])
    assert ran.code == 0, ran.err
    start = f"kquota move run --bootstrap-server {kafka_431.bootstrap} {tmp_path}/plan.json --throttle 8MB/s"
    assert ran.err.splitlines() == [
        "kquota: measuring write rates for 1 s ...",
        "kquota: starting Spark ...",
        f"kquota: next: start the move: `{start}`",
    ]
    document = json.loads(ran.out)
    assert document["sizes"]["source"] == "cluster"
    assert document["kip73"]["brokers"] == len(ids)
    assert document["write_rates"]["source"] == "sample"
    assert document["bytes_to_copy"] > 1_000_000
    leader, destination = document["shares"]
    assert (leader["broker"], leader["side"], leader["keep_up"]) == (ids[1], "leader", 0)
    assert (destination["broker"], destination["side"]) == (ids[2], "destination")
    assert document["feasible"] is True
    assert document["band"]["low_seconds"] < document["expected_seconds"] < document["band"]["high_seconds"]
    assert document["enforcement"]["told"] is True
    assert document["enforcement"]["replication.quota.window.num"] == 11
    assert [(disk["broker"], disk["arriving"]) for disk in document["disk"]] == [(ids[2], document["bytes_to_copy"])]
    assert document["disk"][0]["usable"] > document["disk"][0]["left_at_worst"] > 0


@pytest.mark.spark
def test_brokers_without_a_given_rate_are_sampled(kafka_431: Sandbox, ids: list[int], tmp_path: Path) -> None:
    ran = estimate(kafka_431, tmp_path, [ids[1], ids[2]], "--bytes-in", f"{ids[0]}=1MB/s")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["write_rates"]["source"] == "bytes-in+sample"
    assert (document["feasible"], document["shares"][0]["writes"]) == (True, 0)


def test_a_dead_broker_and_an_unknown_topic_are_refused_at_once(
    kafka_431: Sandbox, ids: list[int], tmp_path: Path
) -> None:
    dead = estimate(kafka_431, tmp_path, [ids[1], 99])
    assert (dead.code, dead.out) == (1, "")
    assert dead.err.startswith("kquota: error: plan: broker 99 is dead (live brokers: ")
    unknown = estimate(kafka_431, tmp_path, [ids[0]], topic="no-such")
    assert (unknown.code, unknown.out, unknown.err) == (
        1,
        "",
        "kquota: error: plan: 1 partition has no replica on a live broker (no-such-0). Correct the plan, or "
        "repair the brokers\n",
    )


@pytest.mark.spark
def test_the_middle_of_a_move_counts_what_is_left(kafka_431: Sandbox, tmp_path: Path) -> None:
    """A copy of 60 MB under 200 kB/s: about 2 MB at once, then nothing for some seconds. The rest is left.

    The copy takes five minutes, in which even a busy machine starts Spark twice.
    """
    hand = OtherHand(kafka_431)
    desk = Desk(hand, ("--bootstrap-server", kafka_431.bootstrap), tmp_path)
    try:
        topic = hand.topic({0: (1, 2)}, size=60_000_000)
        plan = desk.plan({(topic, 0): (1, 3)})
        assert desk.run("--execute", plan, "--throttle", "200kB/s").code == 0
        until(lambda: copied(kafka_431, topic)[3] > 2_000_000, "a part is copied")
        most = missing(kafka_431, topic)
        ran = estimate(kafka_431, tmp_path, [1, 3], topic=topic)
        least = missing(kafka_431, topic)
        assert ran.code == 0, ran.err
        document = json.loads(ran.out)
        left = document["bytes_to_copy"]
        assert 0 < least <= left <= most
        assert document["running"] == {
            "partitions": 1,
            "copies": 1,
            "copies_unknown": 0,
            "bytes_copied": document["running"]["bytes_copied"],
            "bytes_left": left,
            "elsewhere": [],
            "others": 0,
        }
        assert document["running"]["bytes_copied"] + left == pytest.approx(copied(kafka_431, topic)[1], rel=0.01)
        other = estimate(kafka_431, tmp_path, [2, 3], topic=topic)
        assert f"warning: {topic}-0 is moving, but not to the replicas of the plan" in other.err
        assert json.loads(other.out)["bytes_to_copy"] <= left
        assert desk.run("--cancel", plan).code == 0
    finally:
        hand.close()


def copied(cluster: Sandbox, topic: str) -> dict[int, int]:
    """The size of the topic's replica on each broker, 0 if there is none."""
    asked = ("--broker-list", "1,2,3", "--topic-list", topic, "--output", "json")
    ran = kquota("log-dirs", "--bootstrap-server", cluster.bootstrap, "--describe", *asked)
    assert ran.code == 0, ran.err
    sizes = {1: 0, 2: 0, 3: 0}
    for broker in json.loads(ran.out)["brokers"]:
        for log_dir in broker["logDirs"]:
            sizes[broker["broker"]] += sum(replica["size"] for replica in log_dir["partitions"])
    return sizes


def missing(cluster: Sandbox, topic: str) -> int:
    sizes = copied(cluster, topic)
    return sizes[1] - sizes[3]
