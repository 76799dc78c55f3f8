"""The contract of ReplicaDirs on real brokers, and a move between log dirs as Kafka's own tool sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from kquota.reassign.moves import Replicas
from kquota.reassign.throttle import Setting
from kquota.sandbox.cluster import Cluster
from kquota.stores.wire.connection import Wire
from kquota.stores.wire.moves import WireMoves
from kquota.stores.wire.replica_dirs import WireReplicaDirs
from kquota.terms import LOG_DIR_RATE, BrokerId, TopicPartition
from tests.reassign.dirs_contract import ReplicaDirsContract, Stage
from tests.stores.moves_stage import OtherHand, until

SIZE = 3_000_000
"""A broker copies a megabyte before it looks at its throttle."""


class RealStage:
    """A sandbox's brokers, which have two log dirs each, and librdkafka."""

    def __init__(self, servers: Cluster, wire: Wire, hand: OtherHand) -> None:
        self.dirs = WireReplicaDirs(wire)
        self.brokers = (BrokerId(1), BrokerId(2), BrokerId(3))
        self.servers = servers
        self.hand = hand
        self._moves = WireMoves(wire)

    def paths(self, broker: BrokerId) -> tuple[str, str]:
        first, second = self.servers.broker(broker).log_dirs
        return str(first), str(second)

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        name = self.hand.topic(replicas, SIZE)
        wanted = {(TopicPartition(name, number), broker) for number, those in replicas.items() for broker in those}
        until(lambda: self.dirs.read(wanted).places.keys() == wanted, f"{name} has all its logs")
        return name

    def slow(self, broker: BrokerId) -> None:
        self.hand.write(Setting.of_broker(broker, LOG_DIR_RATE), "1000")

    def fast(self, broker: BrokerId) -> None:
        self.hand.write(Setting.of_broker(broker, LOG_DIR_RATE), None)

    def reassign(self, name: TopicPartition, target: Replicas) -> None:
        assert self._moves.submit({name: target}) == {}

    def close(self) -> None:
        for broker in self.brokers:
            if self.hand.value(Setting.of_broker(broker, LOG_DIR_RATE)) is not None:
                self.fast(broker)


@pytest.fixture
def real_stage(cluster: Cluster, hand: OtherHand) -> Iterator[RealStage]:
    with Wire(cluster.bootstrap, {}) as wire:
        found = RealStage(cluster, wire, hand)
        yield found
        found.close()


class TestAdminApi(ReplicaDirsContract):
    @pytest.fixture
    def stage(self, real_stage: RealStage) -> Stage:
        return real_stage
