"""The rights that commands need, as docs/login.md tells them: these are enough, and none of them may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.cli.run import Ran, kquota
from tests.logins import plain
from tests.secured import Secured
from tests.stores.moves_stage import until

CLUSTER, TOPIC = ResourceType.BROKER, ResourceType.TOPIC
READ, WRITE = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
DESCRIBE = AclOperation.DESCRIBE

Right = tuple[ResourceType, AclOperation]
NEEDS: dict[str, tuple[Sequence[str], Sequence[Right]]] = {
    "read quotas": (["configs", "--describe", "--entity-type", "users"], [(CLUSTER, READ)]),
    "write quotas": (
        ["configs", "--alter", "--add-config", "producer_byte_rate=1000", "--user", "u"],
        [(CLUSTER, WRITE)],
    ),
    "read a topic's configs": (["configs", "--describe", "--topic", "rights"], [(TOPIC, READ)]),
    "write a topic's configs": (
        ["configs", "--alter", "--add-config", "retention.ms=1000", "--topic", "rights"],
        [(TOPIC, WRITE)],
    ),
    "read a broker's configs": (["configs", "--describe", "--broker", "1"], [(CLUSTER, READ)]),
    "write a broker's configs": (
        ["configs", "--alter", "--add-config", "leader.replication.throttled.rate=1000", "--broker", "1"],
        [(CLUSTER, WRITE)],
    ),
    "sizes": (["log-dirs", "--describe"], [(CLUSTER, DESCRIBE)]),
    "running moves": (["reassign-partitions", "--list"], [(CLUSTER, DESCRIBE)]),
}


def binding(right: Right) -> AclBinding:
    kind, operation = right
    name = "kafka-cluster" if kind == CLUSTER else "rights"
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:carol", "*", operation, allow)


@pytest.fixture(scope="module")
def admin(secured: Secured) -> AdminClient:
    """One who may grant rights; the topic is there."""
    client = AdminClient({"bootstrap.servers": secured.at["PLAINTEXT"], "log_level": 0})
    for done in client.create_topics([NewTopic("rights", 1, 1)]).values():
        done.result(timeout=30)
    return client


@contextmanager
def granted(admin: AdminClient, rights: Sequence[Right]) -> Iterator[None]:
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:carol", None, AclOperation.ANY, AclPermissionType.ANY
    )

    def stand(wanted: Sequence[Right]) -> None:
        """The controller has them before the broker heeds them."""
        bindings = set(map(binding, wanted))
        until(lambda: set(admin.describe_acls(every).result(timeout=30)) == bindings, "the rights are heeded")

    for done in admin.create_acls([binding(right) for right in rights]).values() if rights else []:
        done.result(timeout=30)
    try:
        stand(rights)
        yield
    finally:
        for gone in admin.delete_acls([every]).values():
            gone.result(timeout=30)
    stand([])


def as_carol(secured: Secured, command: Sequence[str]) -> Ran:
    file = secured.config("carol.properties", {"security.protocol": "SASL_PLAINTEXT", **plain("carol")})
    return kquota(*command, "--bootstrap-server", secured.at["BARELOGIN"], "--command-config", str(file))


@pytest.mark.parametrize(("command", "rights"), NEEDS.values(), ids=NEEDS)
def test_the_rights_are_enough(
    secured: Secured, admin: AdminClient, command: Sequence[str], rights: Sequence[Right]
) -> None:
    with granted(admin, rights):
        ran = as_carol(secured, command)
    assert ran.code == 0, ran.err


def test_credentials_that_one_may_not_see_are_left_out(secured: Secured, admin: AdminClient) -> None:
    """Kafka wants Describe on the cluster to tell who has SCRAM credentials; quotas are shown without it."""
    with granted(admin, [(CLUSTER, READ)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out) == (0, False)
    assert "SCRAM credentials are left out: the broker answered ClusterAuthorizationFailed (31)" in ran.err
    with granted(admin, [(CLUSTER, READ), (CLUSTER, DESCRIBE)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out, ran.err) == (0, True, "")


LACKING = [(name, missing) for name, (_, rights) in NEEDS.items() for missing in rights]


@pytest.mark.parametrize(
    ("name", "missing"), LACKING, ids=[f"{name} without {kind.name} {op.name}" for name, (kind, op) in LACKING]
)
def test_none_of_them_may_be_missing(secured: Secured, admin: AdminClient, name: str, missing: Right) -> None:
    command, rights = NEEDS[name]
    with granted(admin, [right for right in rights if right != missing]):
        ran = as_carol(secured, command)
    assert (ran.code, ran.out) == (1, "")
    assert "Authorization" in ran.err.splitlines()[-1]
