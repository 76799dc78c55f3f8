"""`kquota quota explain` for operators and scripts: whole documents, exit codes, and an empty stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.cli.formats import document, text
from kquota.cli.quota.explain import Explained
from kquota.quota.capacity import Capacity, broker
from kquota.quota.entity import Entity
from kquota.quota.explain import explain
from kquota.quota.precedence import Client
from kquota.sandbox.cluster import Sandbox
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    BrokerId,
)
from tests.cli.run import Ran, kquota
from tests.servers import agreed

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def messy(zookeeper: Sandbox) -> Iterator[str]:
    """A Kafka's znodes under a chroot: three brokers, and leftovers of other tools."""
    chroot = f"/explain-{uuid.uuid4().hex[:8]}"
    client = KazooClient(hosts=zookeeper.zookeeper)
    client.start()
    for path in ("/brokers/ids/1", "/brokers/ids/2", "/brokers/ids/3", "/config/changes"):
        client.ensure_path(chroot + path)
    for path, config in MESSY.items():
        client.ensure_path(f"{chroot}/config/{path}")
        data = config if isinstance(config, bytes) else json.dumps({"version": 1, "config": config}).encode()
        client.set(f"{chroot}/config/{path}", data)
    yield f"{zookeeper.zookeeper}{chroot}"
    client.delete(chroot, recursive=True)
    client.stop()
    client.close()


MESSY: dict[str, dict[str, str] | bytes] = {
    "users/<default>": {"consumer_byte_rate": "50000000", "producer_byte_rate": "20000000"},
    "users/<default>/clients/<default>": {"request_percentage": "100"},
    "users/alice": {"producer_byte_rate": "10000", "request_percentage": "0.5", "consumer_byte_rate": "50000000"},
    "users/alice/clients/etl": {"controller_mutation_rate": "5"},
    "users/alice/clients/<default>": {"controller_mutation_rate": "5"},
    "users/Alice": {"producer_byte_rate": "NaN"},
    "users/User%3Acarol": {"producer_byte_rate": "1000000"},
    "users/CN%253Ddave": {"producer_byte_rate": "1000000"},
    "users/%20eve": {"producer_byte_rate": "1000000"},
    "users/m%1B%5B31mx": {"producer_byte_rate": "100"},
    "users/broken": b"{oops",
    "clients/etl": {"producer_byte_rate": "5242880", "consumer_byte_rate": "many"},
    "clients/<default>": {"consumer_byte_rate": "5000000"},
    "ips/10.0.0.1": {"connection_creation_rate": "10"},
    "ips/localhost": {"connection_creation_rate": "10"},
}


def golden(name: str, ran: Ran, connect: str) -> None:
    """Compare exit code, stdout and stderr with the file. REWRITE_GOLDEN=1 writes the file again, for review."""
    seen = f"exit code {ran.code}\n--- stdout\n{ran.out}--- stderr\n{ran.err}"
    seen = seen.replace(connect, "zk:2181") if connect else seen
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen)
    assert seen == path.read_text()


ASKED = {
    "explain-client": ["--user", "alice", "--client-id", "etl", "--ip", "10.0.0.1"],
    "explain-user": ["--user", "alice"],
    "explain-without-client-id": ["--user", "alice", "--client-id", ""],
    "explain-client-id": ["--client", "etl"],
    "explain-nobody": ["--ip", "10.0.0.2"],
    "explain-escaped": ["--user", "m\x1b[31mx"],
    "explain-not-a-rate": ["--user", "Alice"],
    "explain-table": ["--user", "alice", "--client-id", "etl", "--ip", "10.0.0.1", "--output", "tsv"],
    "explain-json": ["--user", "alice", "--client-id", "etl", "--output", "json"],
    "explain-all": ["--all"],
    "explain-all-table": ["--all", "--output", "tsv"],
}


@pytest.mark.parametrize(("name", "arguments"), ASKED.items(), ids=ASKED)
def test_the_whole_document(messy: str, name: str, arguments: list[str]) -> None:
    golden(name, kquota("quota", "explain", "--zookeeper", messy, *arguments), messy)


TOLD: dict[str, str | None] = {
    "num.io.threads": "8",
    "num.network.threads": "3",
    "listeners": "PLAINTEXT://:9092",
    "quota.window.num": "11",
    "quota.window.size.seconds": "1",
    "controller.quota.window.num": "11",
    "controller.quota.window.size.seconds": "1",
    "quota.producer.default": "1000000",
}
EVERY_KEY = {
    PRODUCER_BYTE_RATE: 10_000_000.0,
    CONSUMER_BYTE_RATE: 20_971_520.0,
    REQUEST_PERCENTAGE: 150.0,
    CONTROLLER_MUTATION_RATE: 2.5,
}
KNOWN: dict[str, tuple[dict[str, str | None], Client]] = {
    "all-known": (TOLD, Client(user="alice", client_id="etl")),
    "a-static-default": (TOLD, Client(user="bob", client_id="etl")),
    "a-callback": (TOLD | {"client.quota.callback.class": "com.example.Quotas"}, Client(user="alice", client_id="etl")),
    "controllers-apart": (
        TOLD | {"process.roles": "broker", "controller.quorum.voters": "101@c:9093"},
        Client(user="alice", client_id="etl"),
    ),
}


@pytest.mark.parametrize(("name", "case"), KNOWN.items(), ids=KNOWN)
def test_explain_with_the_settings_of_brokers(name: str, case: tuple[dict[str, str | None], Client]) -> None:
    told, client = case
    quotas = {Entity(user="alice"): EVERY_KEY, Entity(client_id="etl"): {CONSUMER_BYTE_RATE: 1e6}}
    slow = broker(BrokerId(3), told | {"num.io.threads": "4"})
    cluster = Capacity(brokers=(broker(BrokerId(1), told), broker(BrokerId(2), told), slow))
    golden(f"explain-{name}", Ran(0, text(Explained(explanation=explain(quotas, cluster, client=client))), ""), "")


def test_without_a_live_broker_the_total_of_the_cluster_is_unknown() -> None:
    quotas = {Entity(user="alice"): EVERY_KEY}
    found = explain(quotas, Capacity(brokers=()), client=Client(user="alice", client_id="etl"))
    answer = Explained(explanation=found)
    told = "cluster unknown, because no broker is alive; each broker counts separately"
    assert " ".join(text(answer).split()).count(told) == 3
    found = json.loads(document(answer))
    assert found["brokers"] == 0
    totals = {one["key"]: one["cluster"] for one in found["keys"]}
    assert totals == dict.fromkeys(EVERY_KEY) | {CONTROLLER_MUTATION_RATE: 2.5}


BURSTS = {
    "large": (CONTROLLER_MUTATION_RATE, 100_000.0, TOLD, "1100000 partitions at once = 100000/s x 11"),
    "inexact in floating point": (CONTROLLER_MUTATION_RATE, 0.7, TOLD, "7.7 partitions at once = 0.7/s x 11"),
    "one partition": (
        CONTROLLER_MUTATION_RATE,
        0.1,
        TOLD | {"controller.quota.window.num": "10"},
        "1 partition at once = 0.1/s x 10",
    ),
    "as shipped": (
        CONTROLLER_MUTATION_RATE,
        100_000.0,
        TOLD | {"controller.quota.window.num": None},
        "with Kafka's defaults, 11 x 1 s, it is 1100000 partitions",
    ),
    "connections": (CONNECTION_CREATION_RATE, 2_000_000.0, TOLD, "20000000 connections at once"),
    "one connection": (CONNECTION_CREATION_RATE, 1.0, TOLD | {"quota.window.num": "2"}, "1 connection at once"),
}


@pytest.mark.parametrize(("key", "limit", "told", "words"), BURSTS.values(), ids=BURSTS)
def test_a_burst_is_written_in_full(key: str, limit: float, told: dict[str, str | None], words: str) -> None:
    whose = Entity(ip="10.0.0.1") if key == CONNECTION_CREATION_RATE else Entity(user="alice")
    cluster = Capacity(brokers=(broker(BrokerId(1), told),))
    client = Client(user="alice", client_id="etl")
    found = Explained(explanation=explain({whose: {key: limit}}, cluster, client=client, ip="10.0.0.1"))
    assert words in " ".join(text(found).split())


def test_a_key_that_the_brokers_do_not_support_has_no_effect() -> None:
    quotas = {Entity(user="alice"): EVERY_KEY}
    found = explain(quotas, Capacity(brokers=None, release=(2, 6)), client=Client(user="alice", client_id="c"))
    answer = Explained(explanation=found)
    assert "controller_mutation_rate: unlimited, because these brokers do not support it\n" in text(answer)
    keys = {one["key"]: (one["unlimited"], one["ignored"]) for one in json.loads(document(answer))["keys"]}
    assert keys == dict.fromkeys(EVERY_KEY, (False, False)) | {CONTROLLER_MUTATION_RATE: (True, True)}


def test_every_proposed_command_works_and_other_findings_need_a_person(messy: str) -> None:
    def look() -> list[dict[str, object]]:
        ran = kquota("quota", "explain", "--all", "--zookeeper", messy, "--output", "json")
        found = json.loads(ran.out)
        assert (ran.code, found["version"]) == (8, 1)
        return list(found["findings"])

    for _ in range(3):
        for command in [c for finding in look() for c in finding["commands"]]:  # type: ignore[attr-defined]
            shell = command.replace("kquota ", f"{sys.executable} -m kquota ", 1)
            ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
            assert ran.returncode == 0, f"{command}\n{ran.stderr}"
    assert {str(finding["rule"]) for finding in look()} == {"unreadable"}


def test_quotas_without_findings_exit_0(messy: str) -> None:
    client = KazooClient(hosts=messy)
    client.start()
    for kind in ("users", "clients", "ips"):
        client.delete(f"/config/{kind}", recursive=True)
    client.stop()
    client.close()
    nothing = kquota("quota", "explain", "--all", "--zookeeper", messy)
    assert nothing == Ran(0, "no findings among 0 limits of 0 entities\n", "")
    unlimited = kquota("quota", "explain", "--user", "alice", "--zookeeper", messy)
    assert (unlimited.code, unlimited.err) == (0, "")
    assert unlimited.out.count("unlimited, because no applicable limit is set") == 4


@pytest.mark.kafka
def test_over_brokers_nothing_is_unknown(kafka_431: Sandbox) -> None:
    at = ("--bootstrap-server", kafka_431.bootstrap)
    name = f"e-{uuid.uuid4().hex[:6]}"
    limits = "producer_byte_rate=10MB/s,request_percentage=110,controller_mutation_rate=5"
    assert kquota("configs", *at, "--alter", "--user", name, "--add-config", limits).code == 0
    agreed(kafka_431.bootstrap)
    ran = kquota("quota", "explain", *at, "--user", name, "--output", "json")
    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    assert (document["version"], document["brokers"], document["settings_known"]) == (1, 3, True)
    keys = {one["key"]: one for one in document["keys"]}
    assert keys["producer_byte_rate"]["entity"] == {"user": name}
    figures = {key: (one["limit"], one["cluster"], one["burst"]) for key, one in keys.items() if not one["unlimited"]}
    assert figures == {
        "producer_byte_rate": (10e6, 30e6, 100e6),
        "request_percentage": (110.0, 330.0, None),
        "controller_mutation_rate": (5.0, 5.0, 55.0),
    }
    assert keys["request_percentage"]["capacity"] == {"1": 1100, "2": 1100, "3": 1100}
    text = kquota("quota", "explain", *at, "--user", name).out
    assert text.splitlines()[2] == f"producer_byte_rate: 10 MB/s per broker, from user '{name}' (level 3 of 8)"
    assert "so this quota is 10% of their time" in " ".join(text.split())
    assert kquota("configs", *at, "--alter", "--user", name, "--delete-config", ",".join(figures)).code == 0


WRONG = {
    "nobody": ([], "no client is given"),
    "an empty user": (["--user", ""], "--user ANONYMOUS"),
    "a host": (["--ip", "localhost"], "not an IP address"),
    "all and one": (["--all", "--user", "a"], "Leave out --user"),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_reported_before_any_connection(arguments: list[str], reason: str) -> None:
    ran = kquota("quota", "explain", "--bootstrap-server", "127.0.0.1:1", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
