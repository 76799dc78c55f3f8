"""Carol, who has only the permissions that a test grants, and the admin who grants them, on the secured broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

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
from tests.waiting import until

CLUSTER, TOPIC, GROUP = ResourceType.BROKER, ResourceType.TOPIC, ResourceType.GROUP
MOVED = "rights"
"""The topic that commands read and change."""


class Right(NamedTuple):
    """One operation on the cluster, a topic or a group. With `prefix`, it is on all topics whose names begin with
    `name`.
    """

    kind: ResourceType
    operation: AclOperation
    topic: str = MOVED
    prefix: bool = False

    @property
    def binding(self) -> AclBinding:
        """Return the permission as an ACL for the user carol."""
        name = "kafka-cluster" if self.kind == CLUSTER else self.topic
        allow = AclPermissionType.ALLOW
        pattern = ResourcePatternType.PREFIXED if self.prefix else ResourcePatternType.LITERAL
        return AclBinding(self.kind, name, pattern, "User:carol", "*", self.operation, allow)

    def __str__(self) -> str:
        where = self.kind.name if self.topic == MOVED else self.topic
        return f"{where} {self.operation.name}"


def admin_of(secured: Secured) -> AdminClient:
    """Return a client with all permissions, after it has created the topic MOVED."""
    client = AdminClient({"bootstrap.servers": secured.at["PLAINTEXT"], "log_level": 0})
    if MOVED not in client.list_topics(timeout=30).topics:
        client.create_topics([NewTopic(MOVED, 1, 1)])[MOVED].result(timeout=30)
    return client


@contextmanager
def granted(admin: AdminClient, rights: Sequence[Right]) -> Iterator[None]:
    """Give carol these permissions and no others in the block."""
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:carol", None, AclOperation.ANY, AclPermissionType.ANY
    )

    def stand(wanted: Sequence[Right]) -> None:
        """Waits until the broker applies the rates. The controller applies them earlier."""
        bindings = {right.binding for right in wanted}
        until(lambda: set(admin.describe_acls(every).result(timeout=30)) == bindings, "brokers enforce the permissions")

    for done in admin.create_acls([right.binding for right in rights]).values() if rights else []:
        done.result(timeout=30)
    try:
        stand(rights)
        yield
    finally:
        for gone in admin.delete_acls([every]).values():
            gone.result(timeout=30)
    stand([])


def as_carol(secured: Secured, command: Sequence[str]) -> Ran:
    """Run the command with carol's login."""
    file = secured.config("carol.properties", {"security.protocol": "SASL_PLAINTEXT", **plain("carol")})
    return kquota(*command, "--bootstrap-server", secured.at["BARELOGIN"], "--command-config", str(file))
