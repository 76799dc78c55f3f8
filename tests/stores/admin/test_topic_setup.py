"""The record's topic: its creation, its checks, and the permissions that these need."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kquota.errors import QuotaViolatedException, Refused
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topic_log import find
from kquota.stores.admin.topic_setup import LogTopic
from kquota.stores.state.log import Forbidden
from tests.secured import PASSWORD, Secured
from tests.stores.record.stage import create, delete, handle
from tests.waiting import until

GOOD = LogTopic(
    identity=str(uuid.uuid4()),
    partitions=1,
    replicas=3,
    configs={
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "max.message.bytes": "1048588",
        "compression.type": "producer",
    },
)


def but(**configs: str) -> LogTopic:
    return dataclasses.replace(
        GOOD, configs={**(GOOD.configs or {}), **{key.replace("_", "."): value for key, value in configs.items()}}
    )


WRONG: dict[str, tuple[LogTopic, str]] = {
    "several partitions": (dataclasses.replace(GOOD, partitions=3), "it has 3 partitions, and the record needs one"),
    "deleted by age": (but(cleanup_policy="delete"), "cleanup.policy is delete, but must be compact"),
    "compacted and deleted": (but(cleanup_policy="compact,delete"), "cleanup.policy is compact,delete, but"),
    "the client's time": (but(message_timestamp_type="CreateTime"), "message.timestamp.type is CreateTime, but must"),
    "a codec": (but(compression_type="zstd"), "compression.type is zstd, but must be one of producer, unc"),
}
WEAK: dict[str, tuple[LogTopic, str]] = {
    "one replica": (dataclasses.replace(GOOD, replicas=1), "replication factor is 1, but should be 3"),
    "one in sync": (but(min_insync_replicas="1"), "min.insync.replicas is 1, but should be 2"),
    "all in sync": (but(min_insync_replicas="3"), "min.insync.replicas is 3, and the topic has 3 replicas"),
    "more in sync than replicas": (
        but(min_insync_replicas="4"),
        "min.insync.replicas is 4, but the topic has 3 replicas: old brokers, for example of Kafka 2.8, refuse every "
        "write. It should be 2",
    ),
    "unclean": (but(unclean_leader_election_enable="true"), "unclean.leader.election.enable is true"),
    "small batches": (but(max_message_bytes="1000"), "max.message.bytes is 1000, but should be 1000000 or more"),
    "unreadable": (dataclasses.replace(GOOD, configs=None), "its configs cannot be read"),
}


@pytest.mark.parametrize(("topic", "words"), WRONG.values(), ids=WRONG)
def test_invalid_settings_are_reported(topic: LogTopic, words: str) -> None:
    (found,) = topic_setup.wrong(topic)
    assert words in found


@pytest.mark.parametrize(("topic", "words"), WEAK.values(), ids=WEAK)
def test_weak_settings_are_reported_and_not_invalid(topic: LogTopic, words: str) -> None:
    assert topic_setup.wrong(topic) == ()
    assert words in topic_setup.weak(topic, brokers=3)[0]


def test_more_in_sync_than_one_replica_is_reported() -> None:
    """A broker of Kafka 2.8.2 answers each append with NotEnoughReplicas, also if all brokers run."""
    _, found = topic_setup.weak(dataclasses.replace(GOOD, replicas=1), brokers=3)
    assert "min.insync.replicas is 2, but the topic has 1 replica: old brokers" in found
    assert found.endswith("It should be 1")


def test_a_good_topic_and_one_replica_on_one_broker_are_valid() -> None:
    assert (topic_setup.wrong(GOOD), topic_setup.weak(GOOD, brokers=5)) == ((), ())
    alone = dataclasses.replace(but(min_insync_replicas="1"), replicas=1)
    assert topic_setup.weak(alone, brokers=1) == ()


def test_a_topic_is_created_like_its_dry_run_and_deleted(cluster: Sandbox) -> None:
    name = f"setup-{uuid.uuid4().hex[:8]}"
    with Wire(cluster.bootstrap, {}) as wire:
        assert topic_setup.describe(wire, name) is None
        planned = topic_setup.create(wire, name, dry_run=True)
        assert topic_setup.describe(wire, name) is None
        assert topic_setup.create(wire, name) == planned
        found = topic_setup.describe(wire, name)
        assert found is not None
        assert (found.partitions, found.replicas) == (planned.partitions, planned.replication_factor) == (1, 3)
        assert found.configs is not None
        assert {key: found.configs[key] for key in planned.configs} == planned.configs
        assert (topic_setup.wrong(found), topic_setup.weak(found, len(wire.brokers()))) == ((), ())
        assert found.identity == handle(wire, name).identity
        with pytest.raises(Refused, match="already exists"):
            topic_setup.create(wire, name)
        topic_setup.delete(wire, name)
        assert (find(wire, name), topic_setup.describe(wire, name)) == (None, None)
        with pytest.raises(Refused, match=r"UnknownTopicOrPartition \(3\)"):
            topic_setup.delete(wire, name)


def test_invalid_settings_of_a_real_topic(cluster: Sandbox) -> None:
    with Wire(cluster.bootstrap, {}) as wire:
        name = create(wire, {"cleanup.policy": "delete"}, partitions=2, replicas=1)
        found = topic_setup.describe(wire, name)
        assert found is not None
        assert len(topic_setup.wrong(found)) == 3
        assert "replication factor is 1, but should be 3" in topic_setup.weak(found, len(wire.brokers()))
        delete(wire, name)


def test_a_mutation_quota_is_reported_with_its_wait(kafka_431: Sandbox) -> None:
    client = f"slow-{uuid.uuid4().hex[:8]}"
    names: list[str] = []
    with Wire(kafka_431.bootstrap, {}) as wire, Wire(kafka_431.bootstrap, {"client_id": client}) as slow:
        quotas, entity = WireQuotas(wire), Entity(client_id=client)
        quotas.alter([QuotaChange(entity=entity, add={"controller_mutation_rate": 0.1})])

        def rejected() -> bool:
            names.append(f"{client}-{len(names)}")
            try:
                topic_setup.create(slow, names[-1])
            except QuotaViolatedException as error:
                assert error.throttle_time_ms > 0
                assert "controller_mutation_rate rejected the request. Try again in" in str(error)
                return True
            return False

        until(rejected, "the quota is in force")
        quotas.alter([QuotaChange(entity=entity, delete=("controller_mutation_rate",))])
        for name in names:
            delete(wire, name)


@pytest.fixture(scope="module")
def admin(secured: Secured) -> AdminClient:
    return AdminClient({"bootstrap.servers": secured.at["PLAINTEXT"], "log_level": 0})


@pytest.fixture
def shared(secured: Secured, admin: AdminClient) -> Iterator[str]:
    """The record's topic, on which carol has no permission. Her permissions are revoked at the end."""
    name = f"rights-{uuid.uuid4().hex[:8]}"
    with Wire(secured.at["PLAINTEXT"], {}) as wire:
        topic_setup.create(wire, name)
        handle(wire, name).append([("a", b"1")])
        yield name
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, "User:carol", None, AclOperation.ANY, AclPermissionType.ANY
        )
        for gone in admin.delete_acls([every]).values():
            gone.result(timeout=30)
        topic_setup.delete(wire, name)


def grant(admin: AdminClient, topic: str, *operations: AclOperation) -> None:
    allow = AclPermissionType.ALLOW
    bindings = [
        AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:carol", "*", operation, allow)
        for operation in operations
    ]
    for done in admin.create_acls(bindings).values():
        done.result(timeout=30)


@pytest.fixture
def carol(secured: Secured) -> Iterator[Wire]:
    settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "carol",
        "sasl_plain_password": PASSWORD,
    }
    with Wire(secured.at["BARELOGIN"], settings) as wire:
        yield wire


def test_a_forbidden_topic_is_never_reported_as_absent(carol: Wire, shared: str) -> None:
    """This includes a topic that does not exist: without Describe the broker gives the same answer for both."""
    for name in (shared, "no-such-topic"):
        for call in (lambda name=name: find(carol, name), lambda name=name: topic_setup.describe(carol, name)):
            with pytest.raises(Forbidden, match=r"\(29\)"):
                call()
    with pytest.raises(Forbidden):
        topic_setup.delete(carol, shared)


def test_read_and_write_are_enough(carol: Wire, admin: AdminClient, shared: str) -> None:
    def allowed() -> bool:
        try:
            return find(carol, shared) is not None
        except Forbidden:
            return False

    grant(admin, shared, AclOperation.READ)
    until(allowed, "brokers enforce READ")
    log = handle(carol, shared)
    assert [item.key for item in log.read()] == ["a"]
    with pytest.raises(Forbidden, match="needs Read on the topic, and Write"):
        log.append([("b", b"1")])
    found = topic_setup.describe(carol, shared)
    assert found is not None
    assert found.configs is None

    grant(admin, shared, AclOperation.WRITE)

    def written() -> bool:
        try:
            log.append([("b", b"1")])
        except Forbidden:
            return False
        return True

    until(written, "brokers enforce WRITE")
    assert [item.key for item in log.read()] == ["b"]


def test_creation_needs_a_separate_permission(carol: Wire) -> None:
    with pytest.raises((Forbidden, Refused), match=r"\((29|31)\)"):
        topic_setup.create(carol, "not-allowed")
