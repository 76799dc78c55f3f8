"""The local log of a tiered topic begins at the timestamp -4 of ListOffsets (KIP-405), and of older brokers at -2."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest

from kquota.reassign.moves import PartitionReplicas
from kquota.sizes.replica import LogDir, Replica
from kquota.stores.admin.log_dirs import WireLogDirs
from kquota.stores.admin.offsets import OffsetsAnswer
from kquota.terms import BrokerId, TopicPartition

T0, ONE = TopicPartition("t", 0), BrokerId(1)
OFFSETS = {-1: 100, -2: 5, -4: 60}
"""End, start with the remote part, start of the local log."""
HELD = LogDir(
    broker=ONE,
    rack=None,
    path="/data",
    error=None,
    volume_total=None,
    volume_usable=None,
    replicas=(Replica(partition=T0, size=400, offset_lag=0, future=False),),
)


class OneBroker:
    """A wire with one broker, which answers ListOffsets for `T0`."""

    def __init__(self, release: tuple[int, int]) -> None:
        self._release = release

    def oldest(self) -> tuple[int, int]:
        return self._release

    def partition_states(self, request: Any) -> Any:
        state = PartitionReplicas(replicas=(ONE,), leader=ONE, isr=(ONE,))
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions={T0: state})])

    def ask_each(self, requests: Mapping[BrokerId, Any]) -> dict[BrokerId, Any]:
        found = {}
        for broker, request in requests.items():
            request.API_VERSION = 9
            [topic] = ListOffsetsRequest.decode(request.body(), version=9).topics
            [asked] = topic.partitions
            assert (topic.name, asked.partition_index) == ("t", 0)
            found[broker] = OffsetsAnswer(throttle_time_ms=0, offsets={"t": {0: OFFSETS[asked.timestamp]}})
        return found


@pytest.mark.parametrize(("release", "local_start"), [((4, 1), 60), ((3, 5), 5)])
def test_the_local_start_is_asked_with_the_timestamp_of_the_release(release: tuple[int, int], local_start: int) -> None:
    [found] = WireLogDirs(OneBroker(release)).detailed([HELD])  # type: ignore[arg-type]
    [replica] = found.replicas
    assert (replica.start_offset, replica.local_start_offset, replica.end_offset) == (5, local_start, 100)
