"""Contracts of `throttle`, and of a shared record that has problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kquota.cli.formats import WRITE
from kquota.cli.options import Output
from kquota.cli.record.run import answer
from kquota.settings.resource import Setting
from kquota.stores.record.sharing import Condition
from kquota.terms import (
    LEADER_RATE,
    LEADER_REPLICAS,
    TopicPartition,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, FORMS, ONE, TWO
from tests.cli.contracts.transcript import Transcript

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
    for form in (Output.text, Output.json):
        session.note(WRITE[form](answer("__kquota_runs", found)).removesuffix("\n"))
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
    session.kquota(f"{asked} --output json")
    session.kquota(f"{asked} --output text")
    session.must_be("contract-throttle-recovering")
