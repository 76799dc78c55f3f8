"""Real brokers of three generations enforce each quota that kquota writes over each connection."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.admin.topics import CreateTopicsRequest

from kquota.quota import actions
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.quota.port import ClusterQuotas
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from tests.servers import WAYS
from tests.waiting import attempts

pytestmark = pytest.mark.kafka
SECONDS = 45.0
THROTTLING_QUOTA_EXCEEDED = 89


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[str, bool]:
    return WAYS[request.param]


@pytest.fixture
def cluster(request: pytest.FixtureRequest, way: tuple[str, bool]) -> Sandbox:
    found = request.getfixturevalue(way[0])
    assert isinstance(found, Sandbox)
    return found


@pytest.fixture
def quotas(cluster: Sandbox, way: tuple[str, bool]) -> Iterator[ClusterQuotas]:
    if way[1]:
        assert cluster.zookeeper is not None
        with Znodes(cluster.zookeeper) as znodes:
            yield ZooKeeperQuotas(znodes, unreadable=lambda line: None)
    else:
        with Wire(cluster.bootstrap, {}) as wire:
            yield WireQuotas(wire)


@pytest.fixture
def topic(cluster: Sandbox) -> Iterator[str]:
    name = f"enforced-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    yield name
    admin.delete_topics([name])[name].result(30)


class Throttled:
    """Collects the events of librdkafka's throttle_cb (KIP-219: the broker's throttle_time_ms)."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __call__(self, event: object) -> None:
        self.longest = max(self.longest, float(getattr(event, "throttle_time", 0.0)))


@contextlib.contextmanager
def limited(quotas: ClusterQuotas, client_id: str, key: str, value: float) -> Iterator[None]:
    entity = Entity(client_id=client_id)
    actions.alter(quotas, QuotaChange(entity=entity, add={key: value}), attempts())
    yield
    actions.alter(quotas, QuotaChange(entity=entity, delete=(key,)), attempts())


def until_throttled(throttled: Throttled, work: Callable[[], object]) -> float:
    give_up = time.monotonic() + SECONDS
    while not throttled.longest and time.monotonic() < give_up:
        work()
    return throttled.longest


def producer(cluster: Sandbox, client_id: str, throttled: Throttled) -> Producer:
    settings = {"bootstrap.servers": cluster.bootstrap, "client.id": client_id, "linger.ms": 0, "log_level": 2}
    return Producer(settings | {"throttle_cb": throttled})


def send(client: Producer, topic: str, size: int) -> None:
    client.produce(topic, b"x" * size)
    client.flush(1)


@pytest.mark.parametrize(
    ("key", "value", "size"),
    [(PRODUCER_BYTE_RATE, 10_000.0, 20_000), (REQUEST_PERCENTAGE, 0.01, 10)],
    ids=[PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE],
)
def test_a_producer_is_throttled(
    cluster: Sandbox, quotas: ClusterQuotas, topic: str, key: str, value: float, size: int
) -> None:
    client_id = f"p-{uuid.uuid4().hex[:8]}"
    free, throttled = Throttled(), Throttled()
    client = producer(cluster, client_id, free)
    for _ in range(5):
        send(client, topic, size)
    assert free.longest == 0, "throttled before there was a quota"
    client.flush(5)
    with limited(quotas, client_id, key, value):
        client = producer(cluster, client_id, throttled)
        assert until_throttled(throttled, lambda: send(client, topic, size)) > 0
        client.purge()


def test_a_consumer_is_throttled(cluster: Sandbox, quotas: ClusterQuotas, topic: str) -> None:
    client_id = f"c-{uuid.uuid4().hex[:8]}"
    writer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    for _ in range(300):
        writer.produce(topic, b"x" * 10_000)
    assert writer.flush(30) == 0
    with limited(quotas, client_id, CONSUMER_BYTE_RATE, 10_000.0):
        throttled = Throttled()

        def read_all() -> None:
            reader = Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap,
                    "client.id": client_id,
                    "group.id": client_id,
                    "enable.auto.commit": False,
                    "throttle_cb": throttled,
                }
            )
            # Without a group, whose coordinator a busy machine takes long to find.
            reader.assign([TopicPartition(topic, 0, 0)])
            give_up = time.monotonic() + 10
            while not throttled.longest and time.monotonic() < give_up:
                reader.poll(0.2)
            # Closing a throttled consumer takes as long as its throttle, and the test does not need it.
            threading.Thread(target=reader.close, daemon=True).start()

        assert until_throttled(throttled, read_all) > 0


def test_topic_creations_are_rejected(cluster: Sandbox, quotas: ClusterQuotas) -> None:
    """At CreateTopics version 6 a broker rejects (KIP-599). Only kquota's own client-id is limited here."""
    made: list[str] = []
    new_topic = CreateTopicsRequest.CreatableTopic

    def create(wire: Wire) -> int:
        name = f"mutation-{uuid.uuid4().hex[:8]}"
        topics = [new_topic(name=name, num_partitions=20, replication_factor=1, assignments=[], configs=[])]
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=False, min_version=6)
        (result,) = wire.ask(request, wire.controller).topics
        if result.error_code == 0:
            made.append(name)
        return int(result.error_code)

    def created() -> int:
        with Wire(cluster.bootstrap, {}) as wire:
            return create(wire)

    # Brokers may not have applied the removal of the previous quota yet, and would mute the connection.
    give_up = time.monotonic() + SECONDS
    while (code := created()) != 0 and time.monotonic() < give_up:
        time.sleep(0.1)
    with Wire(cluster.bootstrap, {}) as wire:
        assert code == 0, "rejected although there is no quota"
        with limited(quotas, "kquota", CONTROLLER_MUTATION_RATE, 0.1):
            give_up = time.monotonic() + SECONDS
            while (code := create(wire)) == 0 and time.monotonic() < give_up:
                pass
        assert code == THROTTLING_QUOTA_EXCEEDED
    deleter = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    for gone in deleter.delete_topics(made).values():
        gone.exception(SECONDS)
