"""Contracts of `topics` and `log-dirs`."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from kquota.cli.contract import FAILED
from kquota.mutation.port import BatchResult, Failure
from kquota.mutation.topic import Mutation
from kquota.quota.entity import Entity
from kquota.settings.resource import TOPICS, Resource
from kquota.terms import (
    CONTROLLER_MUTATION_RATE,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, FORMS, ONE, THREE, TWO, written
from tests.cli.contracts.transcript import Transcript
from tests.mutation.fake import FakeClock
from tests.probe.fake import Controller
from tests.settings.fake import FakeConfigs

pytestmark = pytest.mark.unit


def test_topics(house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house.topics = Controller(clock=FakeClock(), rate=2.0, held={"orders": 3, "payments": 1})
    house.clock = type(house.clock)(house.topics.clock.sleep)
    house.topics.placed["orders"] = {0: (ONE, TWO), 1: (TWO, ONE), 2: (THREE, ONE)}
    house.configs = FakeConfigs(topics=["orders", "payments"], brokers=[1, 2, 3], release=(4, 1))
    house.configs.held[Resource(kind=TOPICS, name="orders")] = {"min.insync.replicas": "2"}
    house.stand_in(monkeypatch)
    many = written(tmp_path, "topics.txt", "a.b 6\nrefunds 3 1\n")
    for form in FORMS:
        session.kquota(f"topics {BROKER} --list --output {form}")
        session.kquota(f"topics {BROKER} --describe --output {form}")
        session.kquota(f"topics {BROKER} --describe --topic orders --at-min-isr-partitions --output {form}")
    for command in (
        "--describe --topic nobody-s",
        "--describe --topics-with-overrides",
        f"--create --from-file {many} --dry-run",
        "--create --topic new --partitions 4 --replication-factor 1 --validate-only",
        f"--create --from-file {many} --if-not-exists",
        f"--create --from-file {many} --if-not-exists",
        "--create --topic orders --partitions 1",
        "--create --topic large --partitions 900 --timeout 1s",
        "--create --topic larger --partitions 5 --no-retry-quota-violated",
        "--alter --topic payments --partitions 2 --dry-run",
        "--alter --topic payments --partitions 2",
        "--alter --topic payments --partitions 1",
        "--delete --topic refunds --dry-run",
        "--delete --topic refunds",
        "--delete --topic refunds",
        "--delete --topic refunds --if-exists",
    ):
        for form in ("text", "json"):
            session.kquota(f"topics {BROKER} {command} --output {form}")
    session.must_be("contract-topics")


def test_topics_whose_answer_is_lost(house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    house.topics = Controller(clock=FakeClock(), rate=1.0, held={}, lost_at=1)
    house.clock = type(house.clock)(house.topics.clock.sleep)
    house.configs = FakeConfigs(brokers=[1, 2, 3], release=(4, 1))
    house.quotas.held[Entity(user="ANONYMOUS")] = {CONTROLLER_MUTATION_RATE: 1.0}
    house.stand_in(monkeypatch)
    named = " ".join(f"--topic t{number}" for number in range(4))
    session.kquota(f"topics {BROKER} --create {named} --partitions 9 --replication-factor 1 --output json")
    house.topics.lost_at = len(house.topics.requests) + 1
    session.kquota(f"topics {BROKER} --create {named} --partitions 9 --if-not-exists --output text")
    house.topics.held.clear()
    house.topics.lost_at = None
    session.kquota(f"topics {BROKER} --create {named} --partitions 900 --timeout 1s --output json")
    house.quotas.held.clear()
    house.topics.clock.sleep(60)
    house.topics.lost_at = len(house.topics.requests) + 2
    session.kquota(f"topics {BROKER} --create --topic t4 --topic t5 --topic t6 --partitions 1 --output text")
    session.must_be("contract-topics-lost")


def test_topics_with_an_unknown_result_are_named_with_the_broker_s_error(
    house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {"t0": Failure(code=7, reason="RequestTimedOut (7)"), "t2": Failure(code=-1, reason="Unknown (-1): failed.")}
    house.topics = Controller(clock=FakeClock(), held={"t0": 1, "t1": 1, "t2": 1}, late=late)
    house.configs = FakeConfigs(brokers=[1], release=(4, 1))
    house.stand_in(monkeypatch)
    ran = session.kquota(f"topics {BROKER} --delete --topic t.")
    assert ran.code == 1
    for error, topic in (("RequestTimedOut (7)", "t0"), ("Unknown (-1): failed", "t2")):
        command = f"kquota topics {BROKER} --describe --topic {topic}"
        check = f"Check with `{command}`, then run the command again with --if-exists"
        assert f"kquota: error: {error}. The result is unknown for {topic}. {check}\n" in ran.err


CREATION = "--create --topic new --topic newer --partitions 900"
DELETION = "--delete --topic old --topic older"
AGAIN = {
    "created": (CREATION, " with --if-not-exists"),
    "created if absent": (f"{CREATION} --if-not-exists", ""),
    "validated": (f"{CREATION} --validate-only", ""),
    "deleted": (DELETION, " with --if-exists"),
    "deleted if present": (f"{DELETION} --if-exists", ""),
    "grown": ("--alter --topic old --topic older --partitions 1800", ""),
}


@pytest.mark.parametrize(("command", "option"), AGAIN.values(), ids=AGAIN)
def test_a_command_that_did_a_part_names_the_option_with_which_it_can_be_repeated(
    house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    house.topics = Controller(clock=FakeClock(), rate=1.0, held={"old": 900, "older": 900})
    house.clock = type(house.clock)(house.topics.clock.sleep)
    house.configs = FakeConfigs(brokers=[1], release=(4, 1))
    house.stand_in(monkeypatch)
    ran = session.kquota(f"topics {BROKER} {command} --timeout 1s")
    rejected = "newer" if "newer" in command else "older"
    assert f"rejects 1 of 2 topics ({rejected}). Run the command again{option} in " in ran.err
    again = session.kquota(f"topics {BROKER} {command}{option.removeprefix(' with')} --timeout 1h")
    assert again.code != FAILED


COLLIDING = {
    "a period": ("--topic a.b", "a.b"),
    "an underscore": ("--topic a_b", "a_b"),
    "both": ("--topic a.b_c --topic plain-1", "a.b_c"),
    "many": (" ".join(f"--topic a.{number}" for number in range(12)), "a.9 and 2 more"),
    "neither": ("--topic plain-1", None),
}


@pytest.mark.parametrize(("named", "warned"), COLLIDING.values(), ids=COLLIDING)
def test_names_that_could_collide_cause_one_warning_as_in_kafka(
    house: InMemory, session: Transcript, named: str, warned: str | None
) -> None:
    ran = session.kquota(f"topics {BROKER} --create {named} --partitions 1")
    found = [line for line in ran.err.splitlines() if "could collide" in line]
    assert len(found) == (warned is not None)
    assert warned is None or f"{warned}: topics with a period ('.') or underscore ('_') could collide" in found[0]


class Raced(Controller):
    """A controller to which another client sends `CreateTopics` for topic `raced` just before."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        self.held.setdefault("raced", 1)
        return super().send(mutations, seconds)


def test_an_interrupted_command_also_reports_the_topics_that_existed(
    house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.topics = Raced(clock=FakeClock(), rate=1.0, held={"old": 1})
    house.clock = type(house.clock)(interrupt)
    house.configs = FakeConfigs(brokers=[1], release=(4, 1))
    house.stand_in(monkeypatch)
    named = "--topic old --topic raced --topic many --topic more"
    ran = session.kquota(f"topics {BROKER} --create {named} --partitions 900 --if-not-exists --timeout 2h")
    assert ran.code == 130
    for line in ("2 topics unchanged: old, raced", "1 topic done: many", "1 topic rejected by the quota: more"):
        assert f"kquota: {line}\n" in ran.err


def interrupt(_seconds: float) -> None:
    raise KeyboardInterrupt


def test_log_dirs(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    for more in ("", "--topic-list payments", "--broker-list 3", "--broker-list 9"):
        for form in ("text", "json"):
            session.kquota(f"log-dirs {BROKER} --describe {more} --output {form}".replace("  ", " "))
    session.patterns = {r"fake-\d{8}T\d{6}Z": "fake-NOW"}
    session.kquota(f"log-dirs {BROKER} --snapshot {tmp_path}/history")
    (path,) = (tmp_path / "history").iterdir()
    session.note(f"its lines:\n{gzip.decompress(path.read_bytes()).decode()}")
    session.must_be("contract-log-dirs")
