"""The other client in tests of moves: librdkafka's admin client and producer, which share no code with kquota.

Only the checks that each single broker knows a topic and its replicas use kquota's own client, because librdkafka
chooses its broker.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
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

from kquota.errors import KquotaError
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire, metadata_request
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE, TopicPartition
from tests.waiting import PATIENCE, until

RECORD = 10_000
_CONTROLLED_SECONDS = 15.0
_AT_ONCE_SECONDS = 1.0
_CLIENTS = 3
_KINDS = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}


@contextlib.contextmanager
def _started(zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _on_record(client: KazooClient, name: TopicPartition) -> bool:
    """Return True if a move of this partition is submitted or running."""
    with contextlib.suppress(NoNodeError):
        submitted = json.loads(client.get("/admin/reassign_partitions")[0])["partitions"]
        if any((one["topic"], one["partition"]) == name for one in submitted):
            return True
    topic = json.loads(client.get(f"/brokers/topics/{name.topic}")[0])
    return any(topic.get(key, {}).get(str(name.partition)) for key in ("adding_replicas", "removing_replicas"))


def _shown_by_all(wire: Wire, places: Mapping[TopicPartition, Sequence[int]]) -> bool:
    """Return True if every broker that answers shows these replicas."""
    request = metadata_request({name.topic for name in places})
    every = wire.ask_each(dict.fromkeys(wire.brokers(), request)).values()
    answers = [answer for answer in every if not isinstance(answer, KquotaError)]
    return bool(answers) and all(
        shown.get(name) == list(there) for shown in map(_replicas_in, answers) for name, there in places.items()
    )


def _replicas_in(answer: Any) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(topic.name, one.partition_index): list(one.replica_nodes)
        for topic in answer.topics
        for one in topic.partitions or ()
    }


def _result_or_late(done: Future[None]) -> None:
    """Raise the controller's error, unless the controller only needs more time."""
    try:
        done.result(PATIENCE)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.REQUEST_TIMED_OUT:
            raise


class OtherHand:
    """Topics with data, and configs that another client writes and reads. `close` removes everything."""

    def __init__(self, servers: Sandbox) -> None:
        self.servers = servers
        self.admin = self._client()
        self._topics: list[str] = []

    def start_broker(self, broker: int) -> None:
        """Wait until a stopped broker is running again, and this client sees it.

        A client of librdkafka that has read metadata without a broker may not reach this broker for minutes after it
        returns.
        """
        self.servers.start_broker(broker)
        self.admin = self._client()

    def restart_broker(self, broker: int) -> None:
        """Restart the broker like the sandbox, and wait until this client sees it."""
        self.servers.broker(broker).process.stop()
        self.start_broker(broker)

    def topic(self, replicas: Mapping[int, Iterable[int]], size: int = 100_000, name: str | None = None) -> str:
        """Create a topic with this number of bytes in each partition and all replicas in sync. The default name is
        unique.

        Wait until every broker knows the topic, because the next client may ask any of them.
        """
        name = name or f"moves-{uuid.uuid4().hex[:8]}"
        assignment = [list(replicas[number]) for number in range(len(replicas))]
        new = NewTopic(name, num_partitions=len(assignment), replica_assignment=assignment)
        self._create(new)
        self._topics.append(name)
        self._until_controlled(lambda: self._complete(name, assignment), f"{name} has all its replicas")
        self.shown({name: len(assignment)})
        self.fill(name, replicas, size)
        return name

    def _create(self, new: NewTopic) -> None:
        """Create a topic. If the controller moves while the machine is busy, try again with a new client."""
        lost = False
        for _ in range(_CLIENTS):
            try:
                self.admin.create_topics([new])[new.topic].result(PATIENCE)
                return
            except TimeoutError:
                lost = True
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS and lost:
                    return
                if error.args[0].code() != KafkaError.NOT_CONTROLLER:
                    raise
            self.admin = self._client()
        raise AssertionError(f"{new.topic}: no controller created it")

    def shown(self, partitions: Mapping[str, int]) -> None:
        """Wait until every broker shows this number of partitions of these topics."""
        with Wire(self.servers.bootstrap, {}) as wire:
            until(lambda: WireSight(wire).behind(partitions) == 0, f"every broker shows {partitions}")

    def fill(self, topic: str, partitions: Iterable[int], size: int) -> None:
        """Add this number of bytes to each partition."""
        producer = Producer(
            {"bootstrap.servers": self.servers.bootstrap, "acks": "all", "linger.ms": 20, "log_level": 2}
        )
        for number in partitions:
            for _ in range(max(1, size // RECORD)):
                producer.produce(topic, b"x" * RECORD, partition=number)
                producer.poll(0)
        assert producer.flush(PATIENCE) == 0

    def delete(self, topic: str) -> None:
        """Delete the topic. Wait until no broker shows it, and until it is also deleted in ZooKeeper."""
        self._delete([topic])
        self.shown({topic: 0})

    def _delete(self, topics: Sequence[str]) -> None:
        if not self.servers.zookeeper:
            for deletion in self.admin.delete_topics(list(topics)).values():
                deletion.result(PATIENCE)
            return
        for deletion in self.admin.delete_topics(list(topics), operation_timeout=_AT_ONCE_SECONDS).values():
            _result_or_late(deletion)
        with _started(self.servers.zookeeper) as client:
            nodes = [f"/brokers/topics/{topic}" for topic in topics]
            self._until_controlled(lambda: not any(map(client.exists, nodes)), f"{topics} are gone from ZooKeeper")

    def controlled(self) -> None:
        """Wait until the controller creates and deletes topics. If it does not, elect another controller."""
        new = NewTopic(f"moves-{uuid.uuid4().hex[:8]}", num_partitions=1, replication_factor=1)
        _result_or_late(self.admin.create_topics([new], operation_timeout=_AT_ONCE_SECONDS)[new.topic])
        self._until_controlled(lambda: self._led(new.topic), f"{new.topic} has a leader")
        self._delete([new.topic])

    def replicas(self, name: TopicPartition) -> list[int]:
        """Return the replicas in the metadata."""
        found = self.admin.list_topics(name.topic, timeout=PATIENCE).topics[name.topic].partitions
        return list(found[name.partition].replicas) if name.partition in found else []

    def arrived(self, places: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Wait until the metadata of every broker has these replicas, and no move of them is recorded.

        A controller on ZooKeeper informs brokers of the new replicas before it records their arrival there.
        """
        until(lambda: all(self.replicas(n) == list(there) for n, there in places.items()), f"replicas are {places}")
        with Wire(self.servers.bootstrap, {}) as wire:
            until(lambda: _shown_by_all(wire, places), f"every broker shows the replicas {places}")
        if self.servers.zookeeper:
            with _started(self.servers.zookeeper) as client:
                until(lambda: not any(_on_record(client, name) for name in places), f"{places}: noted in ZooKeeper")

    def value(self, setting: Setting) -> str | None:
        """Return the value that is set on the topic or broker itself."""
        resource = ConfigResource(_KINDS[setting.kind], setting.name)
        found = self.admin.describe_configs([resource])[resource].result(PATIENCE)
        own = {"topic": 1, "broker": 2}[setting.kind]
        entry = found.get(setting.key)
        return str(entry.value) if entry is not None and entry.source == own else None

    def write(self, setting: Setting, value: str | None) -> None:
        """Write a value, and wait until it can be read everywhere."""
        change = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(setting.key, value, incremental_operation=change)
        resource = ConfigResource(_KINDS[setting.kind], setting.name, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE)
        until(lambda: self.value(setting) == value, f"{setting} is {value!r}")

    def heard(self) -> None:
        """Wait until every broker applies all previous writes. Brokers apply changes in order.

        A list that can be read may not be applied yet, because brokers on ZooKeeper read it there.
        """
        for value in ("987654321", None):
            for broker in self.servers.brokers:
                self.write(Setting.of_broker(broker.id, LOG_DIR_RATE), value)

    def rates(self) -> dict[Setting, str]:
        """Return every throttle rate that is set on a broker."""
        settings = [Setting.of_broker(b.id, key) for b in self.servers.brokers for key in (LEADER_RATE, FOLLOWER_RATE)]
        return {setting: value for setting in settings if (value := self.value(setting)) is not None}

    def lists(self, topic: str) -> dict[Setting, str]:
        """Return the throttled replica lists that are set on a topic."""
        settings = [Setting.of_topic(topic, key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
        return {setting: value for setting in settings if (value := self.value(setting)) is not None}

    def unthrottle(self) -> None:
        """Remove all rates."""
        for setting in self.rates():
            self.write(setting, None)

    def close(self) -> None:
        """Restore the servers."""
        self.unthrottle()
        if self._topics:
            self._delete(self._topics)
        if self.servers.zookeeper:
            self._forget_reassignment(self.servers.zookeeper)

    def _forget_reassignment(self, zookeeper: str) -> None:
        """Delete the submission that a topic leaves behind if it is deleted during a move, because it blocks other
        moves.
        """
        with _started(zookeeper) as client, contextlib.suppress(NoNodeError):
            client.delete("/admin/reassign_partitions")
            self._elect(client)

    def _until_controlled(self, done: Callable[[], bool], what: str) -> None:
        """Wait for `done`, and elect another controller if the current one fails.

        A controller of 3.9.1 that deletes a topic right after moves back and forth may lose track of its replicas. It
        then fails at every event ("key not found").
        """
        if self.servers.zookeeper:
            with contextlib.suppress(AssertionError):
                until(done, what, _CONTROLLED_SECONDS)
                return
            with _started(self.servers.zookeeper) as client:
                self._elect(client)
        until(done, what)

    def controller(self) -> int:
        """Return the broker that is the controller of a cluster with ZooKeeper."""
        assert self.servers.zookeeper is not None
        with _started(self.servers.zookeeper) as client:
            return int(json.loads(client.get("/controller")[0])["brokerid"])

    def _elect(self, client: KazooClient) -> None:
        before = client.get("/controller_epoch")[0]
        with contextlib.suppress(NoNodeError):
            client.delete("/controller")
        until(lambda: client.get("/controller_epoch")[0] != before, "another controller is elected")
        until(self._controlled, "it answers")

    def _controlled(self) -> bool:
        """Return True if a new client can use the controller. This client would keep asking the old controller."""
        new = NewTopic(f"moves-{uuid.uuid4().hex[:8]}", num_partitions=1, replication_factor=1)
        client = self._client()  # the client answers only as long as a reference to it exists
        answer = client.create_topics([new], validate_only=True, request_timeout=_CONTROLLED_SECONDS)[new.topic]
        return answer.exception(PATIENCE) is None

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers.bootstrap, "log_level": 2})

    def _led(self, topic: str) -> bool:
        found = self.admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        return bool(found) and all(state.leader >= 0 for state in found.values())

    def _complete(self, topic: str, assignment: list[list[int]]) -> bool:
        found = self.admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        return {n: sorted(state.isrs) for n, state in found.items()} == {
            n: sorted(replicas) for n, replicas in enumerate(assignment)
        }
