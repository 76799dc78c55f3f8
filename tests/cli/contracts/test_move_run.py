"""Contracts of `move run`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from kquota.errors import Unreachable
from kquota.mutation.topic import Partition
from kquota.reassign.port import Snapshot
from kquota.settings.resource import Setting
from kquota.terms import LEADER_RATE, TopicPartition
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, THREE, plan
from tests.cli.contracts.transcript import Transcript
from tests.reassign.fake import Ticks

pytestmark = pytest.mark.unit


def ends_moves(house: InMemory, patch: pytest.MonkeyPatch, every: int = 1) -> None:
    """Waits of two seconds in all end one running move."""
    waits = 0

    def wait(seconds: float) -> None:
        nonlocal waits
        moving = sorted(name for name, now in house.cluster.partitions.items() if now.moving)
        waits += seconds >= 1
        if seconds >= 1 and moving and not waits % every:
            house.cluster.finish(moving[0])

    house.clock = Ticks(wait)
    house.stand_in(patch)


def led(house: InMemory, leaders: Mapping[tuple[str, int], int]) -> None:
    """The leaders of partitions whose preferred replica is the last one."""
    for (topic, number), leader in leaders.items():
        house.elections.add(TopicPartition(topic, number), 4 - leader, leader, leader=leader)


def test_a_whole_move(house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends_moves(house, monkeypatch)
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "123456789"
    led(house, {("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 3})
    file = plan(tmp_path, ELSEWHERE)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --dry-run")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --batch 1 --elect-leaders --reason CHG-7")
    assert house.cluster.configs == {Setting.of_broker(ONE, LEADER_RATE): "123456789"}
    for form in ("text", "json"):
        session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --output {form}")
    session.must_be("contract-move-run")


def test_a_move_that_is_refused(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch)
    file = plan(tmp_path, ELSEWHERE)
    session.kquota(f"move run {file} {BROKER}")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --unthrottled")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --batch 0")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --max-in-flight many")
    session.note("partitions outside the plan are unhealthy")
    house.elections.add(TopicPartition("refunds", 0), 1, 3, leader=None)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s")
    assert house.cluster.writes == 0
    session.kquota(f"move run {file} {BROKER} --unthrottled --force --output json")
    session.note("the copies do not fit on a disk")
    house.elections.held.clear()
    house.logs.logs[TopicPartition("payments", 0)].bytes = 10**10
    session.kquota(f"move run {plan(tmp_path, {('payments', 0): [2, 1]})} {BROKER} --throttle 5MB/s")
    session.must_be("contract-move-run-refused")


def test_a_killed_move_is_continued_by_the_same_command(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(seconds: float) -> None:
        if seconds >= 1:
            raise KeyboardInterrupt

    house.clock = Ticks(stop)
    house.stand_in(monkeypatch)
    file = plan(tmp_path, ELSEWHERE)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --batch 1 --force")
    session.kquota(f"move status {BROKER}")
    ends_moves(house, monkeypatch)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --batch 1 --force")
    session.kquota(f"move status {BROKER}")
    assert THREE in house.cluster.partitions[TopicPartition("orders", 1)].replicas
    assert house.cluster.configs == {}
    session.must_be("contract-move-run-killed")


@pytest.mark.parametrize("batch", ["--batch 1", ""], ids=["between waves", "after the last wave"])
def test_trouble_elsewhere_undoes_the_move(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: str
) -> None:
    before = {name: now.replicas for name, now in house.cluster.partitions.items()}
    outside = TopicPartition("refunds", 0)
    house.elections.add(outside, 1, 3, leader=1)
    ends_moves(house, monkeypatch, every=20)
    partitions, looks = house.elections.partitions, 0

    def damaged() -> Mapping[TopicPartition, Partition]:
        nonlocal looks
        looks += 1
        if looks == 2:
            house.elections.add(outside, 1, 3, leader=None)
        return partitions()

    monkeypatch.setattr(house.elections, "partitions", damaged)
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "123456789"
    ran = session.kquota(f"move run {plan(tmp_path, ELSEWHERE)} {BROKER} --throttle 5MB/s {batch} --abort-on-trouble")
    assert ran.code == 1
    assert "the move was undone: 1 partition outside the plan has no leader" in ran.err
    assert {name: now.replicas for name, now in house.cluster.partitions.items()} == before
    assert house.cluster.configs == {Setting.of_broker(ONE, LEADER_RATE): "123456789"}
    assert session.kquota(f"move status {BROKER}").code == 0


def test_a_longer_move_shows_its_progress(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch, every=10)
    session.kquota(f"move run {plan(tmp_path, ELSEWHERE)} {BROKER} --throttle 5MB/s --batch 1")
    session.must_be("contract-move-run-progress")


def test_a_cluster_that_does_not_answer_for_a_while_ends_no_move(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch, every=3)
    snapshot, looks = house.cluster.snapshot, 0

    def sometimes(topics: Collection[str] | None) -> Snapshot:
        nonlocal looks
        moving = any(now.moving for now in house.cluster.partitions.values())
        looks += moving and house.clock.slept > 2
        if looks in (1, 2):
            raise Unreachable("no answer to Metadata")
        return snapshot(topics)

    monkeypatch.setattr(house.cluster, "snapshot", sometimes)
    session.kquota(f"move run {plan(tmp_path, ELSEWHERE)} {BROKER} --throttle 5MB/s")
    assert house.cluster.configs == {}
    session.must_be("contract-move-run-unreachable")
