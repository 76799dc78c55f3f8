"""A cluster in memory, and a session of its command line that is recorded in `tests/cli/golden`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.cli import keeping_up
from kquota.reassign.moves import PartitionReplicas
from kquota.terms import (
    BrokerId,
    TopicPartition,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import START
from tests.cli.contracts.transcript import Transcript


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InMemory:
    """Three brokers with the topics of START."""
    made = InMemory(folder=tmp_path / "state")
    for (topic, number), replicas in START.items():
        brokers = tuple(map(BrokerId, replicas))
        name = TopicPartition(topic, number)
        made.cluster.partitions[name] = PartitionReplicas(replicas=brokers, leader=brokers[0], isr=brokers)
    made.logs.topic("orders", [[1, 2], [2, 1]])
    made.logs.topic("payments", [[2, 3]])
    for name in made.logs.logs:
        made.logs.write(name, 10, 1000)
    made.stand_in(monkeypatch)
    # Nothing is written to this cluster while a check of a throttle measures the write rates.
    monkeypatch.setattr(keeping_up, "_SHORT_SAMPLE", 0.001)
    return made


@pytest.fixture
def session(tmp_path: Path) -> Transcript:
    return Transcript(names={str(tmp_path): "FOLDER"}, patterns={r"kquota-probe-[\w-]+": "kquota-probe-TOPIC"})
