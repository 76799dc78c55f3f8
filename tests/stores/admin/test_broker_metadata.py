"""The Sight contract over the Admin API of real brokers, and answers that their tests cannot cause at will."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquota.errors import Refused, Unreachable
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.broker_metadata import WireSight, fenced
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topics import WireTopics
from kquota.terms import BrokerId
from tests.probe.contract import SightContract


class TestOnBrokers(SightContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox) -> Iterator[None]:
        self.topic = f"sight-{uuid.uuid4().hex[:8]}"
        with Wire(cluster.bootstrap, {}) as wire:
            self.topics, self.sight = WireTopics(wire), WireSight(wire)
            yield


NO_LEADER = 5
"""LEADER_NOT_AVAILABLE"""


class OneBroker:
    """A wire to a broker that always gives the same answer about topic t."""

    def __init__(self, code: int, leaders: tuple[int, ...] = ()) -> None:
        partitions = [SimpleNamespace(leader_id=one, error_code=0 if one >= 0 else NO_LEADER) for one in leaders]
        self._topic = SimpleNamespace(name="t", error_code=code, partitions=partitions)

    def brokers(self) -> dict[BrokerId, None]:
        return {BrokerId(1): None}

    def ask_each(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        return dict.fromkeys(requests, SimpleNamespace(topics=[self._topic]))


ANSWERS: dict[str, tuple[OneBroker, list[int]]] = {
    "unknown": (OneBroker(3), [0]),
    "with leaders": (OneBroker(0, (1, 2)), [2]),
    "without leaders": (OneBroker(0, (-1, -1)), []),
    "LEADER_NOT_AVAILABLE": (OneBroker(NO_LEADER), []),
    "not authorized": (OneBroker(29), []),
}


@pytest.mark.unit
@pytest.mark.parametrize(("broker", "shown"), ANSWERS.values(), ids=ANSWERS)
def test_a_deleted_topic_is_gone_only_if_the_broker_does_not_know_it(broker: OneBroker, shown: list[int]) -> None:
    sight = WireSight(cast(Wire, broker))
    assert [count for count in range(4) if sight.behind({"t": count}) == 0] == shown


def cluster_of(code: int, *brokers: tuple[int, bool]) -> Any:
    nodes = [SimpleNamespace(broker_id=broker, is_fenced=is_fenced) for broker, is_fenced in brokers]
    return SimpleNamespace(error_code=code, error_message=None, brokers=nodes)


FENCED: dict[str, tuple[Any, object]] = {
    "one of two": (cluster_of(0, (1, False), (2, True)), {2}),
    "none": (cluster_of(0, (1, False)), set()),
    "before Kafka 4.0": (Refused("not supported"), set()),
    "an error": (cluster_of(-1), "fenced brokers: the broker answered Unknown (-1). Run the command again"),
    "no answer": (Unreachable("late"), "late"),
}


@pytest.mark.unit
@pytest.mark.parametrize(("answer", "found"), FENCED.values(), ids=FENCED)
def test_fenced_brokers(answer: Any, found: object) -> None:
    def read(_request: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    wire = cast(Wire, SimpleNamespace(read=read))
    if isinstance(found, str):
        with pytest.raises((Refused, Unreachable), match=re.escape(found)):
            fenced(wire)
    else:
        assert fenced(wire) == found
