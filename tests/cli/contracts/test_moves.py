"""Contracts of `reassign-partitions` and `move`, from a plan to the end of its run."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

import pytest

from kquota.cli import confirmation
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.run import Run
from kquota.settings.resource import Setting
from kquota.terms import (
    FOLLOWER_RATE,
    LEADER_RATE,
    TopicPartition,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import (
    BROKER,
    ELSEWHERE,
    FORMS,
    ONE,
    THREE,
    TWO,
    ZOOKEEPER,
    Placement,
    plan,
    reassign,
    written,
)
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.reassign.dirs_fake import MemoryDirs
from tests.stores.record.hosts import Team, on_another_machine

pytestmark = pytest.mark.unit


def test_a_plan_is_made(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    for goal in ("--drain 2", "--replication-factor 3", "--balance", "--repair-racks", "--drain 1 --topics payments"):
        for form in ("text", "json"):
            session.kquota(f"move plan {BROKER} {goal} --disk-limit 95% --explain --output {form}")
    topics = written(tmp_path, "topics.json", '{"version": 1, "topics": [{"topic": "orders"}]}')
    for where in (BROKER, ZOOKEEPER):
        for form in ("text", "json"):
            session.kquota(
                f"reassign-partitions {where} --generate --topics-to-move-json-file {topics} --broker-list 2,3 "
                f"--seed 1 --output {form}"
            )
    session.must_be("contract-plans")


def test_a_plan_for_the_log_dirs_of_a_broker(house: InMemory, session: Transcript) -> None:
    """The even partitions are in the first log dir of each broker, and grow."""
    house.logs.topic("skewed", [[1, 2]] * 6)
    for number in range(6):
        name = TopicPartition("skewed", number)
        house.cluster.partitions[name] = PartitionReplicas(replicas=(ONE, TWO), leader=ONE, isr=(ONE, TWO))
        if number % 2 == 0:
            house.logs.write(name, 100, 1000)
    for words in ("1", "1 --replica-alter-log-dirs-throttle 5kB/s", "1 --topics orders", "9"):
        for form in ("text", "json"):
            session.kquota(f"move plan {BROKER} --disk-limit 95% --balance-log-dirs {words} --output {form}")
    session.must_be("contract-plans-log-dirs")


def listed(session: Transcript) -> None:
    for form in FORMS:
        session.kquota(f"reassign-partitions {BROKER} --list --output {form}")


def test_a_move_from_dry_run_to_restored_throttles(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "123456789"
    file = plan(tmp_path, ELSEWHERE)
    listed(session)
    reassign(session, file, "--execute --throttle 5MB/s --force --dry-run")
    reassign(session, file, "--execute --throttle 5MB/s --force --reason CHG-7", ["json"])
    listed(session)
    for form in ("text", "json"):
        session.kquota(f"move status {BROKER} --output {form}")
    reassign(session, file, "--verify")
    reassign(session, file, "--execute", ["text"])
    reassign(session, file, "--execute --additional --throttle 6MB/s --force", ["text"])
    house.cluster.finish(TopicPartition("orders", 0))
    session.note("orders-0 has all its replicas")
    house.clock.sleep(60)
    reassign(session, file, "--verify --preserve-throttles")
    reassign(session, file, "--cancel --dry-run")
    house.cluster.finish(TopicPartition("orders", 1))
    session.note("orders-1 has all its replicas")
    house.clock.sleep(60)
    reassign(session, file, "--verify", ["json", "text"])
    for form in ("text", "json"):
        session.kquota(f"move status {BROKER} --output {form}")
    reassign(session, file, "--execute --throttle 5MB/s --force", ["text", "json"])
    reassign(session, file, "--cancel")
    session.must_be("contract-move")


def test_every_open_run_is_verified(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    every = f"reassign-partitions {BROKER} --verify --all-runs"
    session.kquota(every)
    session.kquota(f"{every} --quiet")
    for topic in ("orders", "payments"):
        (tmp_path / topic).mkdir()
        file = plan(tmp_path / topic, {(topic, 0): [3, 1]})
        reassign(session, file, "--execute --throttle 5MB/s --force --additional", ["text"])
    session.kquota(f"{every} --quiet")
    session.kquota(every)
    house.cluster.finish(TopicPartition("orders", 0))
    session.note("orders-0 has all its replicas")
    house.clock.sleep(60)
    session.kquota(f"{every} --output json")
    house.cluster.finish(TopicPartition("payments", 0))
    session.note("payments-0 has all its replicas")
    house.clock.sleep(60)
    session.kquota(every)
    session.kquota(f"{every} --output json")
    session.must_be("contract-verify-all-runs")


def test_a_cancelled_move_and_the_text_of_each_outcome(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    file = plan(tmp_path, ELSEWHERE)
    reassign(session, file, "--execute --throttle 5MB/s --force", ["text"])
    house.cluster.finish(TopicPartition("orders", 0))
    session.note("orders-0 has all its replicas")
    reassign(session, file, "--cancel", ["text", "json"])
    reassign(session, file, "--verify", ["text", "json"])
    house.clock.sleep(60)
    reassign(session, file, "--execute --throttle 5MB/s --force", ["text"])
    reassign(session, file, "--cancel", ["json", "text"])
    gone = plan(tmp_path, {("nobody-s", 0): [1]})
    for action in ("--execute --force", "--verify", "--cancel"):
        reassign(session, gone, action, ["text"])
    session.must_be("contract-move-cancelled")


def test_a_move_between_log_dirs(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    dirs = MemoryDirs(log_dirs={broker: {"/a": None, "/b": None} for broker in (ONE, TWO, THREE)})
    for name, now in house.cluster.partitions.items():
        for broker in now.replicas:
            dirs.create((name, broker))
    dirs.slow(TWO)
    house.dirs = dirs
    file = plan(tmp_path, {("orders", 0): [1, 2]}, {("orders", 0): ["/b", "/b"]})
    reassign(session, file, "--execute --throttle 5MB/s --dry-run")
    asked = "--execute --replica-alter-log-dirs-throttle 1MB/s --force"
    reassign(session, file, f"{asked} --dry-run")
    reassign(session, file, asked, ["text"])
    reassign(session, file, "--verify")
    reassign(session, file, "--cancel --dry-run")
    reassign(session, file, "--cancel", ["text"])
    house.clock.sleep(60)
    reassign(session, file, asked, ["json"])
    dirs.fast(TWO)
    session.note("broker 2 has copied")
    house.clock.sleep(60)
    reassign(session, file, "--verify", ["json", "text"])
    session.must_be("contract-move-log-dirs")


def test_moves_that_the_cluster_refuses(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    house.cluster.partitions[TopicPartition("payments", 0)] = PartitionReplicas(
        replicas=(TWO, THREE, ONE), adding=(ONE,), leader=TWO, isr=(TWO, THREE)
    )
    file = plan(tmp_path, {("orders", 0): [1, 3]})
    reassign(session, file, "--execute --throttle 5MB/s", ["text"])
    house.cluster.refused[TopicPartition("orders", 0)] = "The replication factor is below 1."
    reassign(session, file, "--execute --additional --force", ["text", "json"])
    reassign(session, file, "--execute --additional --throttle 1", ["text"])
    house.cluster.refused.clear()
    house.clock.sleep(60)
    reassign(session, file, "--execute --additional --force", ["text"])
    house.cluster.refused[TopicPartition("orders", 0)] = "No."
    reassign(session, file, "--cancel", ["text", "json"])
    refused: tuple[Placement, ...] = ({("orders", 0): [1, 1]}, {("orders", 0): []}, {("orders", 0): [9]}, {})
    for placement in refused:
        reassign(session, plan(tmp_path, placement), "--execute --additional", ["text"])
    twice = json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}] * 2})
    reassign(session, written(tmp_path, "plan.json", twice), "--execute", ["text"])
    reassign(session, written(tmp_path, "plan.json", '{"version": 2, "partitions": []}'), "--execute", ["text"])
    topics = written(tmp_path, "topics.json", '{"version": 1, "topics": [{"topic": "nobody-s"}]}')
    for brokers in ("1,2", "1,9", "1,1", "x"):
        session.kquota(
            f"reassign-partitions {BROKER} --generate --topics-to-move-json-file {topics} --broker-list {brokers}"
        )
    several = json.dumps({"version": 1, "topics": [{"topic": name} for name in ("orders", "nobody-s", "lost", "gone")]})
    topics = written(tmp_path, "topics.json", several)
    session.kquota(f"reassign-partitions {BROKER} --generate --topics-to-move-json-file {topics} --broker-list 1,2")
    session.must_be("contract-move-refused")


def test_interrupted_runs_are_resumed_and_aborted(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    file = plan(tmp_path, ELSEWHERE)
    for form in ("text", "json"):
        session.kquota(f"move status {BROKER} --output {form}")
        session.kquota(f"move resume {BROKER} --output {form}")
        session.kquota(f"move abort {BROKER} --output {form}")
    reassign(session, file, "--execute --throttle 5MB/s --force", ["text"])
    house.cluster.cancel(TopicPartition("orders", 1))
    session.note("another tool has cancelled orders-1")
    for form in ("text", "json"):
        session.kquota(f"move resume {BROKER} --dry-run --output {form}")
    session.kquota(f"move resume {BROKER}")
    session.kquota(f"move resume {BROKER} --output json")
    for form in ("text", "json"):
        session.kquota(f"move abort {BROKER} --dry-run --force --output {form}")
    house.cluster.finish(TopicPartition("orders", 0))
    session.note("orders-0 has all its replicas")
    session.kquota(f"move abort {BROKER} --force --output json")
    session.kquota(f"move status {BROKER} --output json")
    session.kquota(f"move abort {BROKER} --force")
    house.cluster.finish(TopicPartition("orders", 0))
    session.note("orders-0 is where it was")
    session.kquota(f"move abort {BROKER} --force --reassignment-json-file {file}")
    reassign(session, file, "--verify", ["text"])
    session.kquota(f"move status {BROKER}")
    session.must_be("contract-move-runs")


def test_a_throttle_that_nothing_will_restore_is_not_called_not_restored_yet(house: InMemory, tmp_path: Path) -> None:
    """A host without the record of this run has set its own rate, and restores nothing more."""
    moves = ("reassign-partitions", *BROKER.split())
    file = plan(tmp_path, ELSEWHERE)
    execute = ("--execute", "--reassignment-json-file", file, "--throttle", "5MB/s", "--force")
    assert kquota_here(*moves, *execute).code == 0
    house.cluster.write(Setting.of_broker(THREE, FOLLOWER_RATE), "7000000")
    for number in (0, 1):
        house.cluster.finish(TopicPartition("orders", number))
    ended = kquota_here(*moves, "--verify", "--all-runs")
    assert (ended.code, "not restored yet" in ended.whole_err + ended.out) == (8, False)
    assert "done, but kquota left a throttle unchanged, because its run is unknown: 2 of 2 partitions done" in ended.out
    assert "(7000000)" in ended.err
    assert "`kquota throttle doctor " in ended.err


@pytest.mark.parametrize("terminal", [False, True])
def test_an_abort_warns_once_about_a_lost_broker_unless_it_is_refused(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """The undo needs broker 3 after payments-0, which has moved off broker 3, and before that it does not."""
    monkeypatch.setattr(confirmation, "has_terminal", lambda: terminal)
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    file = plan(tmp_path, {**ELSEWHERE, ("payments", 0): [2, 1]})
    options = ("--reassignment-json-file", file, "--throttle", "5MB/s", "--force")
    assert kquota_here("reassign-partitions", "--execute", *BROKER.split(), *options).code == 0
    moving = house.cluster.partitions[TopicPartition("payments", 0)]
    house.cluster.finish(TopicPartition("payments", 0))
    house.cluster.alive.discard(THREE)
    abort = ("move", "abort", *BROKER.split(), "--gone", "3", "--force")
    refused = kquota_here(*abort)
    assert (refused.code, refused.err.count("kquota does not restore")) == (1, 0)
    assert "use `kquota reassign-partitions --bootstrap-server b1:9092 --cancel --reassignment-json-file PLAN`" in (
        refused.err
    )
    house.cluster.partitions[TopicPartition("payments", 0)] = moving
    done = kquota_here(*abort)
    assert (done.code, done.err.count("kquota does not restore broker 3 leader.replication.throttled.rate")) == (0, 1)


@pytest.mark.parametrize("another", [False, True], ids=["it ends", "it ends and another run begins"])
def test_an_abort_undoes_only_the_run_that_was_shown(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, another: bool
) -> None:
    def execute(placement: Placement) -> None:
        options = ("--reassignment-json-file", plan(tmp_path, placement), "--unthrottled", "--force")
        assert kquota_here("reassign-partitions", "--execute", *BROKER.split(), *options).code == 0

    class Slow:
        """An operator who answers after the run has ended."""

        def readline(self) -> str:
            for name in (TopicPartition("orders", number) for number in (0, 1)):
                house.cluster.finish(name)
            assert kquota_here("reassign-partitions", "--verify", "--all-runs", *BROKER.split()).code == 0
            if another:
                execute({("payments", 0): [2, 1]})
            return "y\n"

    execute(ELSEWHERE)
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", Slow())
    ran = kquota_here("move", "abort", *BROKER.split())
    assert (ran.code, " was not shown before the confirmation. Nothing was written" in ran.err) == (another, another)
    assert ("nothing to abort" in ran.err) is not another
    assert (TopicPartition("payments", 0) in house.cluster.snapshot(()).running) is another


def test_an_abort_that_waits_for_the_lock_does_not_undo_a_run_that_begins_meanwhile(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run is open when the abort begins, because the `move run` of another host is still checking its plan."""
    team, other = Team(tmp_path / "team"), ExitStack()
    with monkeypatch.context() as patch:
        on_another_machine(patch, "b")
        other.enter_context(team.process("b").hold("move run"))

    def waits(_: float) -> None:
        other.close()
        options = ("--reassignment-json-file", plan(tmp_path, ELSEWHERE), "--unthrottled", "--force")
        with monkeypatch.context() as patch:
            patch.setattr(house, "_runs", lambda: team.process("b"))
            assert kquota_here("reassign-partitions", "--execute", *BROKER.split(), *options).code == 0

    monkeypatch.setattr(team.clock, "sleep", waits)
    monkeypatch.setattr(house, "_runs", lambda: team.process("a", patient=True))
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    ran = kquota_here("move", "abort", *BROKER.split())
    assert (ran.code, " was not shown before the confirmation. Nothing was written" in ran.err) == (1, True), ran
    assert "abort?" not in ran.whole_err
    assert set(house.cluster.snapshot(()).running) == {TopicPartition("orders", number) for number in (0, 1)}


@pytest.fixture
def two_runs(house: InMemory, tmp_path: Path) -> tuple[Run, Run]:
    """The runs of orders-0 and of payments-0. Another tool cancelled the moves of both."""
    for topic in ("orders", "payments"):
        file = plan(tmp_path, {(topic, 0): [1, 3]})
        execute = f"reassign-partitions {BROKER} --execute --additional --force --reassignment-json-file {file}"
        assert kquota_here(*execute.split(), "--throttle", "5MB/s").code == 0
        house.cluster.cancel(TopicPartition(topic, 0))
    first, second = house._runs().unfinished()
    return first, second


def test_a_run_that_fails_does_not_stop_the_others(house: InMemory, two_runs: tuple[Run, Run]) -> None:
    """The exit code is that of the worst run."""
    first, second = two_runs
    house.cluster.refused = {TopicPartition("orders", 0): "no"}
    ran = kquota_here(*f"move resume {BROKER} --force --output json".split())
    assert ran.code == 1, ran.err
    assert ran.err.count(f"kquota: error: run {first.id}: ") == 1
    refused, resumed = json.loads(ran.out)["runs"]
    assert (refused["run"], refused["started"], "verdict" in refused) == (first.id, None, False)
    assert (resumed["run"], resumed["why"], resumed["verdict"]) == (second.id, None, "in progress")
    assert house.cluster.partitions[TopicPartition("payments", 0)].moving
    assert refused["why"] in ran.err


def test_a_run_that_cannot_be_continued_is_shown_before_the_confirmation_and_does_not_stop_the_others(
    house: InMemory, two_runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_runs
    house.cluster.submit({TopicPartition("orders", 0): (TWO, THREE)})
    monkeypatch.setattr(confirmation, "has_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    ran = kquota_here(*f"move resume {BROKER} --take-over".split())
    why = "orders-0 is already moving to 2,3. Cancel that move first, or give --force to override it."
    shown, _, done = ran.whole_err.partition("resume? [y/N]")
    assert f"cannot resume run {first.id}: {why}" in shown
    assert f"resume run {second.id}: submit the moves of 1 of 1 partition" in shown
    assert (ran.code, done.count(f"error: run {first.id}: {why}")) == (1, 1), ran
    assert ran.out.startswith(f"Run {first.id}: failed\nRun {second.id}:\n"), "the reason is on stderr"
    assert house.cluster.partitions[TopicPartition("payments", 0)].moving
