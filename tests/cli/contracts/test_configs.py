"""Contracts of `configs`: quotas, topics and brokers, over brokers and over ZooKeeper."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kquota import library
from kquota.cli import clock, world
from kquota.cli.connection import READ_LOGINS
from kquota.errors import Refused, Retry, Unreachable
from kquota.settings.change import ConfigChange
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource
from kquota.stores.admin import broker_metadata
from kquota.stores.admin import configs as stored
from kquota.terms import (
    DEFAULT,
    FOLLOWER_RATE,
    LEADER_RATE,
    BrokerId,
)
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, FORMS, ZOOKEEPER, quotas
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.settings.fake import FakeConfigs

pytestmark = pytest.mark.unit

DESCRIBED = (
    "--entity-type users",
    "--entity-type users --entity-type clients",
    "--entity-type clients",
    "--entity-type ips",
    "--user alice",
    "--user nobody",
    "--user-defaults",
    "--user-defaults --client-defaults",
    "--ip-defaults",
)


@pytest.mark.parametrize("connection", [BROKER, ZOOKEEPER], ids=["brokers", "zookeeper"])
def test_quotas_are_described(house: InMemory, session: Transcript, connection: str) -> None:
    house.quotas.held, house.quotas._scram = quotas().held, quotas()._scram
    for entity in DESCRIBED:
        for form in FORMS:
            session.kquota(f"configs {connection} --describe {entity} --output {form}")
    session.must_be(f"contract-configs-quotas-{'brokers' if connection == BROKER else 'zookeeper'}")


ALTERED = (
    "--user bob --add-config producer_byte_rate=10MB/s,request_percentage=50",
    "--user bob --client etl --add-config consumer_byte_rate=1024",
    "--user-defaults --add-config controller_mutation_rate=2.5",
    "--client-defaults --add-config consumer_byte_rate=1MiB/s",
    "--ip 10.0.0.7 --add-config connection_creation_rate=7",
    "--user bob --delete-config producer_byte_rate,consumer_byte_rate",
    "--entity-type brokers --entity-name 1 --add-config leader.replication.throttled.rate=5MB/s",
    "--broker-defaults --add-config leader.replication.throttled.rate=5MB/s",
    "--topic orders --add-config leader.replication.throttled.replicas=[0:1,1:2]",
    "--topic orders --add-config leader.replication.throttled.replicas=*",
    "--topic orders --delete-config leader.replication.throttled.replicas,retention.ms",
    "--user bob --add-config producer_byte_rate=10MB/s --delete-config request_percentage --dry-run",
    "--topic orders --add-config retention.ms=5000 --dry-run",
    "--topic payments --add-config retention.ms=5000 --dry-run",
    "--user bob --add-config SCRAM-SHA-512=[iterations=8192] --dry-run",
    "--user bob --delete-config SCRAM-SHA-512",
)


@pytest.mark.parametrize("connection", [BROKER, ZOOKEEPER], ids=["brokers", "zookeeper"])
def test_configs_are_altered(
    house: InMemory, session: Transcript, connection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.configs = FakeConfigs(topics=["orders"], brokers=[1, 2], release=(4, 1))
    house.stand_in(monkeypatch)
    for change in ALTERED:
        for form in FORMS:
            session.kquota(f"configs {connection} --alter {change} --output {form}")
    session.must_be(f"contract-configs-alter-{'brokers' if connection == BROKER else 'zookeeper'}")


RESOURCES = (
    "--entity-type topics",
    "--topic orders",
    "--topic payments",
    "--topic nobody-s",
    "--entity-type brokers",
    "--broker 1",
    "--broker 9",
    "--broker-defaults",
    "--broker 1 --all",
)


class WithSecrets(FakeConfigs):
    """Brokers that report only that a password is set, not its value."""

    def _entry(self, resource: Resource, key: str, static: str | None) -> Entry:
        found = super()._entry(resource, key, static)
        if not key.endswith("password"):
            return found
        synonyms = tuple(replace(synonym, value=None) for synonym in found.synonyms)
        return replace(found, sensitive=True, value=None, synonyms=synonyms)


@pytest.mark.parametrize("connection", [BROKER, ZOOKEEPER], ids=["brokers", "zookeeper"])
def test_configs_of_topics_and_brokers_are_described(
    house: InMemory, session: Transcript, connection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.configs = WithSecrets(
        topics=["orders", "payments"],
        brokers=[1, 2],
        release=(4, 1),
        static={LEADER_RATE: "7", "num.io.threads": "8", "ssl.key.password": "CANARY"},
    )
    house.configs.held[Resource(kind=TOPICS, name="orders")] = {"retention.ms": "5000", "cleanup.policy": "a\tb,c"}
    house.configs.held[Resource(kind=BROKERS, name="1")] = {LEADER_RATE: "5000000", FOLLOWER_RATE: "5000000"}
    house.configs.held[Resource(kind=BROKERS, name=DEFAULT)] = {"log.cleaner.threads": "2"}
    house.stand_in(monkeypatch)
    for resource in RESOURCES:
        for form in FORMS:
            session.kquota(f"configs {connection} --describe {resource} --output {form}")
    session.must_be(f"contract-configs-resources-{'brokers' if connection == BROKER else 'zookeeper'}")


class Forgetful(FakeConfigs):
    """Brokers that accept every change and apply none."""

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        pass


def test_a_change_that_no_broker_shows_is_reported_as_unknown(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    house.configs = Forgetful(topics=["orders"], brokers=[1], release=(4, 1))
    house.stand_in(monkeypatch)
    monkeypatch.setattr(clock, "until_seen", lambda: iter(range(2)))
    ran = kquota_here("configs", *BROKER.split(), *["--alter", "--topic", "orders", "--add-config", "retention.ms=5"])
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(
        "accepted, but the cluster does not show it yet. "
        f"Check with `kquota configs {BROKER} --describe --topic orders`\n"
    )


class Dying(FakeConfigs):
    """Broker 2 does not answer, and broker 3 dies before it is described again alone."""

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        names = {one.name for one in resources}
        if len(names) > 1 or "2" in names:
            raise Unreachable("broker 2: no answer")
        return {} if "3" in names else super().describe(resources)


@pytest.mark.parametrize(
    ("release", "more"),
    [((4, 1), ""), ((3, 9), ". On a cluster with ZooKeeper, you can also use --zookeeper")],
    ids=["without ZooKeeper", "perhaps with ZooKeeper"],
)
def test_brokers_with_unknown_configs_are_named(
    house: InMemory, monkeypatch: pytest.MonkeyPatch, release: tuple[int, ...], more: str
) -> None:
    monkeypatch.setattr(house, "configs", Dying(brokers=[1, 2, 3], release=release))
    house.stand_in(monkeypatch)
    house.fenced = [BrokerId(7), BrokerId(8)]
    ran = kquota_here("configs", *BROKER.split(), "--describe", "--entity-type", "brokers")
    assert (ran.code, ran.out.count("configs for")) == (1, 2), ran
    assert ran.err == (
        "kquota: note: brokers 3,7,8 are not alive, so their configs are unknown. Start the brokers and run the "
        f"command again{more}\n"
        "kquota: error: broker 2: no answer\n"
    )


def test_a_broker_that_is_not_alive_is_no_error(house: InMemory) -> None:
    """As for a broker that is requested by name, stdout and the exit code are Kafka's."""
    house.fenced = [BrokerId(7)]
    ran = kquota_here("configs", *BROKER.split(), "--describe", "--entity-type", "brokers")
    assert (ran.code, ran.err.count("note: broker 7 is not alive, so its configs are unknown. Start the broker")) == (
        0,
        1,
    )


def test_unknown_dead_brokers_are_named(house: InMemory) -> None:
    house.fenced = Refused("fenced brokers: the broker answered Unknown (-1)", Retry(". Run the command again"))
    ran = kquota_here("configs", *BROKER.split(), "--describe", "--entity-type", "brokers")
    why = "fenced brokers: the broker answered Unknown (-1). Run the same command again"
    assert (ran.code, ran.err) == (0, f"kquota: warning: it is unknown which brokers are dead: {why}\n")


def test_a_login_from_a_pipe_is_enough_to_describe_all_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe can be read only once, so the configs and the dead brokers are read on one connection."""
    files: list[Path | None] = []
    monkeypatch.setattr(library, "login", lambda file, *_: files.append(file))
    monkeypatch.setattr(library, "wire", lambda *_, **__: nullcontext(SimpleNamespace(cluster_id="c")))
    monkeypatch.setattr(stored, "WireConfigs", lambda _: FakeConfigs(brokers=[1], release=(4, 1)))
    monkeypatch.setattr(broker_metadata, "fenced", lambda _: frozenset({BrokerId(7)}))
    ran = kquota_here("configs", *BROKER.split(), "--describe", "--entity-type", "brokers", "--command-config", "pipe")
    assert (ran.code, ran.err.count("note: broker 7 is not alive"), files) == (0, 1, [Path("pipe")])


def test_a_command_reads_a_login_from_a_pipe_only_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("client.id=of-the-pipe\n",), daemon=True)
    writer.start()
    at = world.Where(bootstrap="b1:9092", zookeeper=None, command_config=pipe)
    first = world.login(at)
    assert first is not None
    assert world.login(at) is first
    writer.join(10)
    kquota_here("log-dirs", "--describe", *BROKER.split())
    assert pipe not in READ_LOGINS, "the next command reads its own login"


def test_a_login_file_is_read_again_because_it_may_be_renewed(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    at = world.Where(bootstrap="b1:9092", zookeeper=None, command_config=file)
    for name in ("first", "renewed"):
        file.write_text(f"client.id={name}\n")
        found = world.login(at)
        assert found is not None
        assert library.sent_client_id(found) == name
