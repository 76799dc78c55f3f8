"""The log on real brokers: compaction, deleted topics, records of others, quotas, and concurrent hosts."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kquota.errors import Refused, Unknown
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import partition, topic_log, topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topic_log import WireLog, find
from kquota.stores.state.log import Item, Stale
from tests.stores.record.contract import entries, newest
from tests.stores.record.stage import COMPACTED, QUICKLY_COMPACTED, create, create_only, delete, handle, produce
from tests.waiting import until

AN_HOUR = 3600.0


@pytest.fixture
def wire(cluster: Sandbox) -> Iterator[Wire]:
    with Wire(cluster.bootstrap, {}) as found:
        yield found


@pytest.fixture
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append relies on its last read, whatever its age: only the broker and the read-back protect it."""
    monkeypatch.setattr(topic_log, "_FRESH_SECONDS", AN_HOUR)


def test_the_broker_alone_stops_a_stale_append(wire: Wire, no_second_look: None) -> None:
    """The broker acknowledges one of the last five sequences, and refuses an older one."""
    name = create(wire)
    behind = [handle(wire, name) for _ in range(8)]
    writer = handle(wire, name)
    for count, log in enumerate(behind):
        log.read()
        writer.append([("k", b"%d" % count)])
    for log in behind:
        with pytest.raises(Stale):
            log.append([("k", b"stale")])
    assert entries(handle(wire, name).read()) == [("k", b"%d" % count) for count in range(8)]
    delete(wire, name)


def test_concurrent_hosts_lose_no_update(cluster: Sandbox, wire: Wire) -> None:
    """Each host increments a counter twelve times, and reads again if another host was first."""
    name = create(wire)
    handle(wire, name).append([("counter", b"0")])
    failures: list[Exception] = []

    def count() -> None:
        try:
            with Wire(cluster.bootstrap, {}) as own:
                log, value, added = handle(own, name), 0, 0
                while added < 12:
                    value = int(newest(log.read()).get("counter", b"%d" % value) or 0)
                    try:
                        log.append([("counter", b"%d" % (value + 1))])
                    except Stale:
                        continue
                    added += 1
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    hosts = [threading.Thread(target=count) for _ in range(3)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join()
    assert failures == []
    assert entries(handle(wire, name).read()) == [("counter", b"%d" % value) for value in range(37)]
    delete(wire, name)


@dataclass
class Live:
    """The state of a reader that has read from the start."""

    known: dict[str, bytes | None] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)

    def take(self, items: list[Item]) -> None:
        self.items += items
        self.known |= newest(items)

    @property
    def there(self) -> dict[str, bytes]:
        return {key: value for key, value in self.known.items() if value is not None}


def test_a_fresh_reader_equals_a_live_reader_after_compaction(cluster: Sandbox, wire: Wire) -> None:
    name = create(wire, QUICKLY_COMPACTED)
    writer, live, reader = handle(wire, name), Live(), handle(wire, name)
    writer.append([("a", b"1"), ("b", b"1"), ("c", b"1")])
    writer.append([("a", b"2"), ("lock", b"one")])
    writer.append([("b", None), ("lock", b"two")])

    def compacted() -> bool:
        writer.append([("beat", b"%d" % len(live.items))])
        live.take(list(reader.read()))
        fresh = handle(wire, name)
        items = fresh.read()
        assert {key: value for key, value in newest(items).items() if value is not None} == live.there
        return items[0].offset > 0 and len(items) < len(live.items)

    until(compacted, "the first offsets are removed", 120)
    assert live.there.keys() == {"a", "c", "lock", "beat"}
    fresh = handle(wire, name)
    fresh.read()
    fresh.append([("a", b"3")])
    with pytest.raises(Stale):
        reader.append([("a", b"4")])
    assert (fresh.truncated, fresh.foreign) == (False, 0)
    delete(wire, name)


def test_the_sequence_outlives_every_record_of_its_batch(cluster: Sandbox, wire: Wire) -> None:
    """Compaction leaves a batch without records, which shows a new reader the next sequence."""
    name = create(wire, QUICKLY_COMPACTED)
    writer = handle(wire, name)
    writer.append([("a", b"1")])
    writer.append([("a", None)])
    foreign = 0

    def emptied() -> bool:
        nonlocal foreign
        produce(cluster, name, b"foreign", b"%d" % foreign)
        foreign += 1
        return handle(wire, name).read() == []

    until(emptied, "the tombstone is removed", 180)
    fresh = handle(wire, name)
    assert fresh.read() == []
    assert fresh.foreign >= 1
    assert fresh._sequence == 2
    fresh.append([("a", b"2")])
    assert writer.read()[-1].value == b"2"
    delete(wire, name)


@pytest.mark.parametrize("looks", [True, False], ids=["looked before", "did not look"])
def test_a_recreated_topic_is_refused(wire: Wire, monkeypatch: pytest.MonkeyPatch, looks: bool) -> None:
    """Brokers below 4.1 accept the batch silently, so kquota checks the topic id again after the append."""
    monkeypatch.setattr(topic_log, "_FRESH_SECONDS", 0.0 if looks else AN_HOUR)
    name = f"again-{uuid.uuid4().hex[:8]}"
    topic_setup.create(wire, name)
    log = handle(wire, name)
    log.append([("a", b"1")])
    topic_setup.delete(wire, name)
    assert find(wire, name) is None
    topic_setup.create(wire, name)
    for call in (lambda: log.append([("a", b"2")]), log.read):
        with pytest.raises(Refused, match="deleted and created again"):
            call()
    new = handle(wire, name)
    assert new.identity != log.identity
    if looks:
        assert new.read() == []
    topic_setup.delete(wire, name)
    with pytest.raises(Refused, match="it was deleted"):
        new.append([("a", b"3")])


def seen(wire: Wire, name: str) -> WireLog:
    """The log as soon as a broker shows it."""
    found: list[WireLog] = []

    def shown() -> bool:
        found.extend(log for log in [find(wire, name)] if log is not None)
        return bool(found)

    until(shown, f"a broker shows {name}")
    return found[0]


def test_the_first_append_follows_the_creation_at_once(wire: Wire) -> None:
    """New leaders may not be ready yet."""
    for _ in range(5):
        name = create_only(wire, f"young-{uuid.uuid4().hex[:8]}")
        log = seen(wire, name)
        log.append([("a", b"1")])
        assert entries(log.read()) == [("a", b"1")]
        delete(wire, name)


def test_several_partitions_are_refused(wire: Wire) -> None:
    name = create(wire, partitions=2)
    with pytest.raises(Refused, match="has 2 partitions, but the shared record needs exactly one"):
        find(wire, name)
    delete(wire, name)


def test_a_topic_that_does_not_exist_is_not_found(wire: Wire) -> None:
    assert find(wire, f"absent-{uuid.uuid4().hex[:8]}") is None


def test_records_of_others_are_ignored_and_counted(cluster: Sandbox, wire: Wire) -> None:
    name = create(wire)
    log = handle(wire, name)
    log.append([("a", b"1")])
    produce(cluster, name, b"a", b"theirs")
    produce(cluster, name, b"\xff", b"theirs", **{"compression.codec": "gzip"})
    produce(cluster, name, b"b", b"theirs" * 100, **{"compression.codec": "zstd"})
    log.append([("a", b"2")])
    fresh = handle(wire, name)
    assert entries(log.read()) == entries(fresh.read()) == [("a", b"1"), ("a", b"2")]
    assert log.foreign == fresh.foreign == 3
    delete(wire, name)


def test_a_broker_that_compresses_with_gzip_changes_nothing(wire: Wire) -> None:
    name = create(wire, COMPACTED | {"compression.type": "gzip"})
    log = handle(wire, name)
    log.append([("a", b"1" * 1_000), ("b", b"2" * 1_000)])
    log.append([("a", None)])
    assert entries(handle(wire, name).read()) == [("a", b"1" * 1_000), ("b", b"2" * 1_000), ("a", None)]
    delete(wire, name)


def test_a_batch_beyond_the_topics_limit_is_refused(wire: Wire) -> None:
    name = create(wire, COMPACTED | {"max.message.bytes": "2000"})
    log = handle(wire, name)
    with pytest.raises(Refused, match=r"larger than the topic's max\.message\.bytes"):
        log.append([("a", b"x" * 5_000)])
    log.append([("a", b"1")])
    assert entries(log.read()) == [("a", b"1")]
    delete(wire, name)


def test_deleted_records_are_detected(cluster: Sandbox, wire: Wire) -> None:
    name = create(wire, COMPACTED | {"cleanup.policy": "compact,delete"})
    log, behind = handle(wire, name), handle(wire, name)
    assert behind.read() == []
    for count in range(4):
        log.append([("a", b"%d" % count)])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    for done in admin.delete_records([TopicPartition(name, 0, 3)]).values():
        done.result(30)
    for one in (behind, handle(wire, name)):
        assert entries(one.read()) == [("a", b"3")]
        assert one.truncated
    log.append([("a", b"4")])
    behind.read()
    behind.append([("a", b"5")])
    assert entries(log.read())[-2:] == [("a", b"4"), ("a", b"5")]
    assert log.truncated
    delete(wire, name)


@contextmanager
def limited(wire: Wire, **quota: float) -> Iterator[dict[str, object]]:
    """The settings of a client with these quotas."""
    client = f"slow-{uuid.uuid4().hex[:8]}"
    quotas, entity = WireQuotas(wire), Entity(client_id=client)
    quotas.alter([QuotaChange(entity=entity, add=quota)])
    until(lambda: quotas.everything().get(entity) == quota, "the quota is seen")
    yield {"client_id": client}
    quotas.alter([QuotaChange(entity=entity, delete=tuple(quota))])


def test_a_quota_on_our_own_client_delays_an_append_and_nothing_more(kafka_431: Sandbox) -> None:
    """1,000 B/s for 20 kB: the broker mutes the connection for longer than the log's own deadline."""
    waits: list[float] = []
    with Wire(kafka_431.bootstrap, {}) as wire, limited(wire, producer_byte_rate=1_000.0) as settings:
        name = create(wire)
        with Wire(kafka_431.bootstrap, settings, throttled=waits.append) as slow:
            log = handle(slow, name, seconds=6.0)
            log.append([("a", b"x" * 20_000)])
            log.append([("b", b"1")])
            assert [item.key for item in log.read()] == ["a", "b"]
        assert max(waits) > 6.0
        delete(wire, name)


def test_a_quota_that_blocks_every_batch_is_reported(kafka_431: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker never sends a batch that is larger than 10 s of consumer_byte_rate."""
    monkeypatch.setattr(partition, "_MUTED_SECONDS", 5.0)
    with Wire(kafka_431.bootstrap, {}) as wire, limited(wire, consumer_byte_rate=100.0) as settings:
        name = create(wire)
        with Wire(kafka_431.bootstrap, settings) as slow:
            log = handle(slow, name, seconds=2.0)
            with pytest.raises(Unknown, match=r"throttles this client.*unknown whether"):
                log.append([("a", b"x" * 20_000)])
        assert newest(handle(wire, name).read()).keys() == {"a"}
        delete(wire, name)
