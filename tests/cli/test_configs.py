"""`kquota configs` against Kafka's own ConfigCommand: same changes, and each reads the state of the other."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.cli.configs.answer import java_double
from kquota.sandbox.cluster import Sandbox, kafka_tool
from tests.cli.config_command import ConfigCommands, altered, described_pairs, settled
from tests.cli.kafka_tools import must_compile
from tests.cli.run import Ran, kquota, kquota_here, run
from tests.servers import WAYS, agreed

pytestmark = pytest.mark.kafka


@dataclass(frozen=True)
class Way:
    """One connection to one cluster, for kquota and for Kafka's own tool."""

    cluster: Sandbox
    connection: tuple[str, str]
    commands: ConfigCommands

    def kquota(self, *arguments: str) -> Ran:
        ran = kquota("configs", *self.connection, *arguments)
        if "--alter" in arguments and not self.cluster.zookeeper:
            agreed(self.cluster.bootstrap)
        return ran

    def kafka(self, *arguments: str) -> Ran:
        # Kafka 3's tool cannot change quotas in ZooKeeper. 2.8's tool can, in any ZooKeeper.
        version = "2.8.2" if self.connection[0] == "--zookeeper" else str(self.cluster.kafka)
        return altered(lambda: self.commands(version)(*self.connection, *arguments))

    def both_describe(self, names: list[str], fits: Callable[[Ran], bool]) -> tuple[Ran, Ran]:
        """Return the output of kquota and of Kafka's tool, each as soon as it matches."""
        ours = settled(lambda: self.kquota("--describe", *names), fits)
        return ours, settled(lambda: self.kafka("--describe", *names), fits)


def zookeeper_way(cluster: Sandbox, commands: ConfigCommands) -> Way:
    return Way(cluster, ("--zookeeper", str(cluster.zookeeper)), commands)


def admin_way(cluster: Sandbox, commands: ConfigCommands) -> Way:
    return Way(cluster, ("--bootstrap-server", cluster.bootstrap), commands)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, config_commands: ConfigCommands) -> Way:
    fixture, on_zookeeper = WAYS[request.param]
    cluster: Sandbox = request.getfixturevalue(fixture)
    return (zookeeper_way if on_zookeeper else admin_way)(cluster, config_commands)


def entities(unique: str) -> dict[str, list[str]]:
    return {
        "user": ["--entity-type", "users", "--entity-name", f"u-{unique}"],
        "client-id with a blank": ["--entity-type", "clients", "--entity-name", f"c {unique}"],
        "user's default client-id": [
            *["--entity-type", "users", "--entity-name", f"u-{unique}"],
            *["--entity-type", "clients", "--entity-default"],
        ],
    }


KEYS = "producer_byte_rate,consumer_byte_rate,request_percentage,controller_mutation_rate"
ADD = "producer_byte_rate=1048576,consumer_byte_rate=20000000,request_percentage=12.5,controller_mutation_rate=2.5"


def state(way: Way, names: list[str]) -> object:
    """Return the state of the cluster in Kafka's own words or, on ZooKeeper, in its nodes."""
    if way.cluster.zookeeper:
        return znodes(way.cluster.zookeeper)
    ran = settled(lambda: way.kafka("--describe", *names), lambda ran: ran.out.count("=") == 4)
    return [described_pairs(line) for line in ran.out.splitlines()]


def znodes(connect: str) -> dict[str, object]:
    client = KazooClient(hosts=connect)
    client.start()
    try:
        found: dict[str, object] = {}
        todo = ["/config/users", "/config/clients", "/config/ips"]
        while todo:
            path = todo.pop()
            if client.exists(path):
                found[path] = json.loads(client.get(path)[0] or b"{}").get("config")
                todo += [f"{path}/{child}" for child in client.get_children(path)]
        return found
    finally:
        client.stop()
        client.close()


@pytest.fixture
def unique() -> Iterator[str]:
    yield uuid.uuid4().hex[:6]


@pytest.mark.parametrize("which", ["user", "client-id with a blank", "user's default client-id"])
def test_same_commands_same_state_same_words(way: Way, unique: str, which: str) -> None:
    names = entities(unique)[which]
    ours = way.kquota("--alter", "--add-config", ADD, *names)
    assert ours.code == 0
    described, by_kafka = way.both_describe(names, lambda ran: ran.out.count("=") == 4)
    set_by_us = state(way, names)
    assert (described.code, by_kafka.code, described.err) == (0, 0, "")
    assert [described_pairs(line) for line in described.out.splitlines()] == [
        described_pairs(line) for line in by_kafka.out.splitlines()
    ]
    assert len(described.out.splitlines()) == 1

    removed = way.kafka("--alter", "--delete-config", "producer_byte_rate,controller_mutation_rate", *names)
    theirs = way.kafka("--alter", "--add-config", ADD, *names)
    assert (removed.code, theirs.code) == (0, 0)
    assert ours.out == theirs.out
    assert state(way, names) == set_by_us
    assert settled(lambda: way.kquota("--describe", *names), described.__eq__) == described

    gone = way.kquota("--alter", "--delete-config", KEYS, *names)
    assert (gone.code, gone.out) == (0, ours.out)
    for after in way.both_describe(names, lambda ran: "=" not in ran.out):
        assert after.out.endswith(" are \n") or after.out == ""


def test_the_default_entity_is_printed_like_kafka(way: Way) -> None:
    names = ["--entity-type", "users", "--entity-default"]
    ours = way.kquota("--alter", "--add-config", "producer_byte_rate=1GB/s", *names)
    try:
        assert ours.code == 0
        assert ours.err == "kquota: user default: producer_byte_rate = 1000000000 bytes per second (1 GB/s)\n"
        described, by_kafka = way.both_describe(names, lambda ran: ran.out != "")
        assert described.out == by_kafka.out != ""
        assert way.kafka("--alter", "--add-config", "producer_byte_rate=1000000000", *names).out == ours.out
    finally:
        assert way.kquota("--alter", "--delete-config", "producer_byte_rate", "--user-defaults").code == 0
    assert way.kquota("--describe", "--entity-type", "users", "--entity-name", "<default>").out in (
        "",
        "Configs for user-principal '<default>' are \n",
    )


@pytest.mark.parametrize(
    "names", [["--ip", "10.1.2.3"], ["--entity-type", "ips", "--entity-default"]], ids=["an address", "the default"]
)
def test_ips_are_printed_like_kafka(way: Way, names: list[str]) -> None:
    """The rate is far above what any test needs, because the default limits every address."""
    ours = way.kquota("--alter", "--add-config", "connection_creation_rate=100000", *names)
    try:
        assert (ours.code, ours.err) == (0, "")
        described, by_kafka = way.both_describe(names, lambda ran: "=" in ran.out)
        assert described == by_kafka
        assert described.out.count("\n") == 1
        for ran in way.both_describe(["--entity-type", "ips"], lambda ran: described.out in ran.out):
            assert described.out in ran.out
        assert way.kafka("--alter", "--add-config", "connection_creation_rate=100000", *names) == ours
    finally:
        gone = way.kquota("--alter", "--delete-config", "connection_creation_rate", *names)
    assert (gone.code, gone.out) == (0, ours.out)


OPEN_FILTERS = {
    "all users": ["--entity-type", "users"],
    "all client-ids": ["--entity-type", "clients"],
    "all client-ids of all users": ["--entity-type", "users", "--entity-type", "clients"],
    "all client-ids of one user": ["--entity-type", "users", "--entity-name", "open", "--entity-type", "clients"],
    "one client-id of all users": ["--entity-type", "clients", "--entity-name", "open", "--entity-type", "users"],
    "all client-ids of the default user": [
        *["--entity-type", "users", "--entity-default"],
        *["--entity-type", "clients"],
    ],
    "all addresses": ["--entity-type", "ips"],
}


@pytest.mark.parametrize("fixture", ["kafka_431", "kafka_391"])
def test_an_open_filter_matches_the_entities_of_kafkas_tool(
    request: pytest.FixtureRequest, config_commands: ConfigCommands, fixture: str
) -> None:
    """The filters of all tests share one set of entities: one of each level, and two of some."""
    way = admin_way(request.getfixturevalue(fixture), config_commands)
    alter = functools.partial(kquota_here, "configs", *way.connection, "--alter")
    levels = [
        ["--user", "open"],
        ["--user", "other"],
        ["--client", "open"],
        ["--user", "open", "--client", "open"],
        ["--user", "open", "--client-defaults"],
        ["--user-defaults", "--client", "open"],
        ["--user-defaults", "--client-defaults"],
    ]
    try:
        for level in levels:
            assert alter("--add-config", "producer_byte_rate=1000000000", *level).code == 0
        assert alter("--add-config", "connection_creation_rate=100000", "--ip", "10.9.8.7").code == 0
        agreed(way.cluster.bootstrap)
        rows = {}
        for name, wanted in OPEN_FILTERS.items():
            ours, theirs = (tool("--describe", *wanted) for tool in (way.kquota, way.kafka))
            rows[name] = sorted(map(described_pairs, ours.out.splitlines()), key=str)
            assert rows[name] == sorted(map(described_pairs, theirs.out.splitlines()), key=str), name
            assert (ours.code, ours.err) == (theirs.code, theirs.err) == (0, "")
        assert all(rows.values())
        assert len(rows["all client-ids of one user"]) == len(rows["one client-id of all users"]) == 2
    finally:
        for level in levels:
            assert alter("--delete-config", "producer_byte_rate", *level).code == 0
        assert alter("--delete-config", "connection_creation_rate", "--ip", "10.9.8.7").code == 0


def test_deleting_twice_succeeds_with_a_note(way: Way, unique: str) -> None:
    ran = way.kquota("--alter", "--delete-config", "producer_byte_rate", "--user", unique)
    assert ran.code == 0
    assert ran.err == f"kquota: user '{unique}': producer_byte_rate was not set; nothing to delete\n"


def test_the_json_document(way: Way, unique: str) -> None:
    both = ["--client", "c", "--user", unique]
    altered = way.kquota("--alter", "--add-config", "request_percentage=50", *both, "--output", "json")
    assert json.loads(altered.out) == {"version": 1, "altered": {"user": unique, "client": "c"}}
    described = way.kquota("--describe", "--output", "json", *both)
    assert json.loads(described.out) == {
        "version": 1,
        "entities": [{"user": unique, "client": "c", "quotas": {"request_percentage": 50.0}}],
    }
    assert way.kquota("--alter", "--delete-config", "request_percentage", *both).code == 0


@pytest.mark.parametrize("fixture", ["kafka_391", "kafka_282"])
def test_scram_credentials_are_never_printed(
    request: pytest.FixtureRequest, config_commands: ConfigCommands, fixture: str, unique: str
) -> None:
    cluster: Sandbox = request.getfixturevalue(fixture)
    way = zookeeper_way(cluster, config_commands)
    names = ["--entity-type", "users", "--entity-name", f"s-{unique}"]
    made = way.kafka("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=CANARY-7f3a]", *names)
    assert made.code == 0
    before = znodes(str(cluster.zookeeper))[f"/config/users/s-{unique}"]
    assert way.kquota("--alter", "--add-config", "producer_byte_rate=5", *names).code == 0
    described = {
        format_: way.kquota("--describe", "--entity-type", "users", "--output", format_)
        for format_ in ("text", "json", "tsv")
    }
    words = f"Configs for user-principal 's-{unique}' are SCRAM-SHA-256=[hidden],producer_byte_rate=5"
    assert words in described["text"].out.splitlines()
    credential = {"user": f"s-{unique}", "mechanism": "SCRAM-SHA-256", "iterations": None}
    assert credential in json.loads(described["json"].out)["scram"]
    assert f"s-{unique}\t\t\tSCRAM-SHA-256\t[hidden]" in described["tsv"].out.splitlines()
    for ran in described.values():
        assert not any(secret in ran.out + ran.err for secret in ("salt", "stored_key", "server_key", "8192"))
    assert way.kquota("--alter", "--delete-config", "producer_byte_rate", *names).code == 0
    assert znodes(str(cluster.zookeeper))[f"/config/users/s-{unique}"] == before
    assert way.kafka("--alter", "--delete-config", "SCRAM-SHA-256", *names).code == 0


SMALL = (1e-05, 0.0001, 0.00012345, 0.0005, 0.00099)
"""Numbers with an exponent in Java. Python writes only the first one with an exponent."""
LARGE = (9999999.0, 1e7, 12345678.0, 123456789.25, 1e15, 1e22)


def test_numbers_are_printed_like_java_doubles(kafka_431: Sandbox, tmp_path: Path) -> None:
    """Compared with Java itself: its single-file launcher prints Double.toString of each value."""
    values = (0.0, *SMALL, 0.001, 0.5, 1.0, 12.5, 1024.0, *LARGE, -0.0005, -12345678.0)
    source = tmp_path / "D.java"
    printing = "for (String s : a) System.out.println(Double.valueOf(s));"
    source.write_text(f"class D {{ public static void main(String[] a) {{ {printing} }} }}")
    java = kafka_tool(kafka_431, "x")[0]
    must_compile(java)
    assert run([java, str(source), *map(repr, values)]).out.split() == [java_double(value) for value in values]


@pytest.mark.parametrize("fixture", ["kafka_431", "kafka_391", "kafka_282"])
def test_scram_over_the_admin_api_is_printed_like_kafka(
    request: pytest.FixtureRequest, config_commands: ConfigCommands, fixture: str, unique: str
) -> None:
    way = admin_way(request.getfixturevalue(fixture), config_commands)
    name = f"s-{unique}"
    made = way.kafka("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=CANARY-7f3a]", "--user", name)
    assert made.code == 0
    assert way.kquota("--alter", "--add-config", "producer_byte_rate=5", "--user", name).code == 0
    credential = f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=8192\n"
    quota = f"Quota configs for user-principal '{name}' are producer_byte_rate=5.0\n"
    for names in (["--user", name], ["--entity-type", "users"]):
        ours, by_kafka = way.both_describe(names, lambda ran: credential in ran.out and quota in ran.out)
        assert credential in ours.out
        assert sorted(ours.out.splitlines()) == sorted(by_kafka.out.splitlines())
    described = json.loads(way.kquota("--describe", "--user", name, "--output", "json").out)
    assert described["scram"] == [{"user": name, "mechanism": "SCRAM-SHA-256", "iterations": 8192}]
    assert way.kquota("--describe", "--user", f"nobody-{unique}") == Ran(0, "", "")
    assert way.kquota("--describe", "--user-defaults").out == way.kafka("--describe", "--user-defaults").out
    assert way.kquota("--alter", "--delete-config", "producer_byte_rate", "--user", name).code == 0
    assert way.kafka("--alter", "--delete-config", "SCRAM-SHA-256", "--user", name).code == 0
