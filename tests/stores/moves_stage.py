"""The other hand in tests of moves: librdkafka's admin client and producer, which share no code with our adapters."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kquota.reassign.throttle import Setting
from kquota.sandbox.cluster import Cluster
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, TopicPartition

RECORD = 10_000
_KINDS = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}


def until(done: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Wait for an effect, not for a time."""
    give_up = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < give_up, f"{what}: not so within {seconds:.0f} s"
        time.sleep(0.05)


class OtherHand:
    """Topics with data, configs written and read by another client; everything is taken away by `close`."""

    def __init__(self, servers: Cluster) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers.bootstrap, "log_level": 2})
        self._topics: list[str] = []

    def topic(self, replicas: Mapping[int, Iterable[int]], size: int = 100_000, name: str | None = None) -> str:
        """A topic with so many bytes in each partition, all replicas in sync; of a name that nobody has, by default."""
        name = name or f"moves-{uuid.uuid4().hex[:8]}"
        assignment = [list(replicas[number]) for number in range(len(replicas))]
        new = NewTopic(name, num_partitions=len(assignment), replica_assignment=assignment)
        self.admin.create_topics([new])[name].result(30)
        self._topics.append(name)
        until(lambda: self._complete(name, assignment), f"{name} has all its replicas")
        self.fill(name, replicas, size)
        return name

    def fill(self, topic: str, partitions: Iterable[int], size: int) -> None:
        """So many bytes more in each partition."""
        producer = Producer(
            {"bootstrap.servers": self.servers.bootstrap, "acks": "all", "linger.ms": 20, "log_level": 2}
        )
        for number in partitions:
            for _ in range(max(1, size // RECORD)):
                producer.produce(topic, b"x" * RECORD, partition=number)
                producer.poll(0)
        assert producer.flush(60) == 0

    def replicas(self, name: TopicPartition) -> list[int]:
        """As metadata tells them."""
        found = self.admin.list_topics(name.topic, timeout=10).topics[name.topic].partitions
        return list(found[name.partition].replicas) if name.partition in found else []

    def value(self, setting: Setting) -> str | None:
        """What is set on this very topic or broker."""
        resource = ConfigResource(_KINDS[setting.kind], setting.name)
        found = self.admin.describe_configs([resource])[resource].result(10)
        own = {"topic": 1, "broker": 2}[setting.kind]
        entry = found.get(setting.key)
        return str(entry.value) if entry is not None and entry.source == own else None

    def write(self, setting: Setting, value: str | None) -> None:
        """In force everywhere where it can be read when this returns."""
        change = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(setting.key, value, incremental_operation=change)
        resource = ConfigResource(_KINDS[setting.kind], setting.name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(30)
        until(lambda: self.value(setting) == value, f"{setting} is {value!r}")

    def rates(self) -> dict[Setting, str]:
        """Every throttle rate that is set on a broker."""
        settings = [Setting.of_broker(b.id, key) for b in self.servers.brokers for key in (LEADER_RATE, FOLLOWER_RATE)]
        return {setting: value for setting in settings if (value := self.value(setting)) is not None}

    def lists(self, topic: str) -> dict[Setting, str]:
        """The throttled-replica lists that are set on a topic."""
        settings = [Setting.of_topic(topic, key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
        return {setting: value for setting in settings if (value := self.value(setting)) is not None}

    def unthrottle(self) -> None:
        """Take every rate away."""
        for setting in self.rates():
            self.write(setting, None)

    def close(self) -> None:
        """Leave the servers as they were."""
        self.unthrottle()
        if self._topics:
            for deletion in self.admin.delete_topics(self._topics).values():
                deletion.result(30)
        if self.servers.zookeeper:
            self._forget_reassignment(self.servers.zookeeper)

    def _forget_reassignment(self, zookeeper: str) -> None:
        """A topic that is deleted while it moves leaves its submission behind, and no other is taken then."""
        client = KazooClient(hosts=zookeeper)
        client.start()
        try:
            with contextlib.suppress(NoNodeError):
                client.delete("/admin/reassign_partitions")
                before = client.get("/controller_epoch")[0]
                client.delete("/controller")
                until(lambda: client.get("/controller_epoch")[0] != before, "another controller is elected")
                until(self._controlled, "it answers")
        finally:
            client.stop()
            client.close()

    def _controlled(self) -> bool:
        """By a client that knows of no controller yet: this one would go on asking the one that was."""
        new = NewTopic(f"moves-{uuid.uuid4().hex[:8]}", num_partitions=1, replication_factor=1)
        client = AdminClient({"bootstrap.servers": self.servers.bootstrap, "log_level": 2})
        return client.create_topics([new], validate_only=True)[new.topic].exception(30) is None

    def _complete(self, topic: str, assignment: list[list[int]]) -> bool:
        found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return {n: sorted(state.isrs) for n, state in found.items()} == {
            n: sorted(replicas) for n, replicas in enumerate(assignment)
        }
