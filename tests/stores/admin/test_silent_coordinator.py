"""The offsets of consumer groups while a broker hangs."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.admin.groups import ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from kquota.errors import KquotaError, Unreachable
from kquota.pace.lag import GroupOffsets
from kquota.stores.admin import group_offsets
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.group_offsets import WireGroups
from kquota.terms import BrokerId, TopicPartition

HUNG, LIVE = BrokerId(1), BrokerId(2)
GROUPS = ("a", "b")
READ, END = 7, 30


class Brokers:
    """A wire to two brokers. Both lead a partition of t, and `LIVE` coordinates both groups. A request to `HUNG` takes
    its whole time limit, and an answer of `LIVE` takes no time.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.lists = 0
        """The number of times that the brokers were asked for their groups."""

    def monotonic(self) -> float:
        return self.now

    def brokers(self) -> dict[BrokerId, None]:
        return {HUNG: None, LIVE: None}

    def refresh(self) -> None:
        """The brokers never change."""

    def partition_states(self, request: Any) -> Any:
        leaders = {TopicPartition("t", 0): HUNG, TopicPartition("t", 1): LIVE}
        topic = SimpleNamespace(partitions={one: SimpleNamespace(leader=leader) for one, leader in leaders.items()})
        return SimpleNamespace(topics=[topic])

    def ask_each(self, requests: Mapping[BrokerId, Any], seconds: float) -> dict[BrokerId, Any | KquotaError]:
        self.now += seconds if HUNG in requests else 0.0
        self.lists += isinstance(requests.get(LIVE), ListGroupsRequest)
        return {b: Unreachable("no answer") if b == HUNG else _answer(one) for b, one in requests.items()}


def _answer(request: Any) -> Any:
    if isinstance(request, ListGroupsRequest):
        groups = [SimpleNamespace(group_id=group, protocol_type="consumer") for group in GROUPS]
        return SimpleNamespace(error_code=0, groups=groups)
    if isinstance(request, OffsetFetchRequest):
        commits = [SimpleNamespace(partition_index=n, committed_offset=READ, error_code=0) for n in (0, 1)]
        return SimpleNamespace(error_code=0, topics=[SimpleNamespace(name="t", partitions=commits)])
    return SimpleNamespace(offsets={"t": {1: END}})


def test_the_groups_of_the_other_coordinators_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    monkeypatch.setattr(group_offsets, "time", brokers)
    groups = WireGroups(cast(Wire, brokers))
    for _ in range(2):
        found = groups.read()
        assert found.groups == {group: {TopicPartition("t", 1): GroupOffsets(READ, END)} for group in GROUPS}
        assert (found.unlisted, found.unread) == (1, 0)


def test_a_broker_that_stays_silent_does_not_make_every_reading_list_the_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first failure may be short, so the next reading asks again. Later, the groups are listed once a minute."""
    brokers = Brokers()
    monkeypatch.setattr(group_offsets, "time", brokers)
    groups = WireGroups(cast(Wire, brokers))
    lists = []
    for _ in range(15):
        assert groups.read().unlisted == 1
        lists.append(brokers.lists)
        brokers.now += 10
    assert lists[:5] == [1, 2, 2, 2, 2]
    assert lists[-1] == 3
