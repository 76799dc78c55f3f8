"""A real client (librdkafka) that loads a scratch topic and measures its own throughput and throttle times."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition

from kquota.errors import KquotaError, Parameter, Refused, Unreachable
from kquota.interrupt import deferred
from kquota.probe.load import Load
from kquota.probe.verdict import Meter
from kquota.terms import BrokerId

_OnProgress = Callable[[float], None]
_POLL: Final = 0.02
_AT_ONCE: Final = 500
"""The maximum number of records that one call takes from librdkafka."""
_MOST_RECORD: Final = 50_000
_RECORDS_A_FETCH: Final = 8
"""The maximum number of records in a fetch from one partition. Each batch has only one record, because a client cannot
use a batch that a fetch contains only in part.
"""
_LEAST_FILLED: Final = 2_000
_FRAMING: Final = 70
"""The bytes of a batch in addition to its only record. A quota also counts these bytes."""
_AROUND: Final = _FRAMING + 10
_AHEAD_SECONDS: Final = 0.5
_FILL_SECONDS: Final = 1.0
_MOST_FILL: Final = 16_000_000
_PATIENCE: Final = 60.0
_STATISTICS_MS: Final = 500
DENIED: Final = (
    KafkaError._AUTHENTICATION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
)
_FATAL: Final = (*DENIED, KafkaError._ALL_BROKERS_DOWN, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
# Log only critical messages. librdkafka logs to stderr, and also reports the relevant problems as errors.
QUIET: Final = {"log_level": 2}
_LONGEST_WAIT_MS: Final = 300_000
"""The `socket.timeout.ms` of the client: librdkafka's maximum, so that kquota does not lose a request that a quota
delays for minutes.
"""


class RdkafkaClient:
    """Implements `ProbeClient`. `settings` has the login in librdkafka's format (`rdkafka.settings`)."""

    def __init__(self, bootstrap: str, settings: Mapping[str, Any], client_id: str) -> None:
        self._settings = {
            **settings,
            **QUIET,
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "socket.timeout.ms": _LONGEST_WAIT_MS,
        }
        self._failure: KquotaError | None = None

    def produce(self, load: Load, meter: Meter, on_progress: _OnProgress) -> None:
        self._write(load, meter, on_progress, most=None, record=min(load.batch, _MOST_RECORD))

    def fill(self, load: Load) -> None:
        """Raise Unreachable also if this takes more than a minute."""
        size = int(min(_MOST_FILL, max(4 * load.batch, load.expected * _FILL_SECONDS)))
        now = time.monotonic()
        meter = Meter(starts=now, ends=now + _PATIENCE)
        self._write(load, meter, lambda _: None, most=size, record=_filled_record(load))

    def consume(self, load: Load, meter: Meter, on_progress: _OnProgress) -> None:
        began, got = time.monotonic(), 0
        with deferred() as let_through, self._consumer(load, meter, 0) as consumer:
            while (now := time.monotonic()) < meter.ends:
                on_progress(now - began)
                let_through()
                self._must_go_on()
                if got > load.due(now - began) * len(load.leaders):
                    time.sleep(_POLL)
                    continue
                for message in consumer.consume(_AT_ONCE, _POLL):
                    if error := message.error():
                        self._read_again(consumer, message, error)
                    else:
                        size = len(message.value() or b"") + _FRAMING
                        got += size
                        meter.got(load.leaders[message.partition()], size, time.monotonic())

    def request(self, load: Load, meter: Meter, on_progress: _OnProgress) -> None:
        """Fetch at the end of an empty log, because such a fetch uses the threads of a broker but returns no data."""
        began = time.monotonic()
        at_once = {"fetch.wait.max.ms": 0, "statistics.interval.ms": _STATISTICS_MS}
        with deferred() as let_through, ExitStack() as stack:
            consumers = [
                stack.enter_context(self._consumer(load, meter, OFFSET_END, at_once | {"stats_cb": _fetches(meter)}))
                for _ in range(max(1, round(load.rate)))
            ]
            while (now := time.monotonic()) < meter.ends:
                on_progress(now - began)
                let_through()
                self._must_go_on()
                for consumer in consumers:
                    message = consumer.poll(_POLL / len(consumers))
                    if message is not None and (error := message.error()):
                        self._failed(error)

    def _write(self, load: Load, meter: Meter, on_progress: _OnProgress, *, most: int | None, record: int) -> None:
        """Write records of `record` bytes until the meter ends. With `most`, write only until each partition has this
        many bytes, and raise Unreachable if the meter ends first. Raise Refused if the client has sent more than
        `load.most_bytes`.
        """
        # The bytes are random, so that compression does not make them smaller.
        payload = os.urandom(record)
        ahead = max(2 * load.batch, int(load.expected * _AHEAD_SECONDS))
        sent: Counter[int] = Counter()
        taken: Counter[int] = Counter()

        def delivered(error: KafkaError | None, message: Message) -> None:
            partition = message.partition()
            taken[partition] += record
            if error is not None:
                self._failed(error)
            else:
                meter.got(load.leaders[partition], record, time.monotonic())

        producer = Producer(self._writing(load.batch if most is None else record + _AROUND, meter))
        began = time.monotonic()
        with deferred() as let_through, purged(producer):
            while (now := time.monotonic()) < meter.ends:
                on_progress(now - began)
                let_through()
                self._must_go_on()
                if sent.total() > load.most_bytes:
                    problem = f": the client has sent more than {load.most_bytes:,} bytes. If the client has a quota, "
                    problem += "check that the brokers enforce it. Otherwise, give a lower rate or a higher "
                    raise Refused(Parameter("most_bytes"), problem, Parameter("most_bytes"))
                for partition in load.leaders:
                    due = load.due(now - began) if most is None else float(most)
                    while sent[partition] < due and sent[partition] - taken[partition] < ahead:
                        producer.produce(load.topic, payload, partition=partition, on_delivery=delivered)
                        sent[partition] += record
                producer.poll(_POLL / 4)
                if most is not None and all(taken[partition] >= most for partition in load.leaders):
                    return
        if most is not None:
            raise Unreachable(
                f"filling topic {load.topic} took more than {_PATIENCE:g} s. Nothing was measured. Check that the "
                "client's producer_byte_rate is not too low"
            )

    def _writing(self, batch: int, meter: Meter) -> dict[str, Any]:
        return self._heard(meter) | {
            "acks": 1,
            "linger.ms": 5,
            "batch.size": batch,
            "compression.type": "none",
            "queue.buffering.max.kbytes": 2**20,
            "queue.buffering.max.messages": 1_000_000,
        }

    @contextmanager
    def _consumer(self, load: Load, meter: Meter, offset: int, more: Mapping[str, Any] | None = None) -> Any:
        consumer = Consumer(
            self._heard(meter)
            | {
                "group.id": load.topic,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "check.crcs": False,
                "fetch.wait.max.ms": 100,
                "fetch.queue.backoff.ms": 10,
                "fetch.message.max.bytes": _RECORDS_A_FETCH * (_filled_record(load) + _AROUND),
                "queued.max.messages.kbytes": max(1, int(load.expected * len(load.leaders) * _AHEAD_SECONDS / 1_000)),
            }
            | dict(more or {})
        )
        try:
            consumer.incremental_assign([TopicPartition(load.topic, partition, offset) for partition in load.leaders])
            yield consumer
        finally:
            consumer.close()

    def _heard(self, meter: Meter) -> dict[str, Any]:
        def throttled(event: Any) -> None:
            meter.throttled(BrokerId(event.broker_id), round(event.throttle_time * 1_000), time.monotonic())

        return {**self._settings, "throttle_cb": throttled, "error_cb": self._failed}

    def _read_again(self, consumer: Consumer, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            consumer.seek(TopicPartition(message.topic(), message.partition(), 0))
        else:
            self._failed(error)

    def _failed(self, error: KafkaError) -> None:
        # Store the failure for `_must_go_on`, because an exception must not pass through librdkafka.
        if error.code() in DENIED:
            words = f"brokers reject the client of the probe ({error.str()}). Check its login and its permissions"
            self._failure = self._failure or Refused(words)
        elif error.code() in _FATAL or error.code() == KafkaError._MSG_TIMED_OUT:
            self._failure = self._failure or Unreachable(f"the client of the probe failed: {error.str()}")

    def _must_go_on(self) -> None:
        if self._failure is not None:
            raise self._failure


@contextmanager
def purged(producer: Producer) -> Iterator[None]:
    """At the end of the context, drop the records that no broker has accepted."""
    try:
        yield
    finally:
        # Otherwise, the producer would wait until the throttled brokers accept these records.
        producer.purge()


def _filled_record(load: Load) -> int:
    """Return the size in bytes of each record that `fill` writes."""
    return max(_LEAST_FILLED, load.batch // _RECORDS_A_FETCH)


def _fetches(meter: Meter) -> Callable[[str], None]:
    """Return a `stats_cb` that counts the fetch requests of one consumer to each broker."""
    known: Counter[int] = Counter()

    def heard(text: str) -> None:
        now = time.monotonic()
        for broker in json.loads(text)["brokers"].values():
            number, fetches = broker["nodeid"], broker["req"].get("Fetch", 0)
            meter.got(BrokerId(number), fetches - known[number], now)
            known[number] = fetches

    return heard
