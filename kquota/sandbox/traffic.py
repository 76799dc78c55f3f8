"""The demo's real Kafka clients (librdkafka): they create topics, write data, reach a quota, and read throttles."""

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
"""The size of each record in bytes."""
_SECONDS: Final = 60.0
# Log only critical messages, because librdkafka writes its log to stderr. Relevant problems are also raised as errors.
_QUIET: Final = {"log_level": 2}
# The bytes are random, so that compression does not make them smaller.
_PAYLOAD: Final = os.urandom(MESSAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientThrottling:
    """The result of `run_into_quota`: the waits and the rate of a throttled client."""

    times: int
    """The number of waits that brokers requested (KIP-219)."""
    longest_ms: int
    """The longest of these waits, or 0 without a wait."""
    rate: float
    """The mean rate of the writes that brokers accepted, in bytes per second."""


def admin(bootstrap: str) -> AdminClient:
    """Return librdkafka's admin client, which logs only critical messages."""
    return AdminClient({"bootstrap.servers": bootstrap, **_QUIET})


def create(bootstrap: str, topic: str, assignment: list[list[int]]) -> None:
    """Create a topic, and wait at most 60 s until the brokers show all its partitions.

    `assignment` has a list of broker ids for each partition. Raises Unreachable if the brokers refuse the topic or do
    not answer, and KquotaError if they do not show the topic in time.
    """
    client = admin(bootstrap)
    with _unreachable(f"topic {topic}: the brokers did not create it"):
        client.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(_SECONDS)
    _until(lambda: len(replicas(client, topic)) == len(assignment), f"the brokers do not show topic {topic}")


def replicas(client: AdminClient, topic: str) -> dict[int, frozenset[int]]:
    """Return the broker ids of the current replicas of each partition.

    Raises Unreachable if the brokers do not answer within 60 s.
    """
    with _unreachable(f"topic {topic}: the brokers did not describe it"):
        found = client.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    return {number: frozenset(partition.replicas) for number, partition in found.items()}


def load(bootstrap: str, topic: str, partitions: int, size: int, report: Callable[[float], None]) -> None:
    """Write `size` bytes, rounded down to whole records, evenly over the partitions, at full speed.

    `report` receives the share of the records that are queued, from 0 to 1, once for every 500 records. At the end,
    waits at most 60 s for the brokers. Raises Unreachable if they reject a record, or do not accept all in this time.
    """
    rejected: list[str] = []
    reported: Any = {"on_delivery": lambda error, _record: rejected.append(error.str()) if error else None}
    queue = {"queue.buffering.max.kbytes": 65_536}
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "loader", **queue, **_QUIET, **reported})
    count = size // MESSAGE
    for number in range(count):
        put(producer, topic, _PAYLOAD, number % partitions)
        if number % 500 == 0:
            producer.poll(0)
            report(number / count)
    if left := producer.flush(_SECONDS):
        records = counted(left, "record")
        raise Unreachable(f"topic {topic}: the brokers did not accept {records} within {_SECONDS:.0f} s")
    if rejected:
        records = counted(len(rejected), "record")
        raise Unreachable(f"topic {topic}: the brokers did not accept {records} ({rejected[0]})")


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

    The context opens when the brokers have accepted a record. At its end, waits at most 60 s for the last records.
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


def run_into_quota(bootstrap: str, topic: str, most: int) -> ClientThrottling:
    """Write as client `greedy` as fast as the brokers allow, and return how they throttled the client.

    The writes end when a broker throttles the client, when `most` bytes are queued, or after 60 s. Then the client
    waits at most 60 s for the queued records.
    """
    times: list[int] = []
    accepted: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "greedy",
            "queue.buffering.max.messages": 200,
            **_QUIET,
            "throttle_cb": lambda event: times.append(int(event.throttle_time * 1000)),
            "on_delivery": lambda error, _record: None if error else accepted.append(MESSAGE),
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
        times=len(waits), longest_ms=max(waits, default=0), rate=sum(accepted) / (time.monotonic() - started)
    )


def throttles(bootstrap: str, topics: Collection[str], brokers: Collection[int]) -> list[str]:
    """Return the dynamic replication throttles of these topics and brokers as text, sorted. Each item has the form
    `1: leader.replication.throttled.rate=1000`.

    librdkafka reads them, so that the result does not depend on kquota's own client. Raises Unreachable if the cluster
    does not answer within 60 s.
    """
    client = admin(bootstrap)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    resources += [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in brokers]
    found = []
    for resource in resources:
        # librdkafka can describe the configs of only one broker per call.
        with _unreachable(f"{resource.name}: the brokers did not describe its configs"):
            entries = client.describe_configs([resource])[resource].result(_SECONDS).values()
        for entry in entries:
            dynamic = entry.source not in (ConfigSource.DEFAULT_CONFIG.value, ConfigSource.STATIC_BROKER_CONFIG.value)
            if ".replication.throttled." in entry.name and dynamic:
                found.append(f"{resource.name}: {entry.name}={entry.value}")
    return sorted(found)


@contextmanager
def _unreachable(problem: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise Unreachable(f"{problem}: {error}") from error


def _until(seen: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + _SECONDS
    while not seen():
        if time.monotonic() > give_up:
            raise KquotaError(f"{what} after {_SECONDS:.0f} s")
        time.sleep(0.1)
