"""The inputs of `move estimate` in the middle of a move: what Spark reads, and what the new replicas still miss."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kquota.cli.connection import Connection
from kquota.cli.engine_options import SparkOptions
from kquota.cli.move.estimate.command import EstimateOptions
from kquota.cli.move.estimate.inputs import Inputs, asked, gathered
from kquota.errors import Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.running_copies import RunningCopy
from kquota.settings.resource import BROKERS, Resource
from kquota.terms import SKIPS_TIERED, TopicPartition
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import ONE, THREE, TWO

pytestmark = pytest.mark.unit
ORDERS = TopicPartition("orders", 0)
PLAN = Plan(targets={ORDERS: (ONE, THREE)})
RATES = [f"{broker}=1MB/s" for broker in (1, 2, 3)]


def inputs(house: InMemory, folder: Path) -> Inputs:
    connection = Connection(bootstrap_server="b1:9092")
    options = EstimateOptions(
        connection=connection, reassignment_json_file=Path("plan.json"), bytes_in=RATES, spark=SparkOptions()
    )
    return gathered(asked(options), connection, PLAN, folder)


def rows(folder: Path) -> set[tuple[str, int, int]]:
    (path,) = (folder / "live").glob("*.jsonl.gz")
    with gzip.open(path, "rt") as file:
        return {(row["topic"], row["partition"], row["broker"]) for row in map(json.loads, file)}


SKIPPING: dict[str, tuple[dict[int, str], float, str]] = {
    # the brokers' settings: the share of a tiered replica that a new one copies, and a note.
    "every broker skips what remote storage has": ({1: "true", 2: "true", 3: "true"}, 0.5, ""),
    "one broker does": (
        {1: "true", 2: "false", 3: "false"},
        1.0,
        f"kquota: note: {SKIPS_TIERED} is set on 1 of 3 brokers. New replicas of tiered topics copy less there, "
        "so bytes and time are upper bounds\n",
    ),
    "no broker does": ({1: "false", 2: "false", 3: "false"}, 1.0, ""),
}


@pytest.mark.parametrize(("brokers", "share", "note"), SKIPPING.values(), ids=SKIPPING)
def test_bytes_that_a_new_replica_of_a_tiered_topic_copies(
    house: InMemory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    brokers: dict[int, str],
    share: float,
    note: str,
) -> None:
    for broker, value in brokers.items():
        house.configs.held[Resource(kind=BROKERS, name=str(broker))] = {SKIPS_TIERED: value}
    log = house.logs.logs[ORDERS]
    house.logs.upload(ORDERS, log.messages // 2)
    inputs(house, tmp_path)
    (path,) = (tmp_path / "live").glob("*.jsonl.gz")
    with gzip.open(path, "rt") as file:
        sizes = {row["size"] for row in map(json.loads, file) if (row["topic"], row["partition"]) == ORDERS}
    assert sizes == {log.bytes * share}
    assert capsys.readouterr().err == note


@pytest.fixture
def moving(house: InMemory) -> InMemory:
    """Orders-0 moves from 1,2 to 1,3. Broker 3 has created its replica."""
    now = house.cluster.partitions[ORDERS]
    running = PartitionReplicas(replicas=(ONE, TWO, THREE), adding=(THREE,), removing=(TWO,), leader=ONE, isr=now.isr)
    house.cluster.partitions[ORDERS] = running
    house.logs.logs[ORDERS].replicas.append(THREE)
    return house


def test_a_running_copy_is_not_a_replica_yet(moving: InMemory, tmp_path: Path) -> None:
    found = inputs(moving, tmp_path)
    assert found.running is not None
    assert found.running.keys() == {ORDERS}
    # Every replica of this fake has the end of the log.
    assert found.copies == {(ORDERS, THREE): RunningCopy(copied=10_000, left=0)}
    assert {broker for topic, number, broker in rows(tmp_path) if (topic, number) == ORDERS} == {1, 2}


def test_a_move_that_has_just_ended_has_no_copies(moving: InMemory, tmp_path: Path) -> None:
    moving.cluster.finish(ORDERS)
    found = inputs(moving, tmp_path)
    assert (found.running, found.copies) == ({}, {})
    assert {broker for topic, number, broker in rows(tmp_path) if (topic, number) == ORDERS} == {1, 2, 3}


def test_running_moves_that_cannot_be_read_are_unknown(
    moving: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(_topics: object) -> None:
        raise Unreachable("the controller did not answer")

    monkeypatch.setattr(moving.cluster, "snapshot", lost)
    found = inputs(moving, tmp_path)
    assert (found.running, found.copies) == (None, {})
    warning = "warning: the running moves are unknown, so the estimate ignores them: the controller did not answer\n"
    assert capsys.readouterr().err == f"kquota: {warning}"
