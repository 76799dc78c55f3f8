"""`configs` with unexpected input: unreadable znodes, control characters in names, names of drafts, old brokers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.sandbox.cluster import Sandbox
from tests.cli.run import Ran, kquota, kquota_here

GOOD = b'{"version":1,"config":{"producer_byte_rate":"5"}}'
UNREADABLE = {
    "no JSON": b'{"version":1,"config":{"producer_byte_rate":"5"',
    "another version": b'{"version":3,"config":{"producer_byte_rate":"5"}}',
    "a list": b"[1]",
    "a config that is none": b'{"version":1,"config":"producer_byte_rate"}',
    "no text": b"\xff\xfe",
}
SENDS_ESCAPES = "a\n\x1b[31mb\x9b\u202ec\td"


@dataclass(frozen=True)
class Tree:
    """The znodes of a Kafka cluster, in a chroot of their own."""

    client: KazooClient
    connect: str

    def put(self, path: str, data: bytes) -> None:
        self.client.create(path, data, makepath=True)

    def data(self, path: str) -> bytes:
        return bytes(self.client.get(path)[0])

    def kquota(self, *arguments: str) -> Ran:
        return kquota_here("configs", "--zookeeper", self.connect, *arguments)


@pytest.fixture
def tree(zookeeper: Sandbox) -> Iterator[Tree]:
    connect = f"{zookeeper.zookeeper}/bad-input-{uuid.uuid4().hex[:8]}"
    root = KazooClient(hosts=str(zookeeper.zookeeper))
    root.start()
    root.create(f"/{connect.partition('/')[2]}")
    client = KazooClient(hosts=connect)
    client.start()
    found = Tree(client, connect)
    found.put("/brokers/ids/1", b'{"version":5}')
    found.put("/config/changes", b"")
    yield found
    for opened in (client, root):
        opened.stop()
        opened.close()


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_node_stays_and_does_not_hide_the_others(tree: Tree, data: bytes) -> None:
    tree.put("/config/users/good", GOOD)
    tree.put("/config/users/bad", data)
    every = tree.kquota("--describe", "--entity-type", "users")
    assert (every.code, every.out) == (0, "Configs for user-principal 'good' are producer_byte_rate=5\n")
    assert every.err.startswith("kquota: warning: /config/users/bad is not a config that Kafka wrote")
    assert every.err.count("\n") == 1

    one = tree.kquota("--describe", "--user", "bad")
    assert (one.code, one.out, one.err) == (0, "", every.err)
    written = tree.kquota("--alter", "--user", "bad", "--add-config", "request_percentage=5")
    assert (written.code, written.out) == (1, "")
    assert "/config/users/bad" in written.err
    assert "Nothing was written" in written.err
    assert tree.data("/config/users/bad") == data


def test_unusable_names_and_values_are_reported(tree: Tree) -> None:
    tree.put("/config/clients/%FF", GOOD)
    tree.put("/config/clients/%2E", GOOD)
    tree.put("/config/clients/c", b'{"version":1,"config":{"producer_byte_rate":"fast","consumer_byte_rate":"7"}}')
    ran = tree.kquota("--describe", "--entity-type", "clients")
    assert (ran.code, ran.out) == (0, "Configs for client-id 'c' are consumer_byte_rate=7\n")
    assert "'%FF' is not percent-encoded UTF-8" in ran.err
    assert "the znode '%2E' encodes the name '.', which Kafka cannot write as a znode. The znode is left out" in ran.err
    assert "producer_byte_rate is 'fast', not a number" in ran.err


def test_names_are_escaped_on_a_terminal(tree: Tree) -> None:
    altered = tree.kquota("--alter", "--user", SENDS_ESCAPES, "--add-config", "producer_byte_rate=5")
    described = tree.kquota("--describe", "--entity-type", "users")
    table = tree.kquota("--describe", "--entity-type", "users", "--output", "tsv")
    for ran in (altered, described):
        assert ran.code == 0
        assert ran.out.count("\n") == 1
        assert ran.out[:-1].isprintable()
    assert r"'a\n\x1b[31mb\x9b\u202ec\td'" in described.out
    assert table.out.splitlines()[1] == "a\\n\\x1b[31mb\\x9b\\u202ec\\td\t\t\tproducer_byte_rate\t5"
    document = tree.kquota("--describe", "--entity-type", "users", "--output", "json")
    assert json.loads(document.out)["entities"] == [{"user": SENDS_ESCAPES, "quotas": {"producer_byte_rate": 5.0}}]


def test_a_name_outside_the_locale_is_escaped(tree: Tree) -> None:
    assert tree.kquota("--alter", "--user", "\u2603", "--add-config", "request_percentage=5").code == 0
    describe = ["configs", "--zookeeper", tree.connect, "--describe", "--entity-type", "users"]
    ran = kquota(*describe, env={"PYTHONIOENCODING": "latin-1"})
    assert ran == Ran(0, "Configs for user-principal '\\u2603' are request_percentage=5\n", "")
    document = kquota(*describe, "--output", "json", env={"PYTHONIOENCODING": "latin-1"})
    assert json.loads(document.out)["entities"][0]["user"] == "\u2603"


def test_a_table_distinguishes_the_default_from_a_user_of_that_name(tree: Tree) -> None:
    for names in (["--user-defaults", "--client", "\\N"], ["--user", "<default>", "--client-defaults"]):
        assert tree.kquota("--alter", *names, "--add-config", "request_percentage=12.5").code == 0
    ran = tree.kquota("--describe", "--entity-type", "users", "--entity-type", "clients", "--output", "tsv")
    assert ran.out.splitlines() == [
        "user\tclient\tip\tkey\tvalue",
        "\\N\t\\\\N\t\trequest_percentage\t12.5",
        "<default>\t\\N\t\trequest_percentage\t12.5",
    ]


def test_configs_can_come_from_a_file(tree: Tree, tmp_path: Path) -> None:
    path = tmp_path / "alice.properties"
    path.write_text("# agreed in May\nproducer_byte_rate=10MB/s\nrequest_percentage = 50\n")
    ran = tree.kquota("--alter", "--user", "alice", "--add-config-file", str(path))
    assert (ran.code, ran.out) == (0, "Completed updating config for entity: user-principal 'alice'.\n")
    config = json.loads(tree.data("/config/users/alice"))["config"]
    assert config == {"producer_byte_rate": "10000000", "request_percentage": "50"}


def test_a_key_name_of_the_drafts_is_accepted_with_a_notice(tree: Tree) -> None:
    ran = tree.kquota("--alter", "--user", "alice", "--add-config", "controller_mutations_rate=5")
    assert ran.code == 0
    assert (
        "controller_mutations_rate is a name from a draft of KIP-599. "
        "kquota uses the current name, controller_mutation_rate"
    ) in ran.err
    assert json.loads(tree.data("/config/users/alice"))["config"] == {"controller_mutation_rate": "5"}
    gone = tree.kquota("--alter", "--user", "alice", "--delete-config", "controller_mutations_rate")
    assert gone.code == 0
    assert tree.client.exists("/config/users/alice") is None, (
        "like a broker, kquota deletes the znode with the last quota"
    )


def test_brokers_of_an_unknown_release_cause_a_warning(tree: Tree) -> None:
    rate = ["--alter", "--user", "alice", "--add-config", "controller_mutation_rate=5"]
    assert tree.kquota(*rate).err == ""
    tree.put("/brokers/ids/2", b'{"version":4}')
    ran = tree.kquota(*rate)
    assert ran.code == 0
    assert "controller_mutation_rate needs Kafka 2.7" in ran.err
    assert tree.kquota("--alter", "--user", "alice", "--add-config", "request_percentage=5").err == ""


DRAFTS = {
    "a burst and its rate": (
        ["--user", "a", "--add-config", "controller_mutation_rate=5,controller_mutations_burst=500"],
        "A burst of 500 at rate 5 needs controller.quota.window.num=100 (100 x 1 s x 5)",
    ),
    "both under the draft's names": (
        ["--user", "a", "--add-config", "controller_mutations_rate=2.5,controller_mutations_burst=500"],
        "A burst of 500 at rate 2.5 needs controller.quota.window.num=200 (200 x 1 s x 2.5)",
    ),
    "a burst that is not a multiple": (
        ["--user", "a", "--add-config", "controller_mutation_rate=5,controller_mutations_burst=512"],
        "controller.quota.window.num=103 (103 x 1 s x 5 = 515)",
    ),
    "a burst below its rate": (
        ["--user", "a", "--add-config", "controller_mutation_rate=5,controller_mutations_burst=3"],
        "controller.quota.window.num=1 (1 x 1 s x 5 = 5)",
    ),
    "a burst alone": (
        ["--client-defaults", "--add-config", "controller_mutations_burst=110"],
        "a burst of 110 needs controller_mutation_rate=10 (11 x 1 s x 10)",
    ),
    "a burst that is not a number": (
        ["--user", "a", "--add-config", "controller_mutations_burst=many"],
        "For example, a burst of 500 at rate 5",
    ),
    "a burst to delete": (
        ["--user", "a", "--delete-config", "controller_mutations_burst"],
        "never shipped, so it is not set anywhere. Leave out controller_mutations_burst",
    ),
    "the brokers' burst": (
        ["--broker-defaults", "--add-config", "quota.partition.mutations.burst=110"],
        "controller_mutation_rate=10 (11 x 1 s x 10)",
    ),
    "the brokers' rate": (
        ["--broker", "1", "--add-config", "quota.partition.mutations.rate=5"],
        "--add-config controller_mutation_rate=5 with --user-defaults",
    ),
    "both spellings": (
        ["--user", "a", "--add-config", "controller_mutations_rate=5,controller_mutation_rate=5"],
        "the name of controller_mutation_rate in a draft of KIP-599, and both are given",
    ),
    "KIP-73's list": (
        ["--topic", "t", "--add-config", "leader.replication.throttled.replicas=[0-1,1-2]"],
        "0:1",
    ),
    "an entity type in the singular": (
        ["--entity-type", "topic", "--entity-name", "t", "--add-config", "a=b"],
        "Use --entity-type topics",
    ),
    "an IPv6 address, in ZooKeeper": (["--ip", "fe80::1", "--add-config", "connection_creation_rate=5"], "IPv6"),
}


@pytest.mark.parametrize(("arguments", "words"), DRAFTS.values(), ids=DRAFTS)
def test_draft_syntax_is_refused_with_the_current_form_before_any_connection(arguments: list[str], words: str) -> None:
    ran = kquota_here("configs", "--zookeeper", "127.0.0.1:1", "--alter", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert words in ran.err


def test_a_missing_option_does_not_reveal_a_password() -> None:
    ran = kquota("configs", "--alter", "--user", "a", "SCRAM-SHA-256=[password=CANARY-7f3a]")
    assert ran == Ran(2, "", "kquota: error: unexpected argument 'SCRAM-SHA-256'. Write each value after its option\n")
