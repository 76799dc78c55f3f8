"""The permissions of commands that docs/login.md lists: they are enough, and each one is needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from tests.rights import CLUSTER, TOPIC, Right, admin_of, as_carol, granted
from tests.secured import Secured

READ, WRITE = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
DESCRIBE = AclOperation.DESCRIBE

NEEDS: dict[str, tuple[Sequence[str], Sequence[Right]]] = {
    "read quotas": (["configs", "--describe", "--entity-type", "users"], [Right(CLUSTER, READ)]),
    "write quotas": (
        ["configs", "--alter", "--add-config", "producer_byte_rate=1000", "--user", "u"],
        [Right(CLUSTER, WRITE)],
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
    "sizes": (["log-dirs", "--describe"], [Right(CLUSTER, DESCRIBE)]),
    "running moves": (["reassign-partitions", "--list"], [Right(CLUSTER, DESCRIBE)]),
}


@pytest.fixture(scope="module")
def admin(secured: Secured) -> AdminClient:
    """A client that may grant permissions."""
    return admin_of(secured)


@pytest.mark.parametrize(("command", "rights"), NEEDS.values(), ids=NEEDS)
def test_the_documented_permissions_are_enough(
    secured: Secured, admin: AdminClient, command: Sequence[str], rights: Sequence[Right]
) -> None:
    with granted(admin, rights):
        ran = as_carol(secured, command)
    assert ran.code == 0, ran.err


def test_credentials_without_permission_are_omitted(secured: Secured, admin: AdminClient) -> None:
    """Kafka requires Describe on the cluster to list users with SCRAM credentials. Quotas are shown without it."""
    with granted(admin, [Right(CLUSTER, READ)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out) == (0, False)
    assert "SCRAM credentials are left out: the broker answered ClusterAuthorizationFailed (31)" in ran.err
    with granted(admin, [Right(CLUSTER, READ), Right(CLUSTER, DESCRIBE)]):
        ran = as_carol(secured, NEEDS["read quotas"][0])
    assert (ran.code, "SCRAM" in ran.out, ran.err) == (0, True, "")


LACKING = [(name, missing) for name, (_, rights) in NEEDS.items() for missing in rights]


@pytest.mark.parametrize(("name", "missing"), LACKING, ids=[f"{name} without {missing}" for name, missing in LACKING])
def test_each_documented_permission_is_needed(secured: Secured, admin: AdminClient, name: str, missing: Right) -> None:
    command, rights = NEEDS[name]
    with granted(admin, [right for right in rights if right != missing]):
        ran = as_carol(secured, command)
    assert (ran.code, ran.out) == (1, "")
    assert "Authorization" in ran.err.splitlines()[-1]
