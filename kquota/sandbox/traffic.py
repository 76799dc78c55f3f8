"""Real clients for the demo (librdkafka): a loader, a steady writer, and a client that reaches its quota."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic

from kquota.errors import KquotaError, Unreachable
from kquota.measure import counted

MESSAGE: Final = 10_000
_SECONDS: Final = 60.0
# Log only critical messages, because librdkafka writes its log to stderr. Relevant problems are also raised as errors.
_QUIET: Final = {"log_level": 2}
# The bytes are random, so that compression does not make them smaller.
_PAYLOAD: Final = os.urandom(MESSAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientThrottling:
    """How a client was throttled: the number of requested waits (KIP-219), the longest wait, and the client's rate in
    B/s.
    """

    times: int
    longest_ms: int
    rate: float


def admin(bootstrap: str) -> AdminClient:
    """Return librdkafka's admin client, without its own log output."""
    return AdminClient({"bootstrap.servers": bootstrap, **_QUIET})


def create(bootstrap: str, topic: str, assignment: list[list[int]]) -> None:
    """Create a topic with these replicas (a list of brokers for each partition), and wait until brokers show it.

    Raises Unreachable if the brokers refuse the topic, and KquotaError if they do not show the topic in time.
    """
    client = admin(bootstrap)
    try:
        client.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(_SECONDS)
    except KafkaException as error:
        raise Unreachable(f"topic {topic} could not be created: {error}") from error
    _until(lambda: len(replicas(client, topic)) == len(assignment), f"the brokers do not show topic {topic}")


def replicas(client: AdminClient, topic: str) -> dict[int, frozenset[int]]:
    """Return the current replicas of each partition, as any client sees them."""
    found = client.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    return {number: frozenset(partition.replicas) for number, partition in found.items()}


def load(bootstrap: str, topic: str, partitions: int, size: int, tell: Callable[[float], None]) -> None:
    """Write `size` bytes, evenly over the partitions, at full speed. `tell` receives the share that is done.

    Raises Unreachable if the brokers do not accept all records in time.
    """
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": "loader", "queue.buffering.max.kbytes": 65_536, **_QUIET}
    )
    count = size // MESSAGE
    for number in range(count):
        put(producer, topic, _PAYLOAD, number % partitions)
        if number % 500 == 0:
            producer.poll(0)
            tell(number / count)
    if left := producer.flush(_SECONDS):
        raise Unreachable(f"topic {topic}: the brokers did not accept {counted(left, 'record')} in time")


def put(producer: Producer, topic: str, payload: bytes, partition: int) -> None:
    """Queue a record, and wait while the queue of the producer is full."""
    while True:
        try:
            producer.produce(topic, payload, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)


@contextmanager
def steady(bootstrap: str, topic: str, partitions: int, rate: int) -> Iterator[None]:
    """Write `rate` bytes per second, evenly over the partitions, while the context is open.

    Raises Unreachable if the brokers accept no record within 60 s.
    """
    stop, began = threading.Event(), threading.Event()
    reported: Any = {"on_delivery": lambda error, _record: None if error else began.set()}
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "steady", **_QUIET, **reported})

    def write() -> None:
        started, sent = time.monotonic(), 0
        while not stop.wait(0.02):
            due = int((time.monotonic() - started) * rate / MESSAGE)
            for number in range(sent, due):
                put(producer, topic, _PAYLOAD, number % partitions)
            sent = max(sent, due)
            producer.poll(0)
        producer.flush(_SECONDS)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        if not began.wait(_SECONDS):
            raise Unreachable(f"topic {topic}: the brokers accepted no record within {_SECONDS:.0f} s")
        yield
    finally:
        stop.set()
        thread.join(_SECONDS)


def run_into_quota(bootstrap: str, topic: str, client_id: str, most: int) -> ClientThrottling:
    """Write as fast as the brokers allow, and return how they throttled the client.

    The writes end when a broker throttles the client, when `most` bytes are written, or after 60 s.
    """
    times: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "queue.buffering.max.messages": 200,
            **_QUIET,
            "throttle_cb": lambda event: times.append(int(event.throttle_time * 1000)),
        }
    )
    started, sent = time.monotonic(), 0
    while sent < most and not any(times) and time.monotonic() - started < _SECONDS:
        try:
            producer.produce(topic, _PAYLOAD)
            sent += MESSAGE
        except BufferError:
            producer.poll(0.05)
    producer.flush(_SECONDS)
    waits = [wait for wait in times if wait]
    return ClientThrottling(
        times=len(waits), longest_ms=max(waits, default=0), rate=sent / (time.monotonic() - started)
    )


def throttles(bootstrap: str, topics: Collection[str], brokers: Collection[int]) -> list[str]:
    """Return all dynamic replication throttles of these topics and brokers, read with a client other than kquota's."""
    client = admin(bootstrap)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    resources += [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in brokers]
    found = []
    for resource in resources:
        # librdkafka can describe the configs of only one broker per call.
        for entry in client.describe_configs([resource])[resource].result(_SECONDS).values():
            dynamic = entry.source not in (ConfigSource.DEFAULT_CONFIG.value, ConfigSource.STATIC_BROKER_CONFIG.value)
            if ".replication.throttled." in entry.name and dynamic:
                found.append(f"{resource.name}: {entry.name}={entry.value}")
    return sorted(found)


def _until(seen: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + _SECONDS
    while not seen():
        if time.monotonic() > give_up:
            raise KquotaError(f"{what} after {_SECONDS:.0f} s")
        time.sleep(0.1)
