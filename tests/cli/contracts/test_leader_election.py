"""Contracts of `leader-election`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.terms import TopicPartition
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, written
from tests.cli.contracts.transcript import Transcript

pytestmark = pytest.mark.unit

SOME_IN_PLACE = (
    '{"partitions":[{"topic":"payments","partition":0},{"topic":"orders","partition":0},'
    '{"topic":"orders","partition":1}]}'
)
PARTITIONS = '{"partitions":[{"topic":"orders","partition":0},{"topic":"orders","partition":1}]}'


def test_elections(house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house.stand_in(monkeypatch)
    listed = written(tmp_path, "partitions.json", PARTITIONS)
    some_in_place = written(tmp_path, "some-in-place.json", SOME_IN_PLACE)
    for command in (
        "--all-topic-partitions --dry-run",
        "--topic orders --partition 0 --dry-run",
        "--topic payments --partition 0 --dry-run",
        f"--path-to-json-file {some_in_place} --batch 1 --dry-run",
        f"--path-to-json-file {listed}",
        "--all-topic-partitions",
        "--all-topic-partitions --batch 2",
        "--topic orders --partition 9",
        "--election-type UNCLEAN --all-topic-partitions --dry-run",
        "--election-type UNCLEAN --all-topic-partitions",
    ):
        for form in ("text", "json"):
            seed(house)
            kind = "" if "--election-type" in command else "--election-type preferred "
            session.kquota(f"leader-election {BROKER} {kind}{command} --output {form}")
    session.note("the cluster gets worse after the first batch")
    seed(house)
    house.elections.troubled = {1: TopicPartition("payments", 0)}
    session.kquota(f"leader-election {BROKER} --election-type preferred --all-topic-partitions --batch 1 --settle 1s")
    session.note(
        "the older name of --command-config, which Kafka's tool reports as deprecated on stdout (4.2 and newer)"
    )
    older = f"--admin.config {written(tmp_path, 'admin.properties', 'request.timeout.ms=55000')}"
    for command in (older, f"{older} --command-config {tmp_path / 'admin.properties'}"):
        seed(house)
        session.kquota(f"leader-election {BROKER} --election-type preferred --topic orders --partition 0 {command}")
    session.note("usage")
    for command in (
        "",
        "--election-type preferred",
        "--election-type best --all-topic-partitions",
        "--election-type preferred --topic orders",
        "--election-type preferred --partition 1 --all-topic-partitions",
        "--election-type preferred --topic orders --partition 0 --all-topic-partitions",
        "--election-type preferred --all-topic-partitions --pause 1s",
        "--election-type preferred --all-topic-partitions --batch 0",
        "--election-type preferred --path-to-json-file /nowhere.json",
    ):
        session.kquota(f"leader-election {BROKER} {command}")
    session.must_be("contract-leader-election")


def seed(house: InMemory) -> None:
    """Two partitions with another leader than the preferred one, one without a leader, and one that needs nothing."""
    house.elections.held.clear()
    house.elections.requests.clear()
    house.elections.troubled = {}
    for number, replicas in enumerate([(1, 2), (2, 3)]):
        house.elections.add(TopicPartition("orders", number), *replicas, leader=replicas[1])
    house.elections.add(TopicPartition("payments", 0), 3, 1, leader=3)
    house.elections.add(TopicPartition("refunds", 0), 1, 3, leader=None)
