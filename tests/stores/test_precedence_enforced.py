"""Real brokers behave as `explain` reports: the binding level, the clients that share its bucket, and the burst."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin.topics import CreateTopicsRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from kquota.library import cluster_of
from kquota.quota import actions
from kquota.quota import explain as rules
from kquota.quota.capacity import Capacity
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.quota.precedence import Client, bucket, rungs
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from tests.waiting import attempts, until

pytestmark = pytest.mark.kafka
LOW, HIGH = 10_000.0, 1e12
# At LOW more than the whole window holds, at HIGH nothing.
MESSAGE = b"x" * 300_000
USER = "ANONYMOUS"
# A deadline, not a pace: a busy machine may take long over the first message of a fresh cluster.
SECONDS = 120.0


@pytest.fixture(params=["kafka_431", "kafka_282"], ids=["4.3.1", "2.8.2"])
def cluster(request: pytest.FixtureRequest) -> Sandbox:
    found: Sandbox = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def wire(cluster: Sandbox) -> Iterator[Wire]:
    with Wire(cluster.bootstrap, {}) as opened:
        yield opened


@pytest.fixture
def quotas(cluster: Sandbox) -> Iterator[WireQuotas]:
    """Quotas, all of which are deleted after the test, because those of default entities would limit every client.

    The connection asks only one broker: a broker that showed a write does not forget it, but another broker may not
    know it yet.
    """
    with Wire(cluster.bootstrap, {}) as own:
        port = WireQuotas(own)
        before = set(port.everything())
        yield port
        for entity, limits in port.everything().items():
            if entity not in before:
                actions.alter(port, QuotaChange(entity=entity, delete=tuple(limits)), attempts())


@pytest.fixture
def topic(cluster: Sandbox) -> Iterator[str]:
    name = f"precedence-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    yield name
    admin.delete_topics([name])[name].result(30)


def throttled(cluster: Sandbox, topic: str, client_id: str, message: bytes = MESSAGE) -> bool:
    """True if the broker throttles this client after one message (KIP-219: the answer itself arrives at once)."""
    waits: list[float] = []
    client = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": client_id,
            "log_level": 2,
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    client.produce(topic, message)
    assert client.flush(SECONDS) == 0
    client.poll(0)
    return any(waits)


def nameless_throttled(wire: Wire, cluster: Sandbox, topic: str) -> bool:
    """True if the broker throttles a client without a client-id after one message.

    The client is not librdkafka, which always sends a client-id (by default `rdkafka`).
    """
    records = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=2 * len(MESSAGE))
    records.append(timestamp=None, key=None, value=MESSAGE, headers=[])
    records.close()
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(records.buffer()))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[data], max_version=9)
    leader = wire.metadata([topic]).topics[0].partitions[0].leader_id
    net = NetworkSelector()
    manager = KafkaConnectionManager(net, bootstrap_servers=cluster.bootstrap.split(","), client_id="")
    try:
        manager.bootstrap(int(SECONDS * 1000))
        return bool(net.run(lambda: manager.send(request, node_id=leader)).throttle_time_ms)
    finally:
        manager.close()
        net.close()


def set_all(cluster: Sandbox, quotas: WireQuotas, topic: str, wanted: Mapping[Entity, float]) -> None:
    """Sets these, and waits until the topic's broker applies a quota that was set after them."""
    sentinel = f"sentinel-{uuid.uuid4().hex[:8]}"
    for entity, value in {**wanted, Entity(user=USER, client_id=sentinel): LOW}.items():
        actions.alter(quotas, QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: value}), attempts())
    give_up = time.monotonic() + SECONDS
    while not throttled(cluster, topic, sentinel):
        assert time.monotonic() < give_up, "the quotas did not come into force"


@pytest.mark.parametrize("level", range(1, 9))
def test_the_reported_level_is_the_one_enforced(cluster: Sandbox, quotas: WireQuotas, topic: str, level: int) -> None:
    """This level alone is low, and then this level alone is high, with every level below it set to the opposite."""
    client = Client(user=USER, client_id=f"c-{uuid.uuid4().hex[:8]}")
    assert client.client_id is not None
    entities = [rung.entity for rung in rungs({}, client, PRODUCER_BYTE_RATE)]
    own, *below = (entity for entity in entities[level - 1 :] if entity is not None)
    for value, other in ((LOW, HIGH), (HIGH, LOW)):
        set_all(cluster, quotas, topic, {own: value} | dict.fromkeys(below, other))
        (answer, *_) = rules.explain(quotas.everything(), Capacity(brokers=None), client=client).answers
        assert answer.winner is not None
        assert (answer.key, answer.winner.level, answer.limit) == (PRODUCER_BYTE_RATE, level, value)
        assert throttled(cluster, topic, client.client_id) == (value == LOW)


@pytest.mark.parametrize("level", [2, 3, 5, 6, 8])
def test_clients_that_share_a_bucket_wait_for_each_other(
    cluster: Sandbox, quotas: WireQuotas, topic: str, level: int
) -> None:
    spender, other = (Client(user=USER, client_id=f"c-{uuid.uuid4().hex[:8]}") for _ in range(2))
    own = rungs({}, spender, PRODUCER_BYTE_RATE)[level - 1].entity
    assert own is not None
    assert rungs({}, other, PRODUCER_BYTE_RATE)[level - 1].entity == own
    set_all(cluster, quotas, topic, {own: LOW})

    def both() -> bool:
        """A window drops the first client's bytes while a slow machine sends the second client's bytes."""
        assert throttled(cluster, topic, str(spender.client_id))
        return throttled(cluster, topic, str(other.client_id), b"small")

    if bucket(level, spender) == bucket(level, other):
        until(both, "the other client also waits")
    else:
        assert not both()


def test_a_client_without_a_client_id_is_not_bound_by_client_id_levels(
    cluster: Sandbox, wire: Wire, quotas: WireQuotas, topic: str
) -> None:
    client = Client(user=USER, client_id="")
    entities = [rung.entity for rung in rungs({}, client, PRODUCER_BYTE_RATE) if rung.entity is not None]
    speak = [entity for entity in entities if entity.client_id is not None]
    set_all(cluster, quotas, topic, dict.fromkeys(speak, LOW))
    (answer, *_) = rules.explain(quotas.everything(), Capacity(brokers=None), client=client).answers
    assert answer.limit is None
    assert not nameless_throttled(wire, cluster, topic)
    set_all(cluster, quotas, topic, {Entity(user=USER): LOW})
    (answer, *_) = rules.explain(quotas.everything(), Capacity(brokers=None), client=client).answers
    assert answer.limit == LOW
    assert nameless_throttled(wire, cluster, topic)


def created(cluster: Sandbox, client_id: str, count: int) -> list[str]:
    """The topics of one partition that the quota accepts, out of this many requested at once by this client."""
    topics = [f"burst-{uuid.uuid4().hex[:8]}" for _ in range(count)]
    new_topic = CreateTopicsRequest.CreatableTopic
    wanted = [new_topic(name=n, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for n in topics]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=30_000, validate_only=False, min_version=6)
    with Wire(cluster.bootstrap, {"client_id": client_id}) as wire:
        made = [result.name for result in wire.ask(request, wire.controller).topics if result.error_code == 0]
    if made:
        # Python destroys a client without a reference at once: its answers are errors, or never arrive.
        deleter = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        for gone in deleter.delete_topics(made).values():
            gone.exception(SECONDS)
    return made


def test_the_reported_burst_passes_at_once(wire: Wire, quotas: WireQuotas, cluster: Sandbox) -> None:
    """A bucket may be overdrawn by one: topics of one partition pass while it holds anything, and one more."""
    client, sentinel = (Client(user=USER, client_id=f"burst-{uuid.uuid4().hex[:8]}") for _ in range(2))
    # At this rate a controller that pauses for seconds during its answer accepts no more topics.
    for one, rate in ((client, 0.2), (sentinel, 0.01)):
        entity = Entity(user=USER, client_id=one.client_id)
        actions.alter(quotas, QuotaChange(entity=entity, add={CONTROLLER_MUTATION_RATE: rate}), attempts())
    shape = cluster_of(WireConfigs(wire))
    answers = {answer.key: answer for answer in rules.explain(quotas.everything(), shape, client=client).answers}
    burst = answers[CONTROLLER_MUTATION_RATE].burst
    assert burst is not None
    # A readable quota may not be in force yet. A quota that was set after it is.
    until(lambda: created(cluster, str(sentinel.client_id), 1) == [], "the quotas are in force")
    assert len(created(cluster, str(client.client_id), 20)) == math.floor(burst) + 1
