"""`kquota configs` on topics and brokers against Kafka's own ConfigCommand: the same commands, state and words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kquota.sandbox.cluster import Sandbox
from tests.cli.config_command import ConfigCommand, ConfigCommands, settled
from tests.cli.run import Ran, kquota, kquota_here
from tests.servers import WAYS
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

HARMLESS = str(5 * 10**14)
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LISTS = "leader.replication.throttled.replicas=[0:1,0:2],follower.replication.throttled.replicas=[0:3]"
TOPIC_KEYS = "leader.replication.throttled.replicas,follower.replication.throttled.replicas,retention.ms,cleanup.policy"
NOWHERE = ("--bootstrap-server", "127.0.0.1:1")


@dataclass(frozen=True)
class Way:
    """One connection to one cluster, for kquota and for the Kafka tool whose words kquota prints.

    These are the words of 4.3.1 on brokers of every release, and of 2.8.2 on ZooKeeper.
    """

    cluster: Sandbox
    connection: tuple[str, str]
    command: ConfigCommand

    @property
    def on_zookeeper(self) -> bool:
        return self.connection[0] == "--zookeeper"

    def kquota(self, *arguments: str) -> Ran:
        return kquota_here("configs", *self.connection, *arguments)

    def kafka(self, *arguments: str) -> Ran:
        return self.command(*self.connection, *arguments)


def way_on(request: pytest.FixtureRequest, name: str) -> Way:
    fixture, on_zookeeper = WAYS[name]
    cluster: Sandbox = request.getfixturevalue(fixture)
    commands: ConfigCommands = request.getfixturevalue("config_commands")
    if on_zookeeper:
        return Way(cluster, ("--zookeeper", str(cluster.zookeeper)), commands("2.8.2"))
    return Way(cluster, ("--bootstrap-server", cluster.bootstrap), commands("4.3.1"))


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return way_on(request, request.param)


@pytest.fixture(params=[name for name in WAYS if "Admin" in name])
def admin(request: pytest.FixtureRequest) -> Way:
    return way_on(request, request.param)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic on the test's connection. It is deleted afterwards, with every rate."""
    found: Way = request.getfixturevalue("way" if "way" in request.fixturenames else "admin")
    hand = OtherHand(found.cluster)
    name = hand.topic({0: [1]}, size=1)
    until(lambda: name in found.kquota("--describe", "--topic", name).out, f"{name} is seen")
    yield name
    hand.close()


def words(out: str) -> list[tuple[str, list[str]]]:
    """A description, resource by resource. Kafka prints in hash order and kquota sorts, so the content must agree."""
    found: list[tuple[str, list[str]]] = []
    for line in out.splitlines():
        head, are, tail = line.partition(" are ")
        if are:
            pairs = sorted(tail.replace("0:1,0:2", "0:1+0:2").split(","))
            found.append((head, [pair for pair in pairs if pair]))
        elif line.startswith("  "):
            found[-1][1].append(line)
        else:
            found.append((line, []))
    return sorted((head, sorted(lines)) for head, lines in found)


def agree(way: Way, *arguments: str, err: str = "") -> Ran:
    # Kafka's tool asks any broker, and on KRaft a broker may lag for a moment.
    ours, kafkas = settled(
        lambda: (way.kquota("--describe", *arguments), way.kafka("--describe", *arguments)),
        lambda both: words(both[0].out) == words(both[1].out),
    )
    assert (ours.code, kafkas.code, ours.err) == (0, 0, err)
    assert words(ours.out) == words(kafkas.out)
    return ours


class TestTopics:
    def test_same_commands_same_state_same_words(self, way: Way, topic: str) -> None:
        names = ["--entity-type", "topics", "--entity-name", topic]
        added = ["--add-config", f"{LISTS},retention.ms=86400000,cleanup.policy=[compact,delete]"]
        ours = way.kquota("--alter", *added, *names)
        assert (ours.code, ours.err) == (0, "")
        described = agree(way, *names)
        assert "leader.replication.throttled.replicas=0:1,0:2" in described.out

        again = way.kafka("--alter", *added, *names)
        assert (again.code, again.out) == (0, ours.out)
        assert agree(way, *names) == described

        removed = way.kquota("--alter", "--delete-config", TOPIC_KEYS, *names)
        assert (removed.code, removed.out) == (0, ours.out)
        empty = agree(way, *names)
        assert "=" not in empty.out

    def test_all_topics(self, way: Way, topic: str) -> None:
        assert way.kquota("--alter", "--topic", topic, "--add-config", "retention.ms=86400000").code == 0
        assert topic in agree(way, "--entity-type", "topics").out

    def test_all_configs_in_force(self, admin: Way, topic: str) -> None:
        assert admin.kquota("--alter", "--topic", topic, "--add-config", "retention.ms=86400000").code == 0
        described = agree(admin, "--topic", topic, "--all").out
        assert described.startswith(f"All configs for topic {topic} are:\n")
        assert "  segment.bytes=" in described

    def test_a_resource_that_does_not_exist(self, way: Way) -> None:
        agree(way, "--entity-type", "topics", "--entity-name", "nobody-s")
        refused = way.kquota("--alter", "--topic", "nobody-s", "--add-config", "retention.ms=5000")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err == "kquota: error: topic 'nobody-s' does not exist. Check the name\n"
        assert way.kafka("--alter", "--topic", "nobody-s", "--add-config", "retention.ms=5000").code == 1

    def test_all_configs_of_a_topic_that_does_not_exist(self, admin: Way) -> None:
        ran = admin.kquota("--describe", "--topic", "nobody-s", "--all")
        missing = "kquota: error: topic 'nobody-s' does not exist. Check the name\n"
        assert (ran.code, ran.out, ran.err) == (1, "", missing)

    def test_the_value_that_applies_after_a_config_is_deleted(self, admin: Way, topic: str) -> None:
        assert admin.kquota("--alter", "--topic", topic, "--add-config", "preallocate=true").code == 0
        ran = admin.kquota("--alter", "--topic", topic, "--delete-config", "preallocate,segment.ms")
        assert ran.err == (
            f"kquota: topic '{topic}': segment.ms was not set; nothing to delete\n"
            f"kquota: topic '{topic}': preallocate is now false, from DEFAULT_CONFIG\n"
        )

    def test_a_throttle_of_every_replica_is_accepted_with_a_warning(self, way: Way, topic: str) -> None:
        ran = way.kquota("--alter", "--topic", topic, "--add-config", "leader.replication.throttled.replicas=*")
        assert ran.code == 0
        assert ran.err.startswith(
            f"kquota: warning: topic '{topic}': leader.replication.throttled.replicas=* throttles"
        )
        assert "leader.replication.throttled.replicas=*" in agree(way, "--topic", topic).out


class TestBrokers:
    @pytest.fixture(autouse=True)
    def restored(self, way: Way) -> Iterator[None]:
        yield
        for names in (["--broker", "1"], ["--broker", "2"], ["--broker-defaults"]):
            assert way.kquota("--alter", *names, "--delete-config", LOG_DIR_RATE).code == 0

    def test_same_commands_same_state_same_words(self, way: Way) -> None:
        names = ["--entity-type", "brokers", "--entity-name", "1"]
        ours = way.kquota("--alter", *names, "--add-config", f"{LOG_DIR_RATE}=500TB/s")
        assert ours.code == 0
        assert ours.err == f"kquota: broker '1': {LOG_DIR_RATE} = {HARMLESS} bytes per second (500 TB/s)\n"
        described = agree(way, *names)
        assert f"{LOG_DIR_RATE}={HARMLESS}" in described.out
        again = way.kafka("--alter", *names, "--add-config", f"{LOG_DIR_RATE}={HARMLESS}")
        assert (again.code, again.out) == (0, ours.out)
        assert agree(way, *names) == described
        assert way.kquota("--alter", *names, "--delete-config", LOG_DIR_RATE).out == ours.out
        assert LOG_DIR_RATE not in agree(way, *names).out

    def test_all_brokers_and_their_default(self, way: Way) -> None:
        assert way.kquota("--alter", "--broker", "2", "--add-config", f"{LOG_DIR_RATE}={HARMLESS}").code == 0
        set_by_kafka = way.kafka("--alter", "--broker-defaults", "--add-config", f"{LOG_DIR_RATE}={HARMLESS}")
        assert set_by_kafka.code == 0
        until(lambda: HARMLESS in way.kquota("--describe", "--broker-defaults").out, "the default is seen")
        agree(way, "--entity-type", "brokers")
        agree(way, "--entity-type", "brokers", "--entity-default")
        removed = way.kquota("--alter", "--broker-defaults", "--delete-config", LOG_DIR_RATE)
        assert (removed.code, removed.out) == (0, set_by_kafka.out)

    def test_all_configs_in_force(self, way: Way) -> None:
        if way.on_zookeeper:
            ran = way.kquota("--describe", "--broker", "1", "--all")
            assert (ran.code, ran.err) == (2, "kquota: error: --bootstrap-server must be specified for --all\n")
            return
        described = agree(way, "--broker", "1", "--all").out
        assert "  num.io.threads=" in described
        assert "sensitive=true" in described

    def test_a_broker_that_is_not_alive(self, way: Way) -> None:
        other = "" if way.cluster.zookeeper is None else ". On a cluster with ZooKeeper, you can also use --zookeeper"
        unknown = (
            "kquota: note: broker 99 is not alive, so its configs are unknown. Start the broker and run the command "
            f"again{other}\n"
        )
        agree(way, "--entity-type", "brokers", "--entity-name", "99", err="" if way.on_zookeeper else unknown)
        rate = f"{LOG_DIR_RATE}={HARMLESS}"
        ran = way.kquota("--alter", "--broker", "99", "--add-config", rate)
        if way.on_zookeeper:
            assert (ran.code, ran.out) == (0, way.kafka("--alter", "--broker", "99", "--add-config", rate).out)
            assert ran.err.endswith("kquota: broker '99' is dead. The change takes effect when the broker starts\n")
            assert way.kquota("--alter", "--broker", "99", "--delete-config", LOG_DIR_RATE).code == 0
            unchanged = way.kquota("--alter", "--broker", "99", "--delete-config", LOG_DIR_RATE)
            assert unchanged.err.endswith(f"kquota: broker '99': {LOG_DIR_RATE} was not set; nothing to delete\n")
            assert "is dead" not in unchanged.err
        else:
            assert (ran.code, ran.out) == (1, "")
            assert "broker '99' is dead" in ran.err
            assert "Start it, or choose a live broker (1, 2, 3)" in ran.err

    def test_a_default_rate_is_accepted_only_where_brokers_apply_it(self, way: Way) -> None:
        """KAFKA-10190. Kafka's own tool prints `Completed` everywhere."""
        ran = way.kquota("--alter", "--broker-defaults", "--add-config", f"{LOG_DIR_RATE}={HARMLESS}")
        told = "KAFKA-10190" in ran.err
        if way.on_zookeeper:
            assert (ran.code, told) == (0, True)
        else:
            assert (ran.code, told) == ((1, True) if way.cluster.kafka == "2.8.2" else (0, False))
        set_ = HARMLESS in way.kquota("--describe", "--broker-defaults").out
        assert set_ is (ran.code == 0)


class TestScripts:
    def test_json(self, admin: Way, topic: str) -> None:
        altered = admin.kquota("--alter", "--topic", topic, "--add-config", "preallocate=true", "--output", "json")
        assert json.loads(altered.out) == {"version": 1, "altered": {"topic": topic}}
        described = admin.kquota("--describe", "--topic", topic, "--output", "json")
        assert json.loads(described.out) == {
            "version": 1,
            "resources": [
                {
                    "topic": topic,
                    "configs": [
                        {
                            "key": "preallocate",
                            "value": "true",
                            "source": "DYNAMIC_TOPIC_CONFIG",
                            "sensitive": False,
                            "synonyms": [
                                {"source": "DYNAMIC_TOPIC_CONFIG", "key": "preallocate", "value": "true"},
                                {"source": "DEFAULT_CONFIG", "key": "log.preallocate", "value": "false"},
                            ],
                        }
                    ],
                }
            ],
        }

    def test_json_of_brokers(self, admin: Way) -> None:
        described = json.loads(admin.kquota("--describe", "--entity-type", "brokers", "--output", "json").out)
        assert [resource["broker"] for resource in described["resources"]] == [1, 2, 3, None]

    def test_tsv(self, way: Way, topic: str) -> None:
        assert way.kquota("--alter", "--topic", topic, "--add-config", "cleanup.policy=[compact,delete]").code == 0
        assert way.kquota("--describe", "--topic", topic, "--output", "tsv").out == (
            "type\tname\tkey\tvalue\tsource\tsensitive\n"
            f"topic\t{topic}\tcleanup.policy\tcompact,delete\tDYNAMIC_TOPIC_CONFIG\tfalse\n"
        )

    def test_a_resource_that_does_not_exist(self, admin: Way) -> None:
        """stdout stays a JSON document, and the message goes to stderr."""
        ran = admin.kquota("--describe", "--topic", "nobody-s", "--output", "json")
        assert (ran.code, json.loads(ran.out)) == (0, {"version": 1, "resources": []})
        assert ran.err == "kquota: The topic 'nobody-s' doesn't exist and doesn't have dynamic config.\n"


BAD = {
    "KIP-73's form of a list": (["--topic", "t", "--add-config", "leader.replication.throttled.replicas=0-1"], "0:1"),
    "a list on a broker": (["--broker", "1", "--add-config", "leader.replication.throttled.replicas=*"], "topics"),
    "a rate on a topic": (["--topic", "t", "--add-config", "leader.replication.throttled.rate=5"], "brokers"),
    "a rate of 0": (["--broker", "1", "--add-config", "leader.replication.throttled.rate=0"], "at least 1"),
    "no id": (["--broker", "one", "--add-config", f"{LOG_DIR_RATE}=5"], "must be a valid integer broker id"),
    "no topic's name": (["--topic", "../x", "--add-config", "retention.ms=5"], "not a valid topic name"),
    "a secret": (
        ["--broker", "1", "--add-config", "ssl.key.password=CANARY-7f3a"],
        "--add-config-file",
    ),
    "both added and deleted": (
        ["--topic", "t", "--add-config", "retention.ms=5", "--delete-config", "retention.ms"],
        "both added and deleted",
    ),
}


@pytest.mark.parametrize(("arguments", "why"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_before_any_connection(arguments: list[str], why: str) -> None:
    ran = kquota("configs", *NOWHERE, "--alter", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert "CANARY" not in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "t", "--add-config", "retention.ms=x"],
        ["--topic", "t", "--add-config", "retention.mss=5"],
        ["--broker", "1", "--add-config", "log.cleaner.threads=5"],
    ],
)
def test_invalid_values_are_not_written_to_zookeeper(arguments: list[str]) -> None:
    ran = kquota("configs", "--zookeeper", "127.0.0.1:1", "--alter", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "ooKeeper" in ran.err
