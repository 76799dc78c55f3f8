"""The permissions of commands that docs/login.md lists: they are enough, each one is needed, and without one the
command writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from tests.cli.run import Ran, kquota
from tests.rights import CLUSTER, GROUP, TOPIC, Right, admin_of, as_carol, granted
from tests.secured import PASSWORD, Secured
from tests.stores.metrics.prometheus_server import serving

READ, WRITE = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
DESCRIBE, ALTER = AclOperation.DESCRIBE, AclOperation.ALTER
SCRAM = "SCRAM-SHA-512=[iterations=4096]"
LOGGER = "org.apache.kafka.server.logger.LoggingController"

NEEDS: dict[str, tuple[Sequence[str], Sequence[Right]]] = {
    "read quotas": (["configs", "--describe", "--entity-type", "users"], [Right(CLUSTER, READ)]),
    "write quotas": (
        ["configs", "--alter", "--add-config", "producer_byte_rate=1000", "--user", "u"],
        [Right(CLUSTER, WRITE)],
    ),
    "write SCRAM credentials": (
        ["configs", "--alter", "--add-config", SCRAM, "--password-file", "PASSWORD", "--user", "scram"],
        [Right(CLUSTER, ALTER), Right(CLUSTER, READ)],
    ),
    "read a topic's configs": (["configs", "--describe", "--topic", "rights"], [Right(TOPIC, READ)]),
    "write a topic's configs": (
        ["configs", "--alter", "--add-config", "retention.ms=1000", "--topic", "rights"],
        [Right(TOPIC, WRITE)],
    ),
    "read a broker's configs": (["configs", "--describe", "--broker", "1"], [Right(CLUSTER, READ)]),
    "write a broker's configs": (
        ["configs", "--alter", "--add-config", "leader.replication.throttled.rate=1000", "--broker", "1"],
        [Right(CLUSTER, WRITE)],
    ),
    "read a group's configs": (["configs", "--describe", "--group", "g"], [Right(GROUP, READ, "g")]),
    "write a group's configs": (
        ["configs", "--alter", "--add-config", "consumer.session.timeout.ms=50000", "--group", "g"],
        [Right(GROUP, WRITE, "g")],
    ),
    "list groups": (
        ["configs", "--describe", "--entity-type", "groups"],
        [Right(CLUSTER, DESCRIBE), Right(CLUSTER, READ), Right(GROUP, READ, "g")],
    ),
    "read client metrics": (["configs", "--describe", "--client-metrics", "m"], [Right(CLUSTER, READ)]),
    "list client metrics": (["configs", "--describe", "--entity-type", "client-metrics"], [Right(CLUSTER, READ)]),
    "write client metrics": (
        ["configs", "--alter", "--add-config", "interval.ms=60000", "--client-metrics", "m"],
        [Right(CLUSTER, WRITE)],
    ),
    "read a broker's loggers": (["configs", "--describe", "--broker-logger", "1"], [Right(CLUSTER, READ)]),
    "write a broker's loggers": (
        ["configs", "--alter", "--add-config", f"{LOGGER}=WARN", "--broker-logger", "1"],
        [Right(CLUSTER, WRITE)],
    ),
    "sizes": (["log-dirs", "--describe"], [Right(CLUSTER, DESCRIBE)]),
    "running moves": (["reassign-partitions", "--list"], [Right(CLUSTER, DESCRIBE)]),
    "use of quotas": (["quota", "top", "--prometheus", "PROMETHEUS"], [Right(CLUSTER, READ)]),
}
SHOWN: dict[str, Sequence[str]] = {
    "write quotas": ["--user", "u"],
    "write SCRAM credentials": ["--user", "scram"],
    "write a topic's configs": ["--topic", "rights"],
    "write a broker's configs": ["--broker", "1"],
    "write a group's configs": ["--group", "g"],
    "write client metrics": ["--client-metrics", "m"],
    "write a broker's loggers": ["--broker-logger", "1"],
}
"""The options that show what a command has written."""
WITHOUT_SCRAM = "SCRAM credentials are left out: the broker answered ClusterAuthorizationFailed (31)"


@pytest.fixture(scope="module")
def admin(secured: Secured) -> AdminClient:
    """A client that may grant permissions. The group g has a config."""
    config = ("--alter", "--add-config", "consumer.session.timeout.ms=45000", "--group", "g")
    assert kquota("configs", "--bootstrap-server", secured.at["PLAINTEXT"], *config).code == 0
    return admin_of(secured)


@pytest.fixture(scope="module")
def prometheus() -> Iterator[str]:
    labels = {"__name__": "kafka_server_Produce_byte_rate", "client_id": "app", "instance": "b:7071"}
    with serving(lambda _: [(labels, "5.5")], time.time) as url:
        yield url


@pytest.fixture
def words(secured: Secured, prometheus: str) -> Mapping[str, str]:
    """The words of a command that are known only when the test runs."""
    file = secured.folder / "password"
    file.touch(mode=0o600)
    file.write_text(PASSWORD)
    return {"PASSWORD": str(file), "PROMETHEUS": prometheus}


def ran_by_carol(secured: Secured, command: Sequence[str], words: Mapping[str, str]) -> Ran:
    return as_carol(secured, [words.get(word, word) for word in command])


@pytest.mark.parametrize(("command", "rights"), NEEDS.values(), ids=NEEDS)
def test_the_documented_permissions_are_enough(
    secured: Secured,
    admin: AdminClient,
    words: Mapping[str, str],
    command: Sequence[str],
    rights: Sequence[Right],
) -> None:
    with granted(admin, rights):
        ran = ran_by_carol(secured, command, words)
    assert ran.code == 0, ran.err
    assert "Authorization" not in ran.err.replace(WITHOUT_SCRAM, ""), ran.err


def test_credentials_without_permission_are_omitted(secured: Secured, admin: AdminClient) -> None:
    """Kafka requires Describe on the cluster to list users with SCRAM credentials. Quotas are shown without it."""
    with granted(admin, [Right(CLUSTER, READ)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out) == (0, False)
    assert WITHOUT_SCRAM in ran.err
    with granted(admin, [Right(CLUSTER, READ), Right(CLUSTER, DESCRIBE)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out, ran.err) == (0, True, "")


LACKING = [(name, missing) for name, (_, rights) in NEEDS.items() for missing in rights]
ONLY_SHORTER = [("list groups", Right(CLUSTER, DESCRIBE))]
"""Kafka then lists only the groups that have configs and those that the user may describe."""


@pytest.mark.parametrize(
    ("name", "missing"),
    [one for one in LACKING if one not in ONLY_SHORTER],
    ids=[f"{name} without {missing}" for name, missing in LACKING if (name, missing) not in ONLY_SHORTER],
)
def test_each_documented_permission_is_needed(
    secured: Secured, admin: AdminClient, words: Mapping[str, str], name: str, missing: Right
) -> None:
    command, rights = NEEDS[name]
    before = shown(secured, name)
    with granted(admin, [right for right in rights if right != missing]):
        ran = ran_by_carol(secured, command, words)
    assert (ran.code, ran.out) == (1, "")
    assert "Authorization" in ran.err.splitlines()[-1]
    assert shown(secured, name) == before


def shown(secured: Secured, name: str) -> str | None:
    """Return what an admin sees of the settings that a command writes."""
    if name not in SHOWN:
        return None
    ran = kquota("configs", "--bootstrap-server", secured.at["PLAINTEXT"], "--describe", *SHOWN[name])
    assert ran.code == 0, ran.err
    return ran.out


def test_advice_reads_the_quotas_before_the_use(secured: Secured, admin: AdminClient) -> None:
    """With the permission, only the missing use ends the command, so no Spark job is needed here."""
    command = ["quota", "advise", "--usage", str(secured.folder)]
    with granted(admin, [Right(CLUSTER, READ)]):
        ran = as_carol(secured, command)
    assert (ran.code, "Authorization" in ran.err) == (2, False), ran.err
    with granted(admin, []):
        ran = as_carol(secured, command)
    assert (ran.code, ran.out, "Authorization" in ran.err.splitlines()[-1]) == (1, "", True), ran.err
