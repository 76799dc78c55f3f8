"""Contracts of wrong usage, in Kafka's words where Kafka has words for it."""

from __future__ import annotations

import pytest

from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ZOOKEEPER
from tests.cli.contracts.transcript import Transcript

pytestmark = pytest.mark.unit

WRONG = (
    f"configs {BROKER}",
    f"configs {BROKER} --alter --describe --user a",
    f"configs {BROKER} --describe",
    f"configs {BROKER} --describe --entity-type planets",
    f"configs {BROKER} --describe --entity-type user",
    f"configs {BROKER} --describe --entity-type users --entity-type users",
    f"configs {BROKER} --describe --entity-type users --entity-type topics",
    f"configs {BROKER} --describe --entity-type users --entity-name a --entity-name b",
    f"configs {BROKER} --describe --entity-type users --user a",
    f"configs {BROKER} --describe --user a --add-config producer_byte_rate=1",
    f"configs {BROKER} --describe --topic t --group g",
    f"configs {BROKER} --alter --user a",
    f"configs {BROKER} --alter --entity-type users --add-config producer_byte_rate=1",
    f"configs {BROKER} --alter --entity-type topics --add-config retention.ms=1",
    f"configs {BROKER} --alter --broker one --add-config retention.ms=1",
    f"configs {BROKER} --alter --ip no/host --add-config connection_creation_rate=1",
    f"configs {BROKER} --alter --user a --add-config producer_byte_rate",
    f"configs {BROKER} --alter --user a --add-config producer_byte_rate=many",
    f"configs {BROKER} --alter --user a --add-config retention.ms=1",
    f"configs {BROKER} --alter --user a --add-config SCRAM-SHA-256=[password=CANARY]",
    f"configs {BROKER} --alter --user a --delete-config a=b",
    f"configs {BROKER} --alter --user a --add-config controller_mutations_rate=5",
    f"configs {BROKER} {ZOOKEEPER} --describe --user a",
    "configs --describe --user a",
    f"reassign-partitions {BROKER}",
    f"reassign-partitions {BROKER} --execute --verify",
    f"reassign-partitions {BROKER} --execute",
    f"reassign-partitions {BROKER} --verify --reassignment-json-file no-such.json --throttle 5",
    f"reassign-partitions {BROKER} --generate --topics-to-move-json-file t.json",
    f"reassign-partitions {BROKER} --list --broker-list 1",
    f"reassign-partitions {BROKER} --execute --reassignment-json-file no-such.json --throttle 0",
    f"reassign-partitions {BROKER} --execute --reassignment-json-file no-such.json",
    f"reassign-partitions {BROKER} --verify --reassignment-json-file no-such.json --output tsv",
    f"reassign-partitions {BROKER} --verify",
    f"reassign-partitions {BROKER} --verify --all-runs --reassignment-json-file no-such.json",
    f"reassign-partitions {BROKER} --verify --all-runs --clear-all",
    f"reassign-partitions {BROKER} --verify --all-runs --quiet --output json",
    f"reassign-partitions {BROKER} --execute --all-runs",
    f"reassign-partitions {ZOOKEEPER} --cancel --reassignment-json-file no-such.json",
    f"reassign-partitions {ZOOKEEPER} --execute --reassignment-json-file no-such.json --additional",
    "reassign-partitions --bootstrap-server b1:9092 --bootstrap-controller b1:9093 --list",
    "reassign-partitions --bootstrap-controller b1:9093 --verify --reassignment-json-file plan.json",
    "reassign-partitions --bootstrap-controller b1:9093 --cancel --reassignment-json-file plan.json",
    "configs --bootstrap-server b1:9092 --bootstrap-controller b1:9093 --describe --broker 3",
    "configs --bootstrap-controller b1:9093 --describe --user alice",
    "throttle clear --zookeeper z1:2181 --bootstrap-controller b1:9093",
    f"topics {BROKER}",
    f"topics {BROKER} --create",
    f"topics {BROKER} --create --list",
    f"topics {BROKER} --create --topic t --if-exists",
    f"topics {BROKER} --alter --topic t",
    f"topics {BROKER} --describe --topic t --topic-id x",
    f"topics {BROKER} --describe --topics-with-overrides --unavailable-partitions",
    f"topics {BROKER} --create --topic a/b",
    f"topics {BROKER} --create --topic t --partitions 0",
    f"topics {BROKER} --create --topic t --replica-assignment 1:2,1",
    f"topics {BROKER} --create --topic t --output tsv",
    f"topics {ZOOKEEPER} --list",
    f"log-dirs {BROKER}",
    f"log-dirs {BROKER} --describe --broker-list 7,8",
    f"quota apply {BROKER} no-such.yaml --yes",
    "quota simulate --topics 3",
    f"throttle set {BROKER} --throttle 5MB/s",
    f"throttle clear {BROKER} --all",
    f"move plan {BROKER}",
    "move estimate --reassignment-json-file no-such.json",
    "sandbox down zk --all",
    "sandbox env no-such",
    "sandbox status no-such",
    "sandbox status no-such --output json",
    "no-such-command",
)


def test_wrong_usage(house: InMemory, session: Transcript) -> None:
    assert house.folder
    for command in WRONG:
        session.kquota(command)
    session.must_be("contract-usage")
