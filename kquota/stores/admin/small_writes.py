"""A real client (librdkafka) that writes small records to a scratch topic, and measures how long each write takes."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.errors import Refused
from kquota.interrupt import deferred
from kquota.probe.port import UNANSWERED_SECONDS
from kquota.stores.admin.load import DENIED, QUIET, purged

_RECORD: Final = b"x" * 100
_TIMEOUT_MS: Final = 30_000
"""The default `request.timeout.ms` of Kafka's producer. A write without an answer fails after this time."""
_MOST_UNANSWERED: Final = 50
"""A partition with this many unanswered writes gets no more writes until one of them is answered or fails."""
_NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_SETTINGS: Final = {
    "acks": "all",
    "linger.ms": 0,
    "compression.type": "none",
    "message.timeout.ms": _TIMEOUT_MS,
    # This time is short, because the client reports a deleted topic only after this time.
    "topic.metadata.propagation.max.ms": 5_000,
}


@contextmanager
def small_writes(bootstrap: str, settings: Mapping[str, Any], topic: str, partitions: int) -> Iterator[TimedWrites]:
    """Yield a client that writes to `topic`, which has this many `partitions`. `settings` has the login in librdkafka's
    format.

    At the end of the context, drops the writes that no broker has acknowledged.
    """
    found = TimedWrites({**settings, **QUIET, **_SETTINGS, "bootstrap.servers": bootstrap}, topic, partitions)
    with purged(found.producer):
        yield found


class TimedWrites:
    """Implements `SmallWrites`."""

    def __init__(self, settings: Mapping[str, Any], topic: str, partitions: int) -> None:
        self._topic = topic
        self._unanswered: dict[int, dict[int, float]] = {number: {} for number in range(partitions)}
        self._latencies: defaultdict[int, list[float]] = defaultdict(list)
        self._sent = 0
        self._denied: str | None = None
        self.lost = False
        self.producer = Producer({**settings, "error_cb": self._failed})

    def write(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        # Defer signals, because librdkafka would lose an exception that a signal handler raises in a callback.
        with deferred():
            for partition, unanswered in self._unanswered.items():
                if len(unanswered) < _MOST_UNANSWERED:
                    self._send(partition, unanswered)
            while (left := ends - time.monotonic()) > 0:
                self.producer.poll(left)
        if self._denied is not None:
            step = "Check the login and its permissions"
            raise Refused(f"brokers reject the writes to {self._topic} ({self._denied}). {step}")

    def latencies(self) -> Mapping[int, Sequence[float]]:
        with deferred():
            self.producer.poll(0)
        now = time.monotonic()
        for partition, unanswered in self._unanswered.items():
            late = sum(now - sent >= UNANSWERED_SECONDS for sent in unanswered.values())
            self._latencies[partition] += [math.inf] * late
        found, self._latencies = self._latencies, defaultdict(list)
        return found

    def _send(self, partition: int, unanswered: dict[int, float]) -> None:
        self._sent += 1
        answered = partial(self._answered, partition, self._sent)
        unanswered[self._sent] = time.monotonic()
        try:
            self.producer.produce(self._topic, _RECORD, partition=partition, on_delivery=answered)
        except KafkaException as error:  # the client already knows that the topic was deleted
            answered(error.args[0], None)

    def _answered(self, partition: int, number: int, error: KafkaError | None, _: Message | None) -> None:
        sent = self._unanswered[partition].pop(number)
        self._latencies[partition].append(time.monotonic() - sent if error is None else math.inf)
        if error is not None:
            self._failed(error)

    def _failed(self, error: KafkaError) -> None:
        if error.code() in DENIED:
            self._denied = self._denied or error.str()
        elif error.code() in _NO_TOPIC:
            self.lost = True
