"""The parts that several recorded sessions share: addresses, forms, a cluster and its plans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kquota.cli.formats import Output
from kquota.quota.entity import Entity
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    BrokerId,
)
from tests.cli.contracts.transcript import Transcript
from tests.quota.fake import MemoryPrincipals

BROKER = "--bootstrap-server b1:9092"
ZOOKEEPER = "--zookeeper zk1:2181"
FORMS: tuple[str, ...] = tuple(Output)
ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
Placement = Mapping[tuple[str, int], Sequence[int]]
START: Placement = {("orders", 0): [1, 2], ("orders", 1): [2, 1], ("payments", 0): [2, 3]}
ELSEWHERE: Placement = {("orders", 0): [1, 3], ("orders", 1): [2, 3]}


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def plan(folder: Path, placement: Placement, log_dirs: Mapping[tuple[str, int], Sequence[str]] | None = None) -> str:
    entries = [
        {
            "topic": topic,
            "partition": number,
            "replicas": list(replicas),
            **({"log_dirs": list(log_dirs[topic, number])} if log_dirs and (topic, number) in log_dirs else {}),
        }
        for (topic, number), replicas in placement.items()
    ]
    return written(folder, "plan.json", json.dumps({"version": 1, "partitions": entries}))


def quotas() -> MemoryPrincipals:
    """Return quotas of every kind of entity, and a user with SCRAM credentials."""
    found = MemoryPrincipals({"alice": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": None}})
    found.held = {
        Entity(user="alice"): {PRODUCER_BYTE_RATE: 10_000_000.0, CONSUMER_BYTE_RATE: 1024.0},
        Entity(user="alice", client_id="etl"): {REQUEST_PERCENTAGE: 12.5},
        Entity(user=DEFAULT, client_id=DEFAULT): {PRODUCER_BYTE_RATE: 5e6},
        Entity(user=DEFAULT): {CONTROLLER_MUTATION_RATE: 2.0},
        Entity(client_id="a\tb\\c"): {CONSUMER_BYTE_RATE: 0.5},
        Entity(ip="10.0.0.1"): {CONNECTION_CREATION_RATE: 10.0},
        Entity(ip=DEFAULT): {CONNECTION_CREATION_RATE: 50.0},
    }
    return found


def reassign(session: Transcript, file: str, more: str, forms: Sequence[str] = ("text", "json")) -> None:
    """Run `reassign-partitions` with this plan in each output form."""
    for form in forms:
        session.kquota(f"reassign-partitions {BROKER} --reassignment-json-file {file} {more} --output {form}")
