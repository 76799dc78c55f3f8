"""Wrong usage of `configs`: kquota rejects what Kafka's tool rejects, in Kafka's words and before any connection."""

from __future__ import annotations

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.config_command import ConfigCommands
from tests.cli.run import kquota_here

RATE = ["--add-config", "producer_byte_rate=1"]
TYPES = "--entity-type"
NAME = "--entity-name"

# The arguments, and the error text of both tools ("" where kquota's text differs).
BOTH = {
    "no action": (["--user", "a"], "Command must include exactly one action: --describe, --alter"),
    "two actions": (["--alter", "--describe", "--user", "a"], "Command must include exactly one action"),
    "one dash before options": (["-alter", "-describe", "-user", "a"], "Command must include exactly one action"),
    "no entity type": (["--describe"], "At least one entity type must be specified"),
    "an unknown type": (["--describe", TYPES, "x"], "Invalid entity type x, the entity type must be one of topics, cl"),
    "KIP-73's singular": (["--alter", TYPES, "topic", NAME, "t", "--add-config", "a=1"], "Invalid entity type topic"),
    "a type twice": (["--describe", TYPES, "users", TYPES, "users"], "Duplicate entity type(s) specified: users"),
    "a name and a default": (
        ["--describe", "--user", "a", "--user-defaults"],
        "Duplicate entity type(s) specified: us",
    ),
    "users with ips": (
        ["--describe", TYPES, "users", TYPES, "ips"],
        "Only 'users' and 'clients' entity types may be sp",
    ),
    "clients with topics": (["--describe", "--client", "a", "--topic", "t"], "Only 'users' and 'clients' entity types"),
    "both forms": (
        ["--describe", "--user", "a", TYPES, "clients"],
        "--entity-{type,name,default} should not be used in",
    ),
    "a default beside a short form": (["--describe", "--user", "a", "--entity-default"], "should not be used in conj"),
    "more names than types": (["--describe", TYPES, "users", NAME, "a", NAME, "b"], "More entity names specified than"),
    "a name too many to alter": (["--alter", TYPES, "users", NAME, "a", NAME, "b", *RATE], ""),
    "a name too few to alter": (
        ["--alter", TYPES, "users", TYPES, "clients", NAME, "a", *RATE],
        "An entity name must be specified for every entity type",
    ),
    "alter all users": (
        ["--alter", TYPES, "users", *RATE],
        "An entity-name or default entity must be specified with -",
    ),
    "alter all ips": (
        ["--alter", TYPES, "ips", *RATE],
        "An entity-name or default entity must be specified with --alt",
    ),
    "alter all brokers": (["--alter", TYPES, "brokers", *RATE], "An entity-name or default entity must be specified w"),
    "alter all topics": (
        ["--alter", TYPES, "topics", *RATE],
        "An entity name must be specified with --alter of topics",
    ),
    "alter the default topic": (["--alter", TYPES, "topics", "--entity-default", *RATE], ""),
    "describe the default topic": (
        ["--describe", TYPES, "topics", "--entity-default"],
        "--entity-default must not be specified with --describe",
    ),
    "a broker that is not a number": (
        ["--describe", "--broker", "x"],
        "The entity name for brokers must be a valid integer broker id, but it is: x",
    ),
    "alter all groups": (
        ["--alter", TYPES, "groups", *RATE],
        "An entity name must be specified with --alter of groups",
    ),
    "alter the default group": (["--alter", TYPES, "groups", "--entity-default", *RATE], ""),
    "describe the default group": (
        ["--describe", TYPES, "groups", "--entity-default"],
        "--entity-default must not be specified with --describe of groups",
    ),
    "alter all client metrics": (
        ["--alter", TYPES, "client-metrics", *RATE],
        "An entity name must be specified with --alter of client-metrics",
    ),
    "describe the loggers of all brokers": (
        ["--describe", TYPES, "broker-loggers"],
        "An entity name must be specified with --describe of broker-loggers",
    ),
    "describe the default loggers": (
        ["--describe", TYPES, "broker-loggers", "--entity-default"],
        "--entity-default must not be specified with --describe of broker-loggers",
    ),
    "loggers of a broker that is not a number": (
        ["--describe", "--broker-logger", "x"],
        "The entity name for broker-loggers must be a valid integer broker id, but it is: x",
    ),
    "groups with users": (["--describe", "--group", "g", "--user", "u"], "Only 'users' and 'clients' entity types"),
    "a group without a name": (["--alter", "--group", "", *RATE], ""),
    "a group twice": (["--describe", "--group", "g", "--group", "h"], ""),
    "client metrics twice": (["--describe", "--client-metrics", "g", "--client-metrics", "h"], ""),
    "an invalid IP address": (
        ["--alter", "--ip", "no.such.host.invalid", "--add-config", "connection_creation_rate=1"],
        "The entity name for ips must be a valid IP or resolvable host, but it is: no.such.host.invalid",
    ),
    "describe an invalid IP address": (
        ["--describe", TYPES, "ips", NAME, "a b"],
        "must be a valid IP or resolvable host",
    ),
    "nothing to alter": (
        ["--alter", "--user", "a"],
        "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter",
    ),
    "add twice over": (
        ["--alter", "--user", "a", *RATE, "--add-config-file", "f"],
        "Only one of --add-config or --add-config-file must be specified",
    ),
    "a file that is not there": (["--alter", "--user", "a", "--add-config-file", "/nowhere/f"], ""),
    "describe and add": (
        ["--describe", "--user", "a", *RATE],
        'Option "[describe]" can\'t be used with option "[add-c',
    ),
    "describe and delete": (
        ["--describe", "--user", "a", "--delete-config", "producer_byte_rate"],
        'Option "[describe]" can\'t be used with option "[delete-config]"',
    ),
    "--add-config twice": (
        ["--alter", "--user", "a", *RATE, *RATE],
        "Found multiple arguments for option add-config, but you asked for only one",
    ),
    "a short form twice": (["--alter", "--user", "a", "--user", "b", *RATE], ""),
    "an option without its value": (["--describe", TYPES], ""),
    "an unknown option": (["--describe", "--user", "a", "--quiet"], ""),
    "no pair": (
        ["--alter", "--user", "a", "--add-config", "x"],
        "Invalid entity config: all configs to be added must be",
    ),
    "two equal signs": (
        ["--alter", "--user", "a", "--add-config", "x=1=2"],
        "all configs to be added must be in the form",
    ),
    "a blank in a key": (
        ["--alter", "--user", "a", "--add-config", "x y=1"],
        "Invalid character found for config key: x y",
    ),
    "an unknown quota of a user": (["--alter", "--user", "a", "--add-config", "x=1"], "Unexpected config names: "),
    "an unknown quota of a client": (
        ["--alter", "--client", "a", "--add-config", "x=1"],
        "Only quota configs can be added for 'clients'",
    ),
    "a client's quota deleted": (
        ["--alter", "--client", "a", "--delete-config", "x"],
        "Only quota configs can be deleted for 'clients'",
    ),
    "a user's quota of an ip": (["--alter", "--ip", "10.0.0.1", *RATE], "for 'ips'"),
    "an ip's quota of a user": (
        ["--alter", "--user", "a", "--add-config", "connection_creation_rate=1"],
        "for 'users'",
    ),
    "SCRAM of a client": (["--alter", "--client", "a", "--add-config", "SCRAM-SHA-256=[password=p]"], ""),
    "SCRAM of the default user": (["--alter", "--user-defaults", "--add-config", "SCRAM-SHA-256=[password=p]"], ""),
    "no number": (["--alter", "--user", "a", "--add-config", "producer_byte_rate=x"], ""),
    "no value": (["--alter", "--user", "a", "--add-config", "producer_byte_rate="], ""),
    "a negative rate": (["--alter", "--user", "a", "--add-config", "producer_byte_rate=-1"], ""),
    "a rate of 0": (["--alter", "--user", "a", "--add-config", "producer_byte_rate=0"], ""),
    "half a byte": (["--alter", "--user", "a", "--add-config", "producer_byte_rate=1.5"], ""),
    "half a connection": (["--alter", "--ip", "10.0.0.1", "--add-config", "connection_creation_rate=1.5"], ""),
    "a key added and deleted": (["--alter", "--user", "a", *RATE, "--delete-config", "producer_byte_rate"], ""),
    "a key deleted twice": (["--alter", "--user", "a", "--delete-config", "consumer_byte_rate,consumer_byte_rate"], ""),
    "no topic's name": (["--alter", "--topic", "a b", "--add-config", "retention.ms=1"], ""),
}

ON_ZOOKEEPER = {
    name: BOTH[name]
    for name in (
        *("no action", "two actions", "no entity type", "a type twice", "users with ips", "both forms"),
        *("a name too few to alter", "alter all users", "alter all topics", "nothing to alter", "add twice over"),
        *("describe and add", "--add-config twice", "no pair", "an unknown quota of a user", "a user's quota of an ip"),
        *("a broker that is not a number", "an invalid IP address"),
    )
} | {
    "--all": (["--describe", "--user", "a", "--all"], "--bootstrap-server must be specified for --all"),
    "alter --all": (
        ["--alter", "--user", "a", "--delete-config", "producer_byte_rate", "--all"],
        "--bootstrap-server must be specified for --all",
    ),
}
OTHER_WORDS_IN_2_8 = {
    *("a name too few to alter", "alter all users", "alter all topics", "no pair", "an unknown quota of a user"),
    "a user's quota of an ip",
}

OURS_ALONE = {
    "an option as a value": (["--describe", "--user", "--client", "c"], "requires an argument"),
    "a key twice": (["--alter", "--user", "a", "--add-config", "request_percentage=1,request_percentage=2"], "twice"),
    "NaN": (["--alter", "--user", "a", "--add-config", "request_percentage=NaN"], "finite"),
    "infinity": (["--alter", "--user", "a", "--add-config", "request_percentage=Infinity"], "finite"),
    "an empty name": (["--alter", TYPES, "users", NAME, "", *RATE], "Use --entity-default for the default entity"),
    "a forgotten option": (["--alter", "--user", "a", "b", *RATE], "unexpected argument 'b'"),
    "an unknown option with a value": (["--describe", "--client-name", "c"], "No such option: --client-name"),
    "describe and add a file": (
        ["--describe", "--user", "a", "--add-config-file", "f"],
        "use --add-config-file with --alter",
    ),
    "a password of a topic": (
        ["--alter", "--topic", "t", "--add-config", "retention.ms=1", "--password-file", "f"],
        "--password-file works only if --add-config or --add-config-file has a SCRAM credential of one user",
    ),
    "a rate on a topic": (
        ["--alter", "--topic", "t", "--add-config", "leader.replication.throttled.rate=5"],
        "has no effect on topic 't'. Use --entity-type brokers",
    ),
    "a list on a broker": (
        ["--alter", "--broker", "1", "--add-config", "leader.replication.throttled.replicas=*"],
        "has no effect on broker '1'. Use --entity-type topics",
    ),
    "an empty list": (
        ["--alter", "--topic", "t", "--add-config", "leader.replication.throttled.replicas="],
        "is empty. To remove it, use --delete-config leader.replication.throttled.replicas",
    ),
    "an empty limit": (
        ["--alter", "--user", "a", "--add-config", "producer_byte_rate="],
        "has no value. To remove it, use --delete-config producer_byte_rate",
    ),
}


def refused(arguments: list[str], connection: str) -> str:
    """Return kquota's only line on stderr without the prefix.

    No server listens at the address: after a connection attempt the code would be 1.
    """
    ours = kquota_here("configs", connection, "127.0.0.1:1", *arguments)
    assert (ours.code, ours.out, ours.err.count("\n")) == (2, "", 1), ours
    assert "CANARY" not in ours.err
    return ours.err.removeprefix("kquota: error: ")


@pytest.mark.parametrize(("arguments", "words"), BOTH.values(), ids=BOTH)
def test_both_tools_refuse(
    kafka_431: Sandbox, config_commands: ConfigCommands, arguments: list[str], words: str
) -> None:
    theirs = config_commands(str(kafka_431.kafka))("--bootstrap-server", kafka_431.bootstrap, *arguments)
    assert theirs.code == 1, theirs
    assert words in theirs.err
    assert words in refused(arguments, "--bootstrap-server")


@pytest.mark.parametrize("name", ON_ZOOKEEPER)
def test_both_tools_refuse_over_zookeeper(kafka_282: Sandbox, config_commands: ConfigCommands, name: str) -> None:
    arguments, words = ON_ZOOKEEPER[name]
    theirs = config_commands(str(kafka_282.kafka))("--zookeeper", str(kafka_282.zookeeper), *arguments)
    assert theirs.code == 1, theirs
    assert name in OTHER_WORDS_IN_2_8 or words in theirs.err
    assert words in refused(arguments, "--zookeeper")


@pytest.mark.parametrize("connection", ["--bootstrap-server", "--zookeeper"])
@pytest.mark.parametrize(("arguments", "words"), OURS_ALONE.values(), ids=OURS_ALONE)
def test_only_kquota_refuses(arguments: list[str], words: str, connection: str) -> None:
    assert words in refused(arguments, connection)


@pytest.mark.parametrize("kind", ["groups", "client-metrics", "broker-loggers"])
def test_zookeeper_does_not_have_the_type(kafka_391: Sandbox, config_commands: ConfigCommands, kind: str) -> None:
    arguments = ["--alter", TYPES, kind, NAME, "1", "--add-config", "a=CANARY"]
    theirs = config_commands("3.9.1")("--zookeeper", str(kafka_391.zookeeper), *arguments)
    assert theirs.code == 1
    words = f"Invalid entity type {kind}, the entity type must be one of "
    assert words in theirs.err
    ours = refused(arguments, "--zookeeper")
    assert ours.startswith(words)
    assert ours.endswith(" with a --zookeeper argument. Use --bootstrap-server\n")


@pytest.mark.parametrize("arguments", [["--client-id", "a"], ["--client-id=a"], ["-client-id", "a"]])
def test_client_id_stands_for_client(arguments: list[str]) -> None:
    message = "Only 'users' and 'clients' entity types"
    assert message in refused(["--describe", *arguments, "--topic", "t"], "--bootstrap-server")


NEED_BROKERS = {
    "a broker's config": ["--broker", "1", "--add-config", "log.cleaner.threads=5"],
    "a topic's config that is new": ["--topic", "t", "--add-config", "remote.storage.enable=true"],
}


@pytest.mark.parametrize("arguments", NEED_BROKERS.values(), ids=NEED_BROKERS)
def test_kquota_checks_values_that_zookeeper_does_not_check(arguments: list[str]) -> None:
    assert refused(["--alter", *arguments], "--zookeeper").endswith(". Use --bootstrap-server\n")
