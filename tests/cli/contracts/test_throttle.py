"""Contracts of `throttle`, and of a shared record that has problems."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import pytest

from kquota.cli.formats import WRITE
from kquota.cli.options import Output
from kquota.cli.record.run import answer
from kquota.errors import Refused, Retry, Unreachable
from kquota.reassign.port import Snapshot
from kquota.settings.resource import Setting
from kquota.stores.record.sharing import Condition
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, THROTTLE_LISTS, THROTTLE_RATES, BrokerId, TopicPartition
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, FORMS, ONE, THREE, TWO, plan
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.reassign.records import alone

pytestmark = pytest.mark.unit


def test_a_shared_record_with_problems_and_runs(session: Transcript) -> None:
    found = Condition(
        identity="0e7c2f2a",
        replicas=1,
        wrong=["cleanup.policy is delete"],
        weak=["it has 1 replica"],
        writer="another kquota (move resume)",
        open_runs=["20260301T123000Z-01", "20260301T123000Z-02"],
        ended_runs=1,
        unreadable={"20260301T123000Z-03": "it has format 2"},
        foreign=2,
    )
    unread = Condition(identity="0e7c2f2a", replicas=1, wrong=["it has 2 partitions, and the record needs one"])
    for form in (Output.text, Output.json):
        for one in (found, unread):
            session.note(WRITE[form](answer("__kquota_runs", one)).removesuffix("\n"))
    session.must_be("contract-record-condition")


def test_throttles(house: InMemory, session: Transcript) -> None:
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "123456789"
    house.cluster.configs[Setting.of_topic("payments", LEADER_REPLICAS)] = "7:7"

    def throttle(command: str, forms: Sequence[str] = ("text", "json")) -> None:
        for form in forms:
            session.kquota(f"throttle {command} {BROKER} --output {form}".replace("  ", " "))

    wanted = "set --topic orders --broker 1,2 --throttle 5MB/s --sample 0 --reason CHG-7"
    throttle("show --sample 0", FORMS)
    throttle(f"{wanted} --dry-run")
    throttle(wanted, ["text"])
    throttle(wanted, ["json"])
    throttle("show --sample 0", FORMS)
    throttle("show --sample 0 --topic orders", FORMS)
    (run,) = (path.stem for path in house.folder.rglob("*.journal"))
    throttle(f"set --run {run} --throttle 7MB/s --sample 0", ["json", "text"])
    throttle("doctor", FORMS)
    throttle("clear --dry-run")
    throttle("clear", ["json", "text"])
    house.cluster.configs[Setting.of_topic("orders", LEADER_REPLICAS)] = "0:1,9:9"
    session.note("another tool has set a list")
    throttle("doctor", FORMS)
    throttle("doctor --fix --yes --older-than 1h", ["json"])
    throttle("doctor --fix --yes", ["json", "text"])
    throttle("clear --all --dry-run")
    throttle("clear --all --yes", ["json", "text"])
    session.must_be("contract-throttle")


def test_doctor_removes_an_empty_list(house: InMemory) -> None:
    """A kill between the two writes that unset a list leaves it empty."""
    empty = Setting.of_topic("orders", LEADER_REPLICAS)
    house.cluster.configs[empty] = ""
    ran = kquota_here("throttle", "doctor", *BROKER.split())
    assert (ran.code, ran.out.splitlines()) == (
        8,
        [
            "list-empty: topic orders leader.replication.throttled.replicas: is set, but has no entries; limits "
            "nothing. Do: `kquota throttle doctor --bootstrap-server b1:9092 --fix`",
        ],
    )
    ran = kquota_here("throttle", "doctor", "--fix", "--yes", *BROKER.split(), "--output", "json")
    assert (ran.code, [one["name"] for one in json.loads(ran.out)["fixed"]]) == (0, ["orders"])
    line = "topic orders leader.replication.throttled.replicas: (empty) -> unset"
    assert f"kquota: removed: {line}\n" in ran.err
    assert empty not in house.cluster.configs


@pytest.mark.parametrize("gone", [True, False], ids=["another tool removed it", "another run holds it"])
def test_a_run_that_ends_without_a_restored_value_is_named(house: InMemory, gone: bool) -> None:
    set_it = ("throttle", "set", "--topic", "orders", "--throttle", "5MB/s", "--sample", "0", *BROKER.split())
    kquota_here(*set_it)
    (run,) = (path.stem for path in house.folder.rglob("*.journal"))
    if gone:
        for setting in [name for name in house.cluster.configs if name.key in (*THROTTLE_LISTS, *THROTTLE_RATES)]:
            house.cluster.configs.pop(setting)
    else:
        kquota_here(*set_it, "--topic", "payments")
    why = "because other clients changed the values, or other open runs hold them"
    ran = kquota_here("throttle", "clear", "--run", run, "--dry-run", *BROKER.split())
    assert (ran.code, ran.err) == (0, f"kquota: {run}: nothing would be restored, {why}\n")
    ran = kquota_here("throttle", "clear", "--run", run, *BROKER.split())
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(f"kquota: {run}: nothing was restored, {why}\n")
    assert ("5000000" in house.cluster.configs.values()) is not gone


def test_a_rate_of_1_is_1_byte_per_second(house: InMemory, session: Transcript) -> None:
    ran = session.kquota(f"throttle set {BROKER} --all-topics --all-brokers --throttle 1 --sample 0 --dry-run")
    assert "kquota: throttle: 1 byte per second (1 B/s) on each broker\n" in ran.err


def test_a_returning_broker_is_throttled(house: InMemory, session: Transcript) -> None:
    behind = TopicPartition("orders", 0)
    house.cluster.partitions[behind] = replace(house.cluster.partitions[behind], isr=(ONE,))
    asked = f"throttle set {BROKER} --recovering 2 --throttle 5MB/s --once"
    for form in ("text", "json"):
        session.kquota(f"{asked} --dry-run --output {form}")
    session.kquota(f"{asked} --output json")
    session.kquota(f"{asked} --output text")
    house.cluster.partitions[behind] = replace(house.cluster.partitions[behind], isr=(ONE, TWO))
    session.note("broker 2 has caught up")
    for form in ("text", "json"):
        session.kquota(f"{asked} --dry-run --output {form}")
    session.kquota(f"{asked} --output json")
    session.kquota(f"{asked} --output text")
    session.must_be("contract-throttle-recovering")


def test_the_reason_of_a_recovery_is_recorded(house: InMemory, session: Transcript) -> None:
    behind = TopicPartition("orders", 0)
    house.cluster.partitions[behind] = replace(house.cluster.partitions[behind], isr=(ONE,))
    session.kquota(f"throttle set {BROKER} --recovering 2 --throttle 5MB/s --once --reason CHG-7")
    [run] = alone(house.folder, CLUSTER_ID).unfinished()
    assert run.reason == "CHG-7"


def test_a_dry_run_of_clear_all_shows_the_rates_of_dead_brokers(house: InMemory, session: Transcript) -> None:
    house.cluster.alive.remove(THREE)
    house.cluster.controllers = True
    for form in ("text", "json"):
        session.kquota(f"throttle clear {BROKER} --all --dry-run --output {form}")
    session.kquota(f"throttle clear {BROKER} --all --yes")
    session.must_be("contract-throttle-dead")


@pytest.mark.parametrize(
    ("replicas", "hint"),
    [
        ((ONE, THREE), "or move its replicas to other brokers and then unregister it with kafka-cluster.sh if it is"),
        ((ONE, TWO), "or unregister it with kafka-cluster.sh if it is gone for good"),
    ],
)
def test_a_dead_broker_is_drained_before_it_is_unregistered(
    house: InMemory, replicas: tuple[BrokerId, ...], hint: str
) -> None:
    """Otherwise, its rates stay unknown, because replicas are still on it."""
    for name, now in house.cluster.partitions.items():
        house.cluster.partitions[name] = replace(now, replicas=replicas, isr=(ONE,))
    house.cluster.alive.remove(THREE)
    house.fenced = (THREE,)
    ran = kquota_here("throttle", "show", "--no-sample", *BROKER.split())
    assert (ran.code, f"Check that it is running, {hint}" in ran.err) == (8, True), ran


@pytest.mark.parametrize("command", ["show --no-sample", "doctor", "doctor --fix --yes", "clear --all --yes"])
def test_the_rates_of_a_dead_broker_without_replicas_are_unknown(house: InMemory, command: str) -> None:
    """It was drained, but its rate is still set in the controllers."""
    for name, now in house.cluster.partitions.items():
        house.cluster.partitions[name] = replace(now, replicas=(ONE, TWO), isr=(ONE, TWO))
    house.cluster.alive.remove(THREE)
    house.cluster.controllers = True
    rate = Setting.of_broker(THREE, LEADER_RATE)
    house.cluster.configs[rate] = "9"
    house.fenced = (THREE,)
    words = ["throttle", *command.split(), *BROKER.split(), "--output", "json"]
    ran = kquota_here(*words)
    nothing = any(words in ran.err for words in ("nothing is throttled", "there is nothing to remove"))
    assert (nothing, ran.code) == (False, 0 if "--yes" in words else 8)
    found = json.loads(ran.out)
    assert found.get("cleared_brokers" if "--yes" in words else "unread_brokers") == [3]
    assert (rate in house.cluster.configs) == ("--yes" not in words)


VERIFIED: Final = "reassign-partitions --verify --clear-all --reassignment-json-file"


@pytest.mark.parametrize(
    "command",
    [
        "throttle show --no-sample",
        "throttle doctor",
        "throttle doctor --fix --yes",
        "throttle clear --all --yes",
        "throttle clear --all --dry-run",
        VERIFIED,
    ],
)
def test_unknown_fenced_brokers_are_never_a_clean_result(house: InMemory, tmp_path: Path, command: str) -> None:
    """A fenced broker without replicas can have a rate. A broker can refuse to list the fenced brokers."""
    house.fenced = Refused("fenced brokers: the broker answered Unknown (-1)", Retry(". Run the command again"))
    file = [str(plan(tmp_path, {("orders", 0): [1, 2]}))] if command == VERIFIED else []
    ran = kquota_here(*command.split(), *file, *BROKER.split(), "--output", "json")
    assert json.loads(ran.out).get("unread_brokers") is None, "unknown is never an empty list"
    text = kquota_here(*command.split(), *file, *BROKER.split())
    assert "nothing is throttled" not in text.out
    why = "fenced brokers: the broker answered Unknown (-1). Run the same command again"
    unknown = f"warning: it is unknown whether dead brokers without replicas have throttle rates: {why}"
    for each in (ran, text):
        assert (each.code, unknown in each.err) == (8, True), each
        assert "there is nothing to remove" not in each.err


UNLISTED = "fenced brokers: the broker answered Unknown (-1). Run the command again"


@pytest.mark.parametrize(
    ("command", "fenced", "why"),
    [
        ("show", None, f"broker 7 is dead or does not exist. {UNLISTED}"),
        ("set --throttle 1MB/s", None, f"broker 7 is dead or does not exist. Nothing was written. {UNLISTED}"),
        ("show", (), "broker 7 does not exist (known brokers: 1,2,3). Correct --broker"),
    ],
)
def test_a_broker_that_may_be_dead_is_not_reported_as_absent(
    house: InMemory, command: str, fenced: tuple[BrokerId, ...] | None, why: str
) -> None:
    unlisted = Refused("fenced brokers: the broker answered Unknown (-1)", Retry(". Run the command again"))
    house.fenced = unlisted if fenced is None else fenced
    ran = kquota_here("throttle", *command.split(), "--broker", "7", *BROKER.split())
    assert (ran.code, ran.err.endswith(f"kquota: error: {why}\n")) == (1, True), ran


@pytest.mark.parametrize("command", ["doctor", "clear --all --yes", "clear --all --dry-run"])
def test_a_topic_that_kafka_hides_is_never_a_clean_result(
    house: InMemory, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lists may be set. Only the logs on brokers show the topic."""
    house.logs.topic("secret", [[1, 2]])
    snapshot = house.cluster.snapshot

    def hiding(topics: Collection[str] | None) -> Snapshot:
        if topics is not None and "secret" in topics:
            raise Refused("topic secret: the broker answered TopicAuthorizationFailed (29)")
        return snapshot(topics)

    monkeypatch.setattr(house.cluster, "snapshot", hiding)
    ran = kquota_here("throttle", *command.split(), *BROKER.split())
    assert ran.code == 8
    assert "warning: Kafka hides 1 topic from this user (secret)" in ran.err
    assert "there is nothing to remove" not in ran.err


def test_clear_all_says_that_hidden_topics_are_unknown(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> NoReturn:
        raise Unreachable("broker 2: no answer")

    monkeypatch.setattr(house.logs, "describe", silent)
    ran = kquota_here("throttle", "clear", "--all", "--yes", *BROKER.split())
    why = "it is unknown whether Kafka hides topics from this user: broker 2: no answer. Run the same command again"
    assert (ran.code, f"warning: {why}\n" in ran.err, "there is nothing to remove" in ran.err) == (8, True, False), ran


@pytest.mark.parametrize("controllers", [True, False])
def test_verify_clear_all_also_clears_a_dead_broker_without_replicas(
    house: InMemory, session: Transcript, tmp_path: Path, controllers: bool
) -> None:
    """The exit code is 0 only if the rate is removed."""
    for name, now in house.cluster.partitions.items():
        house.cluster.partitions[name] = replace(now, replicas=(ONE, TWO), isr=(ONE, TWO))
    house.cluster.alive.remove(THREE)
    house.cluster.controllers = controllers
    house.cluster.configs[Setting.of_broker(THREE, LEADER_RATE)] = "9"
    house.fenced = (THREE,)
    file = plan(tmp_path, {("orders", 0): [1, 2]})
    ran = session.kquota(f"reassign-partitions --verify --clear-all {BROKER} --reassignment-json-file {file}")
    assert (ran.code, house.cluster.configs == {}) == ((0, True) if controllers else (8, False)), ran
