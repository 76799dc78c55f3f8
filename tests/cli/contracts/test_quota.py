"""Contracts of `quota`: the document of all quotas, explanations, probes and simulations."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kquota.cli import world
from kquota.cli.quota.advise.source import MeasuredTime, UseSource
from kquota.errors import ExamineZnode, NextStep, NotSent, Refused, StepFor, Unreachable
from kquota.quota.advice import BucketStatistics
from kquota.quota.entity import Entity
from kquota.quota.limits import Replacement
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Resource
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.metrics.broker_metrics import BrokerMetrics, Sample, metrics_of
from kquota.terms import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    FOLLOWER_RATE,
    LEADER_RATE,
    LEADER_REPLICAS,
    PRODUCER_BYTE_RATE,
    BrokerId,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, FORMS, ZOOKEEPER, quotas, written
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.quota.fake import MemoryPrincipals
from tests.settings.fake import FakeConfigs
from tests.stores.admin.quota_broker import QuotaBroker

pytestmark = pytest.mark.unit

DOCUMENT = """\
version: 1
owns: ["user:*", "client:*", default-user]
protect: ["client:a*"]
users:
  alice:
    producer_byte_rate: 20MB/s
    clients:
      etl: {request_percentage: 12.5}
  carol: {controller_mutation_rate: 3}
ips:
  10.0.0.1: {connection_creation_rate: 20}
replication-throttles:
  brokers:
    1: {leader.replication.throttled.rate: 5MB/s}
  topics:
    orders: {leader.replication.throttled.replicas: "0:1"}
"""


def test_quotas_as_one_document(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.quotas = quotas()
    house.configs = FakeConfigs(topics=["orders"], brokers=[1, 2], release=(4, 1))
    house.configs.held[Resource(kind=BROKERS, name="1")] = {LEADER_RATE: "1000", FOLLOWER_RATE: "1000"}
    house.configs.held[Resource(kind=TOPICS, name="orders")] = {LEADER_REPLICAS: "0:1,0:2"}
    house.stand_in(monkeypatch)
    file = written(tmp_path, "quotas.yaml", DOCUMENT)
    for more in ("", "--replication-throttles"):
        for form in ("text", "json"):
            session.kquota(f"quota export {BROKER} {more} --output {form}".replace("  ", " "))
    for form in FORMS:
        session.kquota(f"quota diff {BROKER} {file} --prune --output {form}")
    for form in ("text", "json"):
        session.kquota(f"quota apply {BROKER} {file} --prune --dry-run --output {form}")
    session.kquota(f"quota apply {BROKER} {file} --change sha256:0000000000000000")
    session.kquota(f"quota apply {BROKER} {file}")
    session.kquota(f"quota apply {BROKER} {file} --prune --yes --output json")
    for form in FORMS:
        session.kquota(f"quota diff {BROKER} {file} --prune --output {form}")
    house.quotas.held[Entity(user="alice")] = {PRODUCER_BYTE_RATE: 1.0}
    session.note("another client has changed alice's quota")
    session.kquota(f"quota apply {BROKER} {file} --yes")
    session.kquota(f"quota export {ZOOKEEPER} --output json")
    session.must_be("contract-quota-document")


FOREIGN = {
    "strimzi": """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: alice}
spec: {quotas: {producerByteRate: 1000}}
---
apiVersion: v1
kind: Secret
""",
    "rpk": """\
quotas:
  - entity: [{name: alice, type: user}]
    values: [{key: producer_byte_rate, values: "1000"}]
  - entity: [{name: etl-, type: client-id-prefix}]
    values: [{key: producer_byte_rate, values: "5"}]
""",
}


def test_quotas_in_the_formats_of_other_tools(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.quotas = quotas()
    house.stand_in(monkeypatch)
    for form in ("kquota", "strimzi", "terraform", "rpk"):
        session.kquota(f"quota export {BROKER} --format {form}")
    session.kquota(f"quota export {BROKER} --format rpk --output json")
    session.kquota(f"quota export {BROKER} --format rpk --replication-throttles")
    for form, text in FOREIGN.items():
        file = written(tmp_path, f"{form}.yaml", text)
        session.kquota(f"quota diff {BROKER} {file} --format {form}")
        session.kquota(f"quota diff {BROKER} {file} --format {form} --prune")
        session.kquota(f"quota apply {BROKER} {file} --format {form}")
        session.kquota(f"quota apply {BROKER} {file} --format {form} --yes")
    session.kquota(f"quota diff {BROKER} {file} --format terraform")
    session.kquota(f"quota diff {BROKER} {file}")
    session.must_be("contract-quota-formats")


def test_a_quota_of_an_unknown_entity_type(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker: Any = QuotaBroker(lenient=True)
    broker.held = {
        frozenset({("client-id-prefix", "etl-")}): {PRODUCER_BYTE_RATE: 1_000.0},
        frozenset({("client-id", "etl-1")}): {PRODUCER_BYTE_RATE: 2_000_000.0},
    }

    @contextmanager
    def over_the_wire(_at: world.Where, warned: Callable[[str], None] | None = None) -> Iterator[WireQuotas]:
        yield WireQuotas(broker, warned or world.warn)

    house.configs = FakeConfigs(brokers=[1, 2], release=(4, 1), static={"num.io.threads": "8"})
    house.stand_in(monkeypatch)
    monkeypatch.setattr(world, "quotas", over_the_wire)
    file = written(tmp_path, "quotas.yaml", 'version: 1\nowns: ["*"]\n')
    for form in ("text", "json"):
        session.kquota(f"quota export {BROKER} --output {form}")
    session.kquota(f"quota diff {BROKER} {file} --prune")
    session.kquota(f"quota apply {BROKER} {file} --prune --yes")
    for form in FORMS:
        session.kquota(f"quota explain {BROKER} --all --output {form}")
    session.kquota(f"configs {BROKER} --describe --entity-type clients")
    session.must_be("contract-quota-unknown-entity")


class Contested(MemoryPrincipals):
    """Another client changes alice's limits before each replacement."""

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        self.held[Entity(user="alice")] = {PRODUCER_BYTE_RATE: self.held[Entity(user="alice")][PRODUCER_BYTE_RATE] + 1}
        return super().replace(batch)


def test_quotas_that_were_not_applied(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.quotas = Contested()
    house.quotas.held = quotas().held
    house.stand_in(monkeypatch)
    file = written(tmp_path, "quotas.yaml", "version: 1\nusers:\n  alice: {producer_byte_rate: 2MB/s}\n  bob: {}\n")
    for form in ("json", "text"):
        session.kquota(f"quota apply {BROKER} {file} --yes --output {form}")
    session.kquota(f"quota diff {BROKER} {file}")
    session.kquota(f"quota apply {BROKER} {file} --change sha256:b430da7fd4add644")
    session.must_be("contract-quota-undone")


def test_a_quota_in_a_damaged_znode_comes_with_the_command_that_shows_the_znode(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/config/users/alice"
    error = Refused(f"{path} is not a config that Kafka wrote. ", ExamineZnode(path))
    monkeypatch.setattr(house.quotas, "replace", lambda _: {Entity(user="alice"): error})
    file = written(tmp_path, "quotas.yaml", "version: 1\nusers:\n  alice: {producer_byte_rate: 2MB/s}\n")
    ran = kquota_here("quota", "apply", "--zookeeper", "z1:2181", str(file), "--yes", "--output", "json")
    [undone] = json.loads(ran.out)["undone"]
    examine = "Examine it with `zookeeper-shell.sh z1:2181 get /config/users/alice`"
    assert undone["why"] == f"/config/users/alice is not a config that Kafka wrote. {examine}"
    assert (ran.code, f"({undone['why']})" in ran.err) == (1, True), ran


class Interrupted(MemoryPrincipals):
    """The operator presses Ctrl-C during the second batch."""

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        if self.held:
            raise KeyboardInterrupt
        return super().replace(batch)


@pytest.mark.parametrize("reviewed", [True, False])
def test_an_interrupted_apply_prints_the_command_that_continues_it(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviewed: bool
) -> None:
    house.quotas = Interrupted()
    house.stand_in(monkeypatch)
    users = "".join(f"  user-{number}: {{producer_byte_rate: 2MB/s}}\n" for number in range(1_001))
    file = written(tmp_path, "quotas.yaml", f"version: 1\nusers:\n{users}")
    change = json.loads(session.kquota(f"quota diff {BROKER} {file} --output json").out)["change"]
    ran = session.kquota(f"quota apply {BROKER} {file} {f'--change {change}' if reviewed else '--yes'}")
    review = f"Review the rest with `kquota quota diff {BROKER} {file}`"
    again = review if reviewed else "Run the same command again to apply the rest"
    assert f"sent: 1,000 of 1,001 entities, and possibly one more batch. {again}\n" in ran.err


class Lossy(FakeConfigs):
    """The answer to each write is lost."""

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        (change,) = changes
        step = StepFor(NextStep.SHOW_TOPIC_CONFIGS, str(change.resource.name))
        raise Unreachable("no answer. The change may have been written. Check with ", step)


def test_a_throttle_whose_write_is_unknown_has_the_command_that_shows_it(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.configs = Lossy(topics=["orders"], brokers=[1], release=(4, 1))
    house.stand_in(monkeypatch)
    throttles = 'replication-throttles: {topics: {orders: {leader.replication.throttled.replicas: "0:1"}}}\n'
    file = written(tmp_path, "quotas.yaml", f"version: 1\n{throttles}")
    ran = session.kquota(f"quota apply {BROKER} {file} --yes")
    check = f"Check with `kquota configs {BROKER} --describe --topic orders`)"
    assert f"topic 'orders' (unknown: no answer. The change may have been written. {check}" in ran.err


def test_a_throttle_that_was_not_sent_is_not_unknown(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alter(_: object) -> NoReturn:
        raise NotSent("no active controller. Nothing was written")

    house.configs = FakeConfigs(topics=["orders"], brokers=[1], release=(4, 1))
    monkeypatch.setattr(house.configs, "alter", alter)
    house.stand_in(monkeypatch)
    throttles = 'replication-throttles: {topics: {orders: {leader.replication.throttled.replicas: "0:1"}}}\n'
    file = written(tmp_path, "quotas.yaml", f"version: 1\n{throttles}")
    ran = session.kquota(f"quota apply {BROKER} {file} --yes")
    assert "topic 'orders' (no active controller. Nothing was written)" in ran.err


def test_which_quota_applies_and_the_findings(
    house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.quotas = quotas()
    house.configs = FakeConfigs(
        topics=["orders"],
        brokers=[1, 2],
        release=(4, 1),
        static={"num.io.threads": "8", "num.network.threads": "3", "quota.window.num": "11"},
    )
    house.stand_in(monkeypatch)
    for client in ("--user alice --client-id etl", "--user bob", "--ip 10.0.0.1", "--all"):
        for form in FORMS:
            session.kquota(f"quota explain {BROKER} {client} --output {form}")
    session.must_be("contract-quota-explain")


PROBES = (
    "--produce 20MB/s",
    "--consume --broker-list 1,2 --seconds 30",
    "--requests --client-id etl",
    "--create-topics",
)


def test_the_dry_run_of_a_probe(house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    house.quotas = quotas()
    house.configs = FakeConfigs(brokers=[1, 2, 3], release=(4, 1), static={"num.io.threads": "8"})
    house.stand_in(monkeypatch)
    for load in PROBES:
        for form in ("text", "json"):
            session.kquota(f"quota probe {BROKER} {load} --dry-run --output {form}")
    for form in ("text", "json"):
        session.kquota(f"quota probe {BROKER} --clean-up --dry-run --output {form}")
    session.must_be("contract-quota-probe-dry-run")


LOADS = (
    "--controller-mutation-rate 5 --topics 7 --partitions 80",
    "--controller-mutation-rate 5 --topics 7 --partitions 80 --model draft-even",
    "--topics 200 --partitions 12 --within 10m",
    "--producer-byte-rate 10MB/s --load 25MB/s --request-size 1MB",
    "--producer-byte-rate 10MB/s --request-percentage 1 --load 25MB/s --thread-time 1ms",
    "--consumer-byte-rate 30MB/s --load 25MB/s --request-size 1MB",
)


def test_simulations(session: Transcript, tmp_path: Path) -> None:
    rows = "".join(f"{at},1000000,2,billing\n" for at in range(0, 5_000, 40))
    with gzip.open(tmp_path / "trace.csv.gz", "wt") as file:
        file.write(f"ms,bytes,thread_ms,client_id\n{rows}")
    for load in LOADS:
        for form in ("text", "json"):
            session.kquota(f"quota simulate {load} --output {form}")
    for form in ("text", "json"):
        session.kquota(f"quota simulate --producer-byte-rate 10MB/s --trace {tmp_path}/trace.csv.gz --output {form}")
    session.must_be("contract-quota-simulate")


def _of_broker(broker: str, *buckets: tuple[str, str | None, str | None, BucketUse]) -> BrokerMetrics:
    """The metrics of a broker, under the packed names that its exporter gives the buckets."""
    samples = [Sample("kafka_server_app_info_version", {"id": broker}, 1.0)]
    for metric, user, client_id, use in buckets:
        labels = {"user": user or "", "client_id": client_id or ""}
        values = {
            "mutation_rate" if metric == "controllermutation" else "byte_rate": use.used,
            "throttle_time": use.throttle_ms,
            "tokens": use.tokens,
        }
        samples += [
            Sample(f"kafka_server_{metric}_{kind}", labels, value)
            for kind, value in values.items()
            if value is not None
        ]
    return metrics_of(samples, "unnamed")


def test_the_clients_with_their_quotas(house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    house.quotas = quotas()
    house.quotas.alive = frozenset(map(BrokerId, (1, 2, 3)))
    house.stand_in(monkeypatch)
    found: list[BrokerMetrics | Unreachable] = [
        replace(
            _of_broker(
                "1",
                ("produce", "alice", None, BucketUse(broker="1", used=12_000_000.12345, throttle_ms=1_285.06)),
                ("fetch", None, "a\tb\\c", BucketUse(broker="1", used=0.25)),
                ("fetch", None, "größer", BucketUse(broker="1", used=7.0)),
                ("controllermutation", "bob", None, BucketUse(broker="1", used=1.5, tokens=-3.0)),
            ),
            queue_ms=12.345,
        ),
        _of_broker("2", ("produce", "alice", None, BucketUse(broker="2", used=5_000_000.0, throttle_ms=0.0))),
        _of_broker("3"),
    ]
    monkeypatch.setattr(world, "usage_reader", lambda *_: lambda: found)
    top = f"quota top {BROKER} --metrics http://b1:7071/metrics"
    for form in FORMS:
        session.kquota(f"{top} --output {form}")
        session.kquota(f"{top} --limited --output {form}")
    session.kquota(f"{top} --lines 1")
    session.note("broker 3 does not answer")
    found[2] = Unreachable("http://b3:7071/metrics: no answer within 5 s")
    session.kquota(f"{top} --output json")
    session.note("two brokers are not known")
    mutations = ("controllermutation", "bob", None, BucketUse(broker="3000", used=1.5))
    found[1:] = [_of_broker("3000", mutations), replace(_of_broker("3"), broker="b3:7071")]
    session.kquota(f"{top} --limited --output json")
    session.kquota(f"quota top {BROKER} --prometheus http://p:9090 --output json")
    session.note("two clusters, and a controller")
    found[1:] = [_of_broker("2"), _of_broker("3"), _of_broker("3000", mutations)]
    found += [_of_broker(id, ("fetch", "alice", None, BucketUse(broker=id, used=1.0))) for id in ("7", "8")]
    session.kquota(f"quota top {BROKER} --prometheus http://p:9090 --output json")
    session.note("a client without a quota is throttled")
    found[:] = [_of_broker("1", ("produce", "carol", None, BucketUse(broker="1", used=1.0, throttle_ms=5.0)))]
    house.quotas.alive = frozenset({BrokerId(1)})
    session.kquota(f"{top} --limited --output tsv")
    session.note("no client has a quota metric")
    found[:] = [_of_broker("1")]
    for form in FORMS:
        session.kquota(f"{top} --output {form}")
    session.must_be("contract-quota-top")


class Measured:
    """A job that measured one client. Implements the part of `UsageJob` that `quota advise` uses."""

    def statistics(self, _percentile: float, _keys: object) -> list[BucketStatistics]:
        bucket = QuotaBucket(key=PRODUCER_BYTE_RATE, user="alice", client_id=None)
        return [BucketStatistics(bucket=bucket, broker="1", percentile=1e6, most=1e6, seconds=60, throttled=0)]

    def pieces(self, _brokers: object) -> list[object]:
        return []


class MeasuredDay:
    """A job that measured a day: a client with a peak, a throttled one, and one without a predicted throttle time."""

    def statistics(self, _percentile: float, _keys: object) -> list[BucketStatistics]:
        def use(key: str, user: str | None, client_id: str | None, usual: float, most: float) -> BucketStatistics:
            bucket = QuotaBucket(key=key, user=user, client_id=client_id)
            throttled = 60 if user == "alice" else 0
            return BucketStatistics(
                bucket=bucket, broker="2", percentile=usual, most=most, seconds=82_800, throttled=throttled
            )

        return [
            use(PRODUCER_BYTE_RATE, None, "bursts", 1_000_000.12345, 9_999_999.98765),
            use(CONSUMER_BYTE_RATE, "alice", "größer", 1_000_000.0, 1_200_000.0),
            use(CONTROLLER_MUTATION_RATE, "bob", None, 2.5, 20.0),
        ]

    def pieces(self, brokers: Mapping[QuotaBucket, str]) -> list[tuple[QuotaBucket, list[tuple[float, float]]]]:
        return [(bucket, [(1e6, 36_000.0), (1e7, 600.0), (1e6, 46_200.0)]) for bucket in brokers]


def test_proposed_quotas(house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    house.quotas = quotas()
    house.configs = FakeConfigs(brokers=[1, 2], release=(4, 1), static={"num.io.threads": "8"})
    house.stand_in(monkeypatch)
    began = datetime(2026, 3, 1, tzinfo=UTC)
    measured = MeasuredTime(cluster_id="cluster-1", begin=began, end=began.replace(hour=23))
    monkeypatch.setattr(UseSource, "opened", lambda *_: (measured, MeasuredDay()))
    for form in FORMS:
        session.kquota(f"quota advise {BROKER} --usage {tmp_path} --output {form}")
    for form in FORMS:
        session.kquota(f"quota advise {BROKER} --usage {tmp_path} --network 1GB/s --brokers 4 --output {form}")
    session.must_be("contract-quota-advise")


@pytest.mark.parametrize(("form", "warned"), [("text", True), ("json", False)])
def test_a_proposed_document_with_a_limit_that_is_not_valid_has_a_warning(
    house: InMemory, session: Transcript, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str, warned: bool
) -> None:
    house.quotas.held[Entity(user="alice")] = {CONSUMER_BYTE_RATE: 0.0}
    began = datetime(2026, 11, 20, tzinfo=UTC)
    measured = MeasuredTime(cluster_id="c", begin=began, end=began)
    monkeypatch.setattr(UseSource, "opened", lambda *_: (measured, Measured()))
    ran = session.kquota(f"quota advise {BROKER} --usage {tmp_path} --output {form}")
    assert ran.code == 0
    line = (
        "kquota: warning: user 'alice': consumer_byte_rate is 0.0, which is not valid in a document. "
        "Correct the value before you apply the document\n"
    )
    assert (line in ran.err) is warned
