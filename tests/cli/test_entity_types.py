"""`kquota configs` for groups, client metrics and loggers against Kafka's own ConfigCommand: same state, same words."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, TopicPartition

from kquota.entity_types import BROKER_LOGGERS, CLIENT_METRICS, ENTITIES, GROUPS
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.controllers import reported
from tests.cli.config_command import ConfigCommand, ConfigCommands, settled
from tests.cli.run import Ran, kquota_here
from tests.stores.moves_stage import OtherHand

LOGGER = "org.apache.kafka.server.logger.LoggingController"
"""The only logger, except root, that a broker of the sandbox has."""
MATCH = "match=[client_id=foo,client_software_name=bar]"


@dataclass(frozen=True)
class BothTools:
    """kquota and Kafka's tool on the same connection."""

    connection: tuple[str, str]
    command: ConfigCommand

    def kquota(self, *arguments: str) -> Ran:
        return kquota_here("configs", *self.connection, *arguments)

    def kafka(self, *arguments: str) -> Ran:
        return self.command(*self.connection, *arguments)

    def must_describe(self, out: str, *arguments: str) -> None:
        """Wait until both tools print exactly this text. On KRaft, each may ask a broker that lags for a moment."""
        for tool in (self.kquota, self.kafka):
            ran = settled(lambda tool=tool: tool("--describe", *arguments), lambda ran: ran.out == out)  # type: ignore[misc]
            assert ran == Ran(0, out, "")


@pytest.fixture
def tools(kafka_431: Sandbox, config_commands: ConfigCommands) -> BothTools:
    return BothTools(("--bootstrap-server", kafka_431.bootstrap), config_commands("4.3.1"))


@pytest.fixture
def controllers(kafka_431: Sandbox, config_commands: ConfigCommands) -> BothTools:
    with Wire(kafka_431.bootstrap, {}) as wire:
        addresses = reported(wire)
    assert addresses is not None
    return BothTools(("--bootstrap-controller", addresses), config_commands("4.3.1"))


@pytest.fixture
def name() -> str:
    return f"n {uuid.uuid4().hex[:6]}"


def described(kind: str, name: str, *lines: str) -> str:
    """Return the output of --describe of a resource with these configs."""
    return "".join(f"{line}\n" for line in (f"Dynamic configs for {kind[:-1]} {name} are:", *lines))


def session(value: int) -> str:
    key = "consumer.session.timeout.ms"
    own, default = f"DYNAMIC_GROUP_CONFIG:{key}={value}", f"DEFAULT_CONFIG:group.{key}=45000"
    return f"  {key}={value} sensitive=false synonyms={{{own}, {default}}}"


def subscribed(key: str, value: str) -> str:
    return f"  {key}={value} sensitive=false synonyms={{DYNAMIC_CLIENT_METRICS_CONFIG:{key}={value}}}"


RESOURCES = {
    GROUPS: ("consumer.session.timeout.ms=50000", [session(50000)], "consumer.session.timeout.ms"),
    CLIENT_METRICS: (
        f"{MATCH},interval.ms=15000",
        [subscribed("interval.ms", "15000"), subscribed("match", "client_id=foo,client_software_name=bar")],
        "match,interval.ms",
    ),
}


@pytest.mark.parametrize("kind", RESOURCES)
def test_both_tools_set_show_and_delete_the_same(tools: BothTools, kind: str, name: str) -> None:
    add, lines, keys = RESOURCES[kind]
    short = [f"--{ENTITIES[kind].short}", name]
    absent = f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.\n"
    done = f"Completed updating config for {kind[:-1]} {name}.\n"
    tools.must_describe(absent, *short)
    for first, second in ((tools.kquota, tools.kafka), (tools.kafka, tools.kquota)):
        for alter in (first, second):
            assert alter("--alter", *short, "--add-config", add) == Ran(0, done, "")
            tools.must_describe(described(kind, name, *lines), "--entity-type", kind, "--entity-name", name)
        ran = second("--alter", *short, "--delete-config", keys)
        assert (ran.code, ran.out) == (0, done)
        tools.must_describe(absent, *short)


@pytest.mark.parametrize("kind", RESOURCES)
def test_both_tools_show_the_static_configs(tools: BothTools, kind: str, name: str) -> None:
    arguments = ["--describe", "--all", f"--{ENTITIES[kind].short}", name]
    ours, theirs = (tool(*arguments) for tool in (tools.kquota, tools.kafka))
    assert ours == theirs
    assert ours.out.startswith(f"All configs for {kind[:-1]} {name} are:\n  ")


@pytest.mark.parametrize("kind", RESOURCES)
def test_both_tools_list_every_resource(tools: BothTools, kind: str, name: str) -> None:
    """Kafka's tool prints them in the order of a hash map."""
    add, lines, keys = RESOURCES[kind]
    names = [f"{name}-{number}" for number in (1, 2)]
    for each in names:
        assert tools.kquota("--alter", f"--{ENTITIES[kind].short}", each, "--add-config", add).code == 0
    parts = [described(kind, each, *lines) for each in names]
    for tool in (tools.kquota, tools.kafka):
        ran = settled(
            lambda tool=tool: tool("--describe", "--entity-type", kind),  # type: ignore[misc]
            lambda ran: all(part in ran.out for part in parts),
        )
        assert all(part in ran.out for part in parts)
    for each in names:
        assert tools.kafka("--alter", f"--{ENTITIES[kind].short}", each, "--delete-config", keys).code == 0


def test_a_group_without_configs_is_described_while_it_exists(tools: BothTools, kafka_431: Sandbox, name: str) -> None:
    hand = OtherHand(kafka_431)
    topic = hand.topic({0: [1]}, size=1)
    consumer = Consumer({"bootstrap.servers": kafka_431.bootstrap, "group.id": name, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    tools.must_describe(described(GROUPS, name), "--group", name)
    hand.close()


@pytest.fixture
def logger(tools: BothTools) -> Iterator[list[str]]:
    """The loggers of broker 2, whose levels are restored afterwards."""
    levels = {line.split()[0] for line in tools.kafka("--describe", "--broker-logger", "2").out.splitlines()[1:]}
    yield ["--broker-logger", "2"]
    tools.kafka("--alter", "--broker-logger", "2", "--delete-config", LOGGER)
    assert tools.kafka("--alter", "--broker-logger", "2", "--add-config", ",".join(sorted(levels))).code == 0


def test_both_tools_set_and_show_the_loggers_of_one_broker(tools: BothTools, logger: list[str]) -> None:
    done = "Completed updating config for broker-logger 2.\n"
    other = tools.kafka("--describe", "--broker-logger", "1")
    for first, second, level in ((tools.kquota, tools.kafka, "DEBUG"), (tools.kafka, tools.kquota, "WARN")):
        for alter in (first, second):
            assert alter("--alter", *logger, "--add-config", f"{LOGGER}={level},root=INFO") == Ran(0, done, "")
            lines = [f"  {LOGGER}={level} sensitive=false synonyms={{}}", "  root=INFO sensitive=false synonyms={}"]
            shown = tools.kquota("--describe", *logger)
            assert shown == Ran(0, described(BROKER_LOGGERS, "2", *lines), "")
            assert sorted(tools.kafka("--describe", *logger).out.splitlines()) == sorted(shown.out.splitlines())
        assert second("--alter", *logger, "--delete-config", LOGGER).out == done
        assert f"  {LOGGER}=INFO " in first("--describe", *logger).out
    assert tools.kquota("--describe", "--broker-logger", "1").out == other.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alter", "--broker-logger", "1", "--add-config", "no.such=INFO"], "Invalid broker logger(s): no.such"),
        (["--alter", "--broker-logger", "1", "--delete-config", "no.such,b"], "Invalid broker logger(s): no.such,b"),
        (["--alter", "--broker-logger", "1", "--add-config", "root=LOUD"], "is not a supported log level"),
        (["--alter", "--broker-logger", "1", "--delete-config", "root"], "the root logger is not allowed"),
        (["--alter", "--group", "g", "--add-config", "x=1"], "Unknown group config name: x"),
        (["--alter", "--client-metrics", "m", "--add-config", "x=1"], ""),
    ],
)
def test_both_tools_refuse(tools: BothTools, arguments: list[str], words: str) -> None:
    theirs, ours = tools.kafka(*arguments), tools.kquota(*arguments)
    assert words in theirs.err
    assert words in ours.err
    assert (theirs.code, ours.code, ours.out, ours.err.count("\n")) == (1, 1, "", 1)


def test_a_broker_that_is_not_alive_has_no_loggers(tools: BothTools) -> None:
    absent = "The broker-logger '7' doesn't exist and doesn't have dynamic config.\n"
    tools.must_describe(absent, "--broker-logger", "7")
    ran = tools.kquota("--alter", "--broker-logger", "7", "--add-config", "root=INFO")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "broker '7' is dead, and the other brokers cannot show or change its loggers" in ran.err


@pytest.mark.parametrize("kind", RESOURCES)
def test_controllers_set_configs_but_do_not_list_them(
    controllers: BothTools, tools: BothTools, kind: str, name: str
) -> None:
    add, lines, keys = RESOURCES[kind]
    short = [f"--{ENTITIES[kind].short}", name]
    done = f"Completed updating config for {kind[:-1]} {name}.\n"
    for alter in (controllers.kquota, controllers.kafka):
        assert alter("--alter", *short, "--add-config", add) == Ran(0, done, "")
        tools.must_describe(described(kind, name, *lines), *short)
        assert controllers.kquota("--describe", *short).out == described(kind, name, *lines)
        ran = controllers.kquota("--alter", *short, "--delete-config", keys)
        assert (ran.code, ran.out) == (0, done)
    assert controllers.kquota("--describe", *short) == Ran(0, described(kind, name), "")
    ran = controllers.kquota("--describe", "--entity-type", kind)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"kquota: error: controllers do not list {kind}. ")


def test_a_controller_shows_and_changes_only_its_own_loggers(controllers: BothTools) -> None:
    assert controllers.kquota("--describe", "--broker-logger", "1") == controllers.kafka(
        "--describe", "--broker-logger", "1"
    )
    absent = controllers.kafka("--describe", "--broker-logger", "2").out
    assert controllers.kquota("--describe", "--broker-logger", "2").out == absent
    ran = controllers.kquota("--alter", "--broker-logger", "2", "--add-config", "root=INFO")
    assert (ran.code, ran.out) == (1, "")
    reason = "a controller reports only its own loggers. Name one of the controllers (1), or use --bootstrap-server"
    assert reason in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--describe", "--entity-type", "groups"], "groups need Kafka 4.0, and the brokers run 3.9"),
        (["--alter", "--group", "g", "--add-config", "x=1"], "groups need Kafka 4.0, and the brokers run 3.9"),
        (
            ["--describe", "--entity-type", "client-metrics"],
            "client-metrics: these brokers cannot list all client-metrics",
        ),
        (["--alter", "--client-metrics", "m", "--add-config", "interval.ms=1000"], "only supported on KRaft clusters"),
        (["--describe", "--broker-logger", "1"], "describing broker-logger '1': the broker answered"),
    ],
)
def test_an_older_cluster_on_zookeeper_cannot_do_it(
    kafka_391: Sandbox, config_commands: ConfigCommands, arguments: list[str], words: str
) -> None:
    """The brokers of this sandbox have no log4j 1, so Kafka's tool cannot show loggers either."""
    tools = BothTools(("--bootstrap-server", kafka_391.bootstrap), config_commands("3.9.1"))
    ours = tools.kquota(*arguments)
    assert tools.kafka(*arguments).code == ours.code == 1
    assert ours.out == ""
    assert ours.err.count("\n") == 1
    assert words in ours.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--group", "g", "--add-config", "consumer.session.timeout.ms=50000"], "group 'g': set {}=50000"),
        (["--group", "g", "--delete-config", "consumer.session.timeout.ms"], "group 'g': delete {}"),
    ],
)
def test_a_dry_run_writes_nothing(tools: BothTools, arguments: list[str], line: str) -> None:
    before = tools.kquota("--describe", "--entity-type", "groups").out
    ran = tools.kquota("--alter", *arguments, "--dry-run")
    assert ran == Ran(0, line.format("consumer.session.timeout.ms") + "\n", "kquota: nothing was written\n")
    assert tools.kquota("--describe", "--entity-type", "groups").out == before


def test_a_dry_run_prints_the_values_that_are_sent(tools: BothTools, name: str) -> None:
    add = ["--user", name, "--add-config", "producer_byte_rate=1.5MB/s,request_percentage=12.5"]
    sent = {"producer_byte_rate": 1500000.0, "request_percentage": 12.5}
    dry = json.loads(tools.kquota("--alter", *add, "--dry-run", "--output", "json").out)
    assert dry == {"version": 1, "dry_run": True, "altered": {"user": name}, "set": sent, "delete": []}
    assert tools.kquota("--describe", "--user", name).out == ""
    assert tools.kquota("--alter", *add).code == 0
    show = ("--describe", "--user", name, "--output", "json")
    ran = settled(lambda: tools.kquota(*show), lambda ran: json.loads(ran.out)["entities"] != [])
    assert json.loads(ran.out)["entities"] == [{"user": name, "quotas": sent}]
    gone = tools.kquota("--alter", "--user", name, "--delete-config", ",".join(sent), "--dry-run", "--output", "tsv")
    assert gone.out.splitlines() == [
        "entity\toperation\tkey\tvalue",
        *(f"user '{name}'\tdelete\t{key}\t\\N" for key in sent),
    ]
    assert tools.kquota("--alter", "--user", name, "--delete-config", ",".join(sent)).code == 0


def test_a_dry_run_refuses_what_a_write_refuses(tools: BothTools) -> None:
    for arguments in (
        ["--topic", "no-such-topic", "--add-config", "retention.ms=5000"],
        ["--broker-logger", "1", "--add-config", "no.such=INFO"],
        ["--broker", "7", "--add-config", "leader.replication.throttled.rate=5MB/s"],
    ):
        wet, dry = (tools.kquota("--alter", *arguments, *more) for more in ([], ["--dry-run"]))
        assert dry.code == wet.code == 1
        assert dry.err == wet.err


def test_a_dry_run_shows_no_secret(tools: BothTools, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("secret") / "broker.properties"
    file.write_text("ssl.keystore.password=swordfish\n")
    arguments = ["--alter", "--broker", "1", "--add-config-file", str(file), "--dry-run"]
    assert tools.kquota(*arguments).out == "broker '1': set ssl.keystore.password=[hidden]\n"
    assert json.loads(tools.kquota(*arguments, "--output", "json").out)["set"] == {"ssl.keystore.password": None}
