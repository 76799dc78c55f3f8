"""The fake, and the Admin API of real brokers, pass the contract of a LogReader."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.replica_logs import WireReplicaLogs
from kquota.terms import TopicPartition
from kquota.watch.port import LogReader
from tests.stores.moves_stage import OtherHand
from tests.waiting import until
from tests.watch.contract import LogReaderContract, LogStage, size_of, wanted
from tests.watch.fake import CopyingCluster
from tests.watch.stage import brokers


@dataclass
class FakeStage:
    reader: CopyingCluster = field(default_factory=lambda: CopyingCluster(alive=set(brokers(1, 2, 3))))

    def filled(self, name: str, replicas: Collection[int], size: int) -> TopicPartition:
        partition = TopicPartition(name, 0)
        self.reader.partition(partition, tuple(replicas), size)
        return partition


@dataclass
class BrokerStage:
    hand: OtherHand
    wire: Wire

    @property
    def reader(self) -> LogReader:
        return WireReplicaLogs(self.wire)

    def filled(self, name: str, replicas: Collection[int], size: int) -> TopicPartition:
        partition = TopicPartition(self.hand.topic({0: replicas}, size=size, name=name), 0)

        def even() -> bool:
            every = brokers(*replicas)
            logs = self.reader.read([wanted(partition, every, every)], every)
            sizes = {size_of(logs, (partition, broker)) for broker in every}
            ends = {logs.end((partition, broker)) for broker in every}
            return len(sizes) == len(ends) == 1 and None not in sizes | ends

        until(even, "every replica has everything")
        return partition


class TestFake(LogReaderContract):
    @pytest.fixture
    def stage(self) -> LogStage:
        return FakeStage()


@pytest.mark.kafka
class TestBrokers(LogReaderContract):
    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[LogStage]:
        hand = OtherHand(cluster)
        with Wire(cluster.bootstrap, {}) as wire:
            yield BrokerStage(hand, wire)
        hand.close()
