"""The Log contract on the fake, on the broker in memory, and on real brokers of three generations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kquota.cli.contract import worded
from kquota.errors import KquotaError, Refused, Unknown, Unreachable
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topic_log import find
from kquota.stores.state.log import Log
from tests.stores.record.broker import BrokerWire, HeldTopic
from tests.stores.record.contract import LogContract
from tests.stores.record.fake import MemoryTopic
from tests.stores.record.lossy import Ask, instead, never_answered, not_supported
from tests.stores.record.stage import handle


class TestFake(LogContract):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.topic = MemoryTopic()

    def handle(self) -> Log:
        return self.topic.handle()


class TestOnBrokerInMemory(LogContract):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.wire = BrokerWire({"t": HeldTopic()})

    def handle(self) -> Log:
        return handle(self.wire, "t")


class TestOnRealBrokers(LogContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox) -> Iterator[None]:
        self.name = f"record-{uuid.uuid4().hex[:8]}"
        with Wire(cluster.bootstrap, {}) as wire:
            self.wire = wire
            topic_setup.create(wire, self.name)
            yield
            topic_setup.delete(wire, self.name)

    def handle(self) -> Log:
        log = find(self.wire, self.name)
        assert log is not None
        return log


def test_a_broker_that_does_not_support_produce_appends_nothing_and_an_offer_raises_nothing() -> None:
    topic = HeldTopic()
    wire = BrokerWire({"t": topic})
    wire.fault = not_supported
    handle(wire, "t").offer([("a", b"1")])
    assert topic.batches == []
    wire.fault = not_supported
    handle(wire, "t").append([("a", b"1")])
    assert len(topic.batches) == 1, "the second attempt of the append succeeds"


@pytest.mark.parametrize(
    ("lost", "error", "words"),
    [
        (
            False,
            Refused,
            ", because the last records of the topic were deleted. Nothing was appended",
        ),
        (True, Unknown, ". It is unknown whether the record was written"),
    ],
    ids=["acknowledged", "after a lost answer"],
)
def test_a_batch_with_the_sequence_of_deleted_records_is_not_appended(
    lost: bool, error: type[KquotaError], words: str
) -> None:
    """DeleteRecords keeps the state of the producer, so the broker acknowledges the batch without appending it."""
    topic = HeldTopic()
    wire = BrokerWire({"t": topic})
    handle(wire, "t").append([("a", b"1")])
    topic.delete_records()
    log = handle(wire, "t", 0.5)
    assert log.read() == []
    wire.fault = never_answered if lost else None
    with pytest.raises(error, match=f"topic t: the broker acknowledged a duplicate of offset 0{words}"):
        log.append([("a", b"2")])
    assert topic.batches == []


TOO_FEW = {
    "before the append": (19, Unreachable, "NotEnoughReplicas (19). Nothing was appended"),
    "after it": (20, Unknown, "NotEnoughReplicasAfterAppend (20). It is unknown whether the record was written"),
}


@pytest.mark.parametrize(("code", "error", "words"), TOO_FEW.values(), ids=TOO_FEW)
def test_too_few_in_sync_replicas_until_the_deadline_name_the_next_step(
    code: int, error: type[KquotaError], words: str
) -> None:
    wire = BrokerWire({"t": HeldTopic()})

    def always(ask: Ask) -> Any:
        wire.fault = always
        return instead(code)(ask)

    wire.fault = always
    with pytest.raises(error) as raised:
        handle(wire, "t", 0.2).append([("a", b"1")])
    assert worded(raised.value) == (
        f"topic t: the broker answered {words}. Start the brokers of its replicas, or lower its min.insync.replicas. "
        "`kquota topics --bootstrap-server HOST:PORT --describe --topic t` shows the in-sync replicas"
    )
