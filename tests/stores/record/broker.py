"""A broker in memory with the topics of shared records, as a connection. kquota's own log and stores run on it.

Gaps: one broker without quotas, permissions and compaction; only the requests that the shared record needs.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.admin.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatch

from kquota.errors import KquotaError
from kquota.stores.admin.connection import LiveBroker, Wire
from kquota.stores.admin.record_batch import following
from kquota.terms import BrokerId
from tests.stores.record.lossy import Fault

ONE: Final = BrokerId(1)
_OUT_OF_RANGE, _ABSENT, _FORBIDDEN, _OUT_OF_ORDER = 1, 3, 29, 45
_REMEMBERED: Final = 5
"""The number of last batches of a producer whose sequences a broker remembers."""
_FETCH_VERSION: Final = 13


@dataclass
class HeldTopic:
    """A topic. `batches` has the first offset and the bytes of each batch of partition 0, with the producer's state in
    `sequences`: the first and the last sequence, and the first offset, of its last batches.
    """

    id: uuid.UUID = field(default_factory=uuid.uuid4)
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    sequences: list[tuple[int, int, int]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def delete_records(self) -> None:
        """Delete all records, like DeleteRecords. The state of the producer stays."""
        self.batches.clear()
        self.start = self.end

    def append(self, data: bytes) -> tuple[int, int]:
        """Return the error code and the first offset, as a broker answers the batch of a producer with an id."""
        batch = DefaultRecordBatch(memoryview(data))
        mine = (batch.base_sequence, batch.last_sequence)
        for first, last, offset in self.sequences:
            if (first, last) == mine:
                return 0, offset
        if self.sequences and batch.base_sequence != following(self.sequences[-1][1]):
            return _OUT_OF_ORDER, -1
        offset = self.end
        stored = bytearray(data)
        struct.pack_into(">q", stored, 0, offset)
        self.batches.append((offset, bytes(stored)))
        self.sequences = [*self.sequences, (*mine, offset)][-_REMEMBERED:]
        self.end += batch.last_sequence - batch.base_sequence + 1
        return 0, offset


class BrokerWire(Wire):
    """A connection to the broker. Each host has its own, with the same `topics`. The next append has the `fault`."""

    def __init__(self, topics: dict[str, HeldTopic]) -> None:
        self.topics = topics
        self.fault: Fault | None = None
        self.forbidden = False
        """True if the broker hides every topic from this user."""

    @property
    def cluster_id(self) -> str:
        return "cluster"

    @property
    def controller(self) -> BrokerId:
        return ONE

    def brokers(self) -> dict[BrokerId, LiveBroker]:
        return {ONE: LiveBroker(id=ONE, host="localhost", port=9092, rack=None)}

    def version(self) -> tuple[int, ...]:
        return (3, 9)

    def muted(self, broker: BrokerId | None) -> float:
        return 0.0

    def metadata(self, topics: list[str] | None, broker: BrokerId | None = None, seconds: float | None = None) -> Any:
        assert topics is not None
        return self.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics]))

    def ask_each(
        self, requests: Mapping[BrokerId, Any], seconds: float | None = None
    ) -> dict[BrokerId, Any | KquotaError]:
        return {broker: self.ask(request) for broker, request in requests.items()}

    def ask(self, request: Any, broker: BrokerId | None = None, seconds: float | None = None) -> Any:
        match request:
            case MetadataRequest():
                return MetadataResponse(topics=[self._described(topic.name) for topic in request.topics])
            case ProduceRequest():
                fault, self.fault = self.fault, None
                return self._produced(request) if fault is None else fault(lambda: self._produced(request))
            case FetchRequest():
                return self._fetched(request)
            case ListOffsetsRequest():
                name = request.topics[0].name
                topic = ListOffsetsResponse.ListOffsetsTopicResponse
                first = topic.ListOffsetsPartitionResponse(error_code=0, offset=self.topics[name].start)
                return ListOffsetsResponse(topics=[topic(name=name, partitions=[first])])
            case DescribeConfigsRequest():
                return DescribeConfigsResponse(results=[self._configs(one) for one in request.resources])
            case DeleteTopicsRequest():
                result = DeleteTopicsResponse.DeletableTopicResult
                codes = {name: 0 if self.topics.pop(name, None) else _ABSENT for name in request.topic_names}
                return DeleteTopicsResponse(responses=[result(name=n, error_code=code) for n, code in codes.items()])
            case CreateTopicsRequest():
                assert request.validate_only
                created = CreateTopicsResponse.CreatableTopicResult
                return CreateTopicsResponse(topics=[created(name=one.name, error_code=0) for one in request.topics])
        raise NotImplementedError(type(request).__name__)

    def _described(self, name: str) -> Any:
        topic = MetadataResponse.MetadataResponseTopic
        held = self.topics.get(name)
        if held is None or self.forbidden:
            return topic(name=name, error_code=_FORBIDDEN if self.forbidden else _ABSENT)
        one = topic.MetadataResponsePartition
        partitions = [
            one(partition_index=n, leader_id=ONE, replica_nodes=[ONE], isr_nodes=[ONE]) for n in range(held.partitions)
        ]
        return topic(name=name, error_code=0, topic_id=held.id, partitions=partitions)

    def _produced(self, request: Any) -> Any:
        (topic,) = request.topic_data
        held = self.topics.get(topic.name)
        code, offset = (_ABSENT, -1) if held is None else held.append(topic.partition_data[0].records)
        answer = ProduceResponse.TopicProduceResponse
        partition = answer.PartitionProduceResponse(index=0, error_code=code, base_offset=offset)
        return ProduceResponse(responses=[answer(partition_responses=[partition])])

    def _fetched(self, request: Any) -> Any:
        (topic,) = request.topics
        held, offset = self.topics[topic.topic], topic.partitions[0].fetch_offset
        answer = FetchResponse.FetchableTopicResponse
        partition = answer.PartitionData(
            partition_index=0,
            error_code=0 if held.start <= offset <= held.end else _OUT_OF_RANGE,
            high_watermark=held.end,
            log_start_offset=held.start,
            records=b"".join(data for first, data in held.batches if first >= offset),
        )
        return FetchResponse(responses=[answer(partitions=[partition])], version=_FETCH_VERSION)

    def _configs(self, resource: Any) -> Any:
        result = DescribeConfigsResponse.DescribeConfigsResult
        held = self.topics.get(resource.resource_name)
        configs = held.configs if held is not None else {"zookeeper.connect": "zk1:2181"}
        return result(
            error_code=0,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[result.DescribeConfigsResourceResult(name=k, value=v) for k, v in configs.items()],
        )
