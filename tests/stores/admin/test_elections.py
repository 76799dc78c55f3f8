"""The Elections contract on real brokers of three generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.elections import WireElections
from kquota.stores.admin.moves import WireMoves
from kquota.terms import BrokerId, TopicPartition
from tests.election.contract import ElectionsContract
from tests.stores.moves_stage import OtherHand


class TestOnRealBrokers(ElectionsContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox, hand: OtherHand) -> Iterator[None]:
        self.hand = hand
        with Wire(cluster.bootstrap, {}) as wire:
            self.elections, self.moves = WireElections(wire), WireMoves(wire)
            yield

    def topic(self, replicas: Mapping[int, Sequence[int]]) -> str:
        return self.hand.topic(replicas)

    def prefer(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        refused = self.moves.submit({name: tuple(map(BrokerId, ids)) for name, ids in targets.items()})
        assert not any(refused.values()), refused
