"""Contracts of `move run`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from kquota.cli.move.run.progress import RunProgress
from kquota.errors import Refused, Unreachable
from kquota.mutation.topic import Partition
from kquota.reassign.moves import Replicas
from kquota.reassign.plan import Plan
from kquota.reassign.port import Snapshot
from kquota.settings.resource import Setting
from kquota.stores.state.runs import RunFiles
from kquota.terms import LEADER_RATE, TopicPartition
from kquota.watch.observation import WatchPorts
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, THREE, TWO, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.reassign.fake import Ticks
from tests.reassign.records import alone

pytestmark = pytest.mark.unit


def ends_moves(house: InMemory, patch: pytest.MonkeyPatch, every: int = 1) -> None:
    """Let one running move end whenever the waits add up to two seconds."""
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


def test_an_election_without_an_answer_does_not_hide_the_result_of_the_move(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch)
    led(house, {("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 3})

    def silent(*_: object) -> NoReturn:
        raise Unreachable("no answer to ElectLeaders")

    words = "--throttle 5MB/s --elect-leaders --election-batch 7 --output json"
    file = plan(tmp_path, ELSEWHERE)
    with monkeypatch.context() as patch:
        patch.setattr(house.elections, "elect", silent)
        ran = session.kquota(f"move run {file} {BROKER} {words}")
    found = json.loads(ran.out)
    assert (ran.code, found["verdict"], found["elections"]["elected"]) == (1, "done", [])
    assert [one["topic"] for one in found["elections"]["not_sent"]] == ["orders", "orders"]
    assert "error: kquota could not elect all preferred leaders: no answer to ElectLeaders" in ran.err
    again = f"leader-election {BROKER} --election-type preferred --path-to-json-file {file} --batch 7"
    assert f"Elect the preferred leaders: `kquota {again}`" in ran.err
    assert session.kquota(f"{again} --yes").code == 0


def test_elections_that_stop_between_two_batches_say_why(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch)
    led(house, {("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 3})
    house.elections.troubled = {1: TopicPartition("payments", 0)}
    words = "--throttle 5MB/s --elect-leaders --election-batch 1"
    ran = session.kquota(f"move run {plan(tmp_path, ELSEWHERE)} {BROKER} {words}")
    assert ran.code == 1
    assert (
        "kquota could not elect all preferred leaders: 1 partition is still unhealthy 60 s after a batch, without a "
        "new leader or with an out-of-sync replica (payments-0)"
    ) in ran.err
    assert "1 partition: kquota requested no election" in ran.err


@pytest.mark.parametrize("command", ["move run", "move abort", "move run, undone"])
def test_a_failure_takes_precedence_over_a_throttle_that_is_not_restored(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """No leader is elected, or the move is undone, and a rate stays set. Cron restores it later."""
    ends_moves(house, monkeypatch, every=20 if "undone" in command else 1)
    led(house, {("orders", 0): 1, ("orders", 1): 1})
    house.elections.add(TopicPartition("refunds", 0), 1, 3, leader=1)
    file, waits = plan(tmp_path, ELSEWHERE), house.clock.sleep

    def wait(seconds: float) -> None:
        """Make a broker refuse settings while the moves run, and a partition elsewhere unhealthy."""
        house.cluster.broken[Setting.of_broker(ONE, LEADER_RATE)] = Unreachable("broker 1 does not answer")
        if "undone" in command:
            house.elections.add(TopicPartition("refunds", 0), 1, 3, leader=None)
        waits(seconds)

    def silent(*_: object) -> NoReturn:
        raise Unreachable("no answer to ElectLeaders")

    monkeypatch.setattr(house.elections, "elect", silent)
    if command == "move abort":
        reassign(session, file, "--execute --throttle 5MB/s --force", ["text"])
        house.cluster.broken[Setting.of_broker(ONE, LEADER_RATE)] = Unreachable("broker 1 does not answer")
        ran = session.kquota(f"move abort {BROKER} --force --elect-leaders --output json")
        (found,) = json.loads(ran.out)["runs"]
    else:
        monkeypatch.setattr(house.clock, "sleep", wait)
        more = "--abort-on-trouble" if "undone" in command else "--elect-leaders"
        ran = session.kquota(f"move run {file} {BROKER} --throttle 5MB/s {more} --output json")
        found = json.loads(ran.out)
    assert [one["name"] for one in found["pending"]] == ["1"]
    assert (ran.code, found["elections"] is None) == (1, "undone" in command)


def test_a_move_that_is_refused(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_moves(house, monkeypatch)
    file = plan(tmp_path, ELSEWHERE)
    session.kquota(f"move run {file} {BROKER}")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --unthrottled")
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --between 22:00-06:00=9MB/s,else=1MB/s")
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
    would = session.kquota(f"move resume {BROKER} --dry-run")
    assert would.out.endswith("  and 1 more move after the first wave\n")
    ends_moves(house, monkeypatch)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s --batch 1 --force")
    session.kquota(f"move status {BROKER}")
    assert THREE in house.cluster.partitions[TopicPartition("orders", 1)].replicas
    assert house.cluster.configs == {}
    session.must_be("contract-move-run-killed")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("move run {plan} --throttle 5MB/s --force --batch 1", "kquota: {why}. kquota waits and tries again\n"),
        (
            "throttle set --recovering 3 --throttle 5MB/s",
            "kquota: broker 3: the check failed ({why}). The throttle stays set. kquota checks again\n",
        ),
    ],
    ids=["move run", "throttle set"],
)
def test_a_command_that_waits_for_the_lock_does_not_advise_to_repeat_it(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, line: str
) -> None:
    behind = TopicPartition("payments", 0)
    house.cluster.partitions[behind] = replace(house.cluster.partitions[behind], isr=(TWO,))
    other, waits = RunFiles(house.folder, CLUSTER_ID), 0
    with ExitStack() as lock:

        def wait(seconds: float) -> None:
            nonlocal waits
            waits += seconds >= 1
            if waits == 1:
                lock.enter_context(other.hold("move adjust"))
            if waits == 5:
                raise KeyboardInterrupt

        house.clock = Ticks(wait)
        house.stand_in(monkeypatch)
        ran = session.kquota(f"{command.format(plan=plan(tmp_path, ELSEWHERE))} {BROKER}")
        busy = session.kquota(f"throttle clear {BROKER}")
    assert (busy.code, busy.err.count("kquota: error: ")) == (75, 1)
    why = busy.err.partition("kquota: error: ")[2].removesuffix(". Try again later\n")
    assert " holds the lock of " in why
    assert line.format(why=why) in ran.err, ran.err
    assert "Try again" not in ran.err


@pytest.mark.parametrize("force", ["", "--force"])
@pytest.mark.parametrize("limit", ["--batch 1", ""], ids=["waves", "one wave"])
def test_resume_holds_waves_back_while_other_partitions_are_unhealthy(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, force: str
) -> None:
    """kquota dies before the moves of the run, or before its second wave, and a partition elsewhere has no leader."""
    outside, first, second = (TopicPartition(*one) for one in (("refunds", 0), ("orders", 0), ("orders", 1)))
    file, waits, healthy = plan(tmp_path, ELSEWHERE), 0, dict[TopicPartition, bool]()

    def stop(seconds: float) -> None:
        if seconds >= 1:
            raise KeyboardInterrupt

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += seconds >= 1
        if waits == 20:
            house.elections.add(outside, 1, 3, leader=1)

    submit = house.cluster.submit

    def submitting(targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        healthy.update(dict.fromkeys(targets, waits >= 20))
        return submit(targets)

    house.clock = Ticks(stop)
    house.stand_in(monkeypatch)
    session.kquota(f"move run {file} {BROKER} --throttle 5MB/s {limit} --force")
    house.cluster.finish(first)
    house.elections.add(outside, 1, 3, leader=None)
    house.clock = Ticks(wait)
    house.stand_in(monkeypatch)
    monkeypatch.setattr(house.cluster, "submit", submitting)
    ran = session.kquota(f"move resume {BROKER} {force}")
    held = bool(limit) and not force
    assert ("no further wave starts: 1 partition outside the plan has no leader" in ran.err) is held
    assert ("the next wave may start" in ran.err) is held
    assert healthy == ({second: held} if limit else {})
    assert THREE in house.cluster.partitions[second].replicas


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
    assert "kquota undid the move (--abort-on-trouble): 1 partition outside the plan has no leader" in ran.err
    assert {name: now.replicas for name, now in house.cluster.partitions.items()} == before
    assert house.cluster.configs == {Setting.of_broker(ONE, LEADER_RATE): "123456789"}
    assert session.kquota(f"move status {BROKER}").code == 0


def test_the_time_of_the_command_is_not_called_the_time_of_the_run(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second command continues a run that began an hour before."""
    reassign(session, plan(tmp_path, ELSEWHERE), "--execute --throttle 5MB/s --force", ["text"])
    house.clock.sleep(3600)
    slept = house.clock.slept
    ends_moves(house, monkeypatch)
    house.clock.slept = slept
    ran = json.loads(
        session.kquota(f"move run {tmp_path}/plan.json {BROKER} --throttle 5MB/s --force --output json").out
    )
    report = json.loads(session.kquota(f"move report {ran['run']} {BROKER} --output json").out)
    assert ran["command_seconds"] < 60
    assert report["seconds"] > 3600
    assert "seconds" not in ran


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


def test_without_a_successful_reading_there_is_no_last_one(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(_topics: Collection[str] | None) -> NoReturn:
        raise Refused("this user may not see the topics")

    monkeypatch.setattr(house.cluster, "snapshot", denied)
    ports = WatchPorts(cluster=house.cluster, runs=alone(tmp_path), logs=None, clock=house.clock)
    progress = RunProgress(ports, Plan(targets={TopicPartition("orders", 0): (ONE, THREE)}), None)
    progress.step()
    progress.step(ended=True)
    assert capsys.readouterr().err.count("the progress is unknown: this user may not see the topics") == 1
