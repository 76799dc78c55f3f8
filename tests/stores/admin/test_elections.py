"""The Elections contract on real brokers of three generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace

import pytest

from kquota.election.port import ElectionType
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.elections import WireElections
from kquota.stores.admin.moves import WireMoves
from kquota.terms import BrokerId, TopicPartition
from tests.election.contract import ElectionsContract
from tests.stores.admin.test_attempts import Manager, StubWire, Time
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


ERRORS: dict[str, tuple[int, type[KquotaError]]] = {
    "ClusterAuthorizationFailed": (31, Refused),
    "RequestTimedOut": (7, Unreachable),
    "UnknownServerError": (-1, Unreachable),
}


@pytest.mark.parametrize(("code", "error"), ERRORS.values(), ids=ERRORS)
def test_after_an_error_of_the_whole_request_leaders_are_unknown_only_if_they_may_be_elected(
    code: int, error: type[KquotaError]
) -> None:
    answer = SimpleNamespace(error_code=code, replica_election_results=[])
    elections = WireElections(StubWire(Manager(Time(), lambda _: answer)))
    with pytest.raises(error, match=rf"\({code}\)"):
        elections.elect(ElectionType.PREFERRED, [TopicPartition("t", 0)], 30)
