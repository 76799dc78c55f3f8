"""A broker that reports sizes but does not answer ListOffsets is silent, and its sizes stay known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquota.errors import KquotaError, Unreachable
from kquota.stores.admin.offsets import ListOffsetsRequest, OffsetsAnswer
from kquota.stores.admin.replica_logs import LogDirSizes, LogSizes, WireReplicaLogs
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.reading import WantedLogs
from tests.watch.contract import size_of

T0, ONE, TWO = TopicPartition("t", 0), BrokerId(1), BrokerId(2)


class TwoBrokers:
    """A wire with two brokers. Broker 2 answers DescribeLogDirs, but not ListOffsets."""

    def ask_each(self, requests: Mapping[BrokerId, Any], _seconds: float) -> dict[BrokerId, Any | KquotaError]:
        return {broker: self._answer(broker, request) for broker, request in requests.items()}

    def _answer(self, broker: BrokerId, request: Any) -> Any | KquotaError:
        if not isinstance(request, ListOffsetsRequest):
            found = LogDirSizes(path="/data", error_code=0, usable=None, topics=[("t", iter([(0, 400, 0)]))])
            return LogSizes(throttle_time_ms=0, error_code=0, results=[found])
        if broker == TWO:
            return Unreachable("no answer to ListOffsets")
        return OffsetsAnswer(throttle_time_ms=0, offsets={"t": {0: 7}})


def test_a_broker_without_an_answer_to_list_offsets_is_silent() -> None:
    both = {ONE: (0,), TWO: (0,)}
    found = WireReplicaLogs(TwoBrokers()).read([WantedLogs("t", both, both)], (ONE, TWO))  # type: ignore[arg-type]
    assert found.silent == {TWO: "no answer to ListOffsets"}
    assert {broker: (size_of(found, (T0, broker)), found.end((T0, broker))) for broker in both} == {
        ONE: (400, 7),
        TWO: (400, None),
    }
