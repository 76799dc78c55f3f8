"""The contract of a MoveCluster on real servers: through the Admin API of each Kafka, and in each ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kquota.errors import KquotaError
from kquota.reassign.moves import Replicas
from kquota.reassign.port import MoveCluster as Port
from kquota.sandbox.cluster import Sandbox
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.stores.admin.settings import operation
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.znodes import Znodes
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.reassign.contract import ClusterContract, Stage
from tests.stores.moves_stage import OtherHand
from tests.waiting import until


class RealStage:
    def __init__(self, cluster: Port, hand: OtherHand) -> None:
        self.cluster = cluster
        self.brokers = (BrokerId(1), BrokerId(2), BrokerId(3))
        self._hand = hand

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        # More than a follower fetches at once: the data of its first fetches arrives in seconds, throttled or not.
        return self._hand.topic(replicas, size=6_000_000)

    def write(self, setting: Setting, value: str | None) -> None:
        self._hand.write(setting, value)
        until(lambda: self.cluster.values([setting]) == {setting: value}, f"{setting} is seen")

    def heard(self) -> None:
        self._hand.heard()

    def finish(self, name: TopicPartition) -> None:
        self._hand.unthrottle()
        until(lambda: name not in self.cluster.snapshot([name.topic]).running, f"{name} has moved")


@pytest.mark.kafka
class TestAdminApi(ClusterContract):
    @pytest.fixture
    def stage(self, cluster: Sandbox, hand: OtherHand) -> Iterator[Stage]:
        with Wire(cluster.bootstrap, {}) as wire:
            yield RealStage(WireMoves(wire), hand)


@pytest.mark.kafka
class TestZooKeeper(ClusterContract):
    @pytest.fixture(params=["kafka_391", "kafka_282"], ids=["3.9.1", "2.8.2"])
    def cluster(self, request: pytest.FixtureRequest) -> Sandbox:
        found: Sandbox = request.getfixturevalue(request.param)
        return found

    @pytest.fixture
    def stage(self, cluster: Sandbox, hand: OtherHand) -> Iterator[Stage]:
        assert cluster.zookeeper
        with Znodes(cluster.zookeeper) as znodes:
            yield RealStage(ZooKeeperMoves(znodes, lambda problem: pytest.fail(str(problem))), hand)


SET, DELETE, APPEND, SUBTRACT = range(4)
OPERATIONS = {
    "the first entries": (None, "0:1,0:2", (APPEND, "0:1,0:2")),
    "more entries": ("7:7", "7:7,0:1", (APPEND, "0:1")),
    "entries go": ("7:7,0:1,0:2", "7:7", (SUBTRACT, "0:1,0:2")),
    "all go, unset": ("0:1,0:2", None, (SUBTRACT, "0:1,0:2")),
    "all go, empty": ("0:1", "", (SUBTRACT, "0:1")),
    "empty, then unset": ("", None, (DELETE, None)),
    "a leading comma": (",0:1", "0:1,0:2", (APPEND, "0:2")),
    "a space, which APPEND would keep": ("7:7, 8:8", "7:7,8:8,0:1", (SET, "7:7,8:8,0:1")),
    "back to a space": ("7:7,8:8,0:1", ",7:7, 8:8", (SET, ",7:7, 8:8")),
    "twice, which SUBTRACT would leave once": ("0:1,0:1", None, (DELETE, None)),
    "some come and some go": ("0:1", "0:2", (SET, "0:2")),
    "another order": ("0:1,0:2", "0:2,0:1", (SET, "0:2,0:1")),
}


@pytest.mark.parametrize(("before", "after", "sent"), OPERATIONS.values(), ids=OPERATIONS)
def test_a_list_change_has_the_exact_result(
    before: str | None, after: str | None, sent: tuple[int, str | None]
) -> None:
    change = Change(setting=Setting.of_topic("t", LEADER_REPLICAS), before=before, after=after)
    assert operation(change, incremental=True) == sent
    assert operation(change, incremental=False) == ((DELETE, None) if after is None else (SET, after))


def test_a_rate_is_set_or_deleted() -> None:
    setting = Setting.of_broker(BrokerId(1), FOLLOWER_RATE)
    assert operation(Change(setting=setting, before="1", after="2"), incremental=True) == (SET, "2")
    assert operation(Change(setting=setting, before="1", after=None), incremental=True) == (DELETE, None)


class CountingWire(Wire):
    """Counts rounds: concurrent requests are one round."""

    rounds = 0

    def ask_each(
        self, requests: Mapping[BrokerId, Any], seconds: float | None = None
    ) -> dict[BrokerId, Any | KquotaError]:
        self.rounds += 1
        return super().ask_each(requests, seconds)


@pytest.mark.kafka
def test_a_throttle_of_many_topics_and_all_brokers_takes_two_rounds(cluster: Sandbox, hand: OtherHand) -> None:
    """One round checks that no other client has written, and one writes."""
    topics = [hand.topic({0: (1,)}, size=0) for _ in range(3)]
    lists = [Setting.of_topic(topic, key) for topic in topics for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    limits = [Setting.of_broker(BrokerId(b), key) for b in (1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)]
    wanted = {**dict.fromkeys(lists, "0:1"), **dict.fromkeys(limits, "50000000")}
    with CountingWire(cluster.bootstrap, {}) as wire:
        moves = WireMoves(wire)
        wire.oldest()
        wire.rounds = 0
        assert moves.change([Change(setting=s, before=None, after=value) for s, value in wanted.items()]) == {}
        assert wire.rounds == 2
        until(lambda: moves.values(wanted.keys()) == wanted, "all of it is seen")
        assert moves.change([Change(setting=s, before=value, after=None) for s, value in wanted.items()]) == {}
