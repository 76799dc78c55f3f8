"""The LogDirs contract on real brokers, and `kquota log-dirs` against Kafka's own tool."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.log_dirs import WireLogDirs
from kquota.terms import TopicPartition
from tests.cli.run import Ran, kquota, run
from tests.sizes.contract import LogDirsContract
from tests.waiting import until


class RealStage:
    """A real cluster and a real producer."""

    def __init__(self, cluster: Sandbox, wire: Wire) -> None:
        self.log_dirs = WireLogDirs(wire)
        self._wire = wire
        self.cluster = cluster
        self.topics: list[str] = []

    def topic(self, name: str, assignment: list[list[int]]) -> None:
        traffic.create(self.cluster.bootstrap, name, assignment)
        self.topics.append(name)
        wanted = {(broker, number) for number, replicas in enumerate(assignment) for broker in replicas}
        until(lambda: self._held(name) == wanted)
        # A broker may create its log before it knows the leader of the partition.
        until(lambda: WireSight(self._wire).behind({name: len(assignment)}) == 0)

    def _held(self, name: str) -> set[tuple[int, int]]:
        """(broker, partition) of each replica that has its log. Brokers create logs a moment after the topic exists."""
        found = self.log_dirs.describe(sorted(self.log_dirs.brokers()), [name])
        return {(log_dir.broker, replica.partition.partition) for log_dir in found for replica in log_dir.replicas}

    def write(self, partition: TopicPartition, messages: int, size: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 2}
        )
        for _ in range(messages):
            producer.produce(partition.topic, os.urandom(size), partition=partition.partition)
        assert producer.flush(30) == 0


@pytest.fixture
def real_stage(cluster: Sandbox) -> Iterator[RealStage]:
    with Wire(cluster.bootstrap, {}) as wire:
        stage = RealStage(cluster, wire)
        yield stage
    if stage.topics:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        for future in admin.delete_topics(stage.topics).values():
            future.result(30)


class TestAdminApi(LogDirsContract):
    @pytest.fixture
    def stage(self, real_stage: RealStage) -> RealStage:
        return real_stage


def _sorted(document: str) -> object:
    found = json.loads(document)
    for broker in found["brokers"]:
        broker["logDirs"].sort(key=lambda log_dir: log_dir["logDir"])
        for log_dir in broker["logDirs"]:
            log_dir["partitions"].sort(key=lambda partition: partition["partition"])
    return found


def test_the_document_matches_kafka(kafka_431: Sandbox) -> None:
    """Kafka prints in hash map order and kquota sorts, so both outputs are compared sorted.

    Brokers may still delete topics of previous tests, so the test uses an answer of Kafka between two equal answers of
    kquota.
    """
    at = ("--bootstrap-server", kafka_431.bootstrap, "--describe")
    asked: list[Ran] = []

    def still() -> bool:
        theirs = run(kafka_tool(kafka_431, "org.apache.kafka.tools.LogDirsCommand", *at))
        asked[:] = [kquota("log-dirs", *at), theirs, *asked[:1]]
        return asked[0] == asked[-1] and len(asked) == 3

    until(still)
    ours, theirs, _ = asked
    assert (ours.code, theirs.code, ours.err) == (0, 0, "")
    *our_words, our_document = ours.out.splitlines()
    *their_words, their_document = theirs.out.splitlines()
    assert our_words == their_words
    assert _sorted(our_document) == _sorted(their_document)
    assert list(json.loads(our_document)) == list(json.loads(their_document))
    assert kquota("log-dirs", *at, "--output", "json").out.splitlines() == [our_document]


def test_a_snapshot_is_one_line_a_replica(cluster: Sandbox, real_stage: RealStage, tmp_path: Path) -> None:
    real_stage.topic("snapped", [[1, 2], [3, 2]])
    real_stage.write(TopicPartition("snapped", 0), 3, 100)
    ran = kquota(
        *("log-dirs", "--bootstrap-server", cluster.bootstrap, "--snapshot", str(tmp_path / "h")),
        *("--topic-list", "snapped"),
    )
    assert (ran.code, ran.err) == (0, "kquota: the snapshot has 4 replicas of 3 brokers\n")
    path = Path(ran.out.strip())
    assert list((tmp_path / "h").iterdir()) == [path]
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert sorted((row["broker"], row["partition"], row["leader"], row["end_offset"]) for row in rows) == [
        (1, 0, True, 3),
        (2, 0, False, 3),
        (2, 1, False, 0),
        (3, 1, True, 0),
    ]
    assert {(row["version"], row["cluster"], row["topic"]) for row in rows} == {
        (2, real_stage.log_dirs.cluster_id, "snapped")
    }
    told = cluster.kafka != "2.8.2"
    assert all((row["volume_total"] is not None) == told for row in rows)


def test_a_broker_that_does_not_exist_is_reported(kafka_431: Sandbox) -> None:
    ran = kquota("log-dirs", "--bootstrap-server", kafka_431.bootstrap, "--describe", "--broker-list", "1,9")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "kquota: error: The given brokers do not exist from --broker-list: 9. Current existent brokers: 1,2,3\n"
    )
