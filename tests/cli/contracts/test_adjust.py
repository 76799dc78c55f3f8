"""Contracts of `move adjust`: one rate, a deadline, and rates by the time of day. Copies proceed while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.reassign.fake import Ticks
from tests.watch.fake import CopyingCluster
from tests.watch.stage import MB, brokers, name

pytestmark = pytest.mark.unit
SIZE = 300 * MB


@pytest.fixture
def copying(house: InMemory) -> CopyingCluster:
    """Two partitions on brokers 1 and 2, and a cluster that copies while commands wait."""
    cluster = CopyingCluster(alive=set(brokers(1, 2, 3)))
    for number in range(2):
        cluster.partition(name(number), (1, 2), SIZE)
    house.cluster = cluster
    house.clock = Ticks(cluster.pass_seconds)
    return cluster


def started(session: Transcript, folder: Path, rate: str) -> str:
    file = plan(folder, {("orders", 0): [1, 3], ("orders", 1): [1, 3]})
    reassign(session, file, f"--execute --throttle {rate} --force", ["text"])
    return file


def test_a_rate(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    session.kquota(f"move adjust 5MB/s {BROKER}")
    file = started(session, tmp_path, "4MB/s")
    session.kquota(f"move adjust 6MB/s {BROKER} --reason night")
    session.kquota(f"move adjust 7MB/s {BROKER} --reassignment-json-file {file} --output json")
    for words in (
        "",
        "5MB/s --deadline 2h",
        "--between 22:00-06:00=1MB/s,else=1MB/s --max-rate 5MB/s",
        "5MB/s --run nobody",
        f"5MB/s --run nobody --reassignment-json-file {file}",
        "--deadline 2020-01-01T00:00:00Z",
        "--deadline 2-hours",
        "--deadline 1h --min-rate 9MB/s --max-rate 5MB/s",
        "--deadline 1h --interval 0.5s",
        "--between night=1MB/s",
    ):
        session.kquota(f"move adjust {words} {BROKER}")
    session.must_be("contract-adjust")


@pytest.mark.parametrize("rate", ["1MB/s", "40MB/s"], ids=["too slow", "too fast"])
def test_a_deadline(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path, rate: str) -> None:
    file = started(session, tmp_path, rate)
    began = house.clock.monotonic()
    ran = session.kquota(f"move adjust {BROKER} --deadline 4m --max-rate 20MB/s --output json")
    assert ran.code == 8, "the throttle is still set"
    assert house.clock.monotonic() - began == pytest.approx(240, rel=0.1)
    reassign(session, file, "--verify", ["text"])
    assert copying.configs == {}


def test_the_time_of_day(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    started(session, tmp_path, "1MB/s")
    ran = session.kquota(f"move adjust {BROKER} --between 00:00-12:00=5MB/s,12:00-24:00=5MB/s,else=1MB/s")
    assert "the throttle is now 5 MB/s, was 1 MB/s" in ran.err
