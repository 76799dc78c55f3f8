"""Many brokers on real sockets, in one process: enough of Kafka's protocol to read a cluster, and no more.

`python -m bench.many_brokers BROKERS PARTITIONS` prints the bootstrap address, and ends when its standard input ends.
A cluster cannot be changed. Each partition has three replicas. Equal requests get the same bytes again, so the first
round of a measurement pays for the calculation of the answers.
"""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

_CLUSTER: Final = "bench-many-brokers-aaaa"
_OF_TOPIC: Final = 100
"""The number of partitions of each topic."""
_REPLICAS: Final = 3
_UNKNOWN_TOPIC: Final = 3
_VOLUME: Final = 20 * 10**12
_REQUESTS: Final[Mapping[int, Any]] = {
    of.API_KEY: of
    for of in (
        ApiVersionsRequest,
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeLogDirsRequest,
        ListOffsetsRequest,
        ListPartitionReassignmentsRequest,
        MetadataRequest,
    )
}


class ManyBrokers:
    """The cluster and its answers to requests."""

    def __init__(self, brokers: int, partitions: int) -> None:
        self.ports: list[int] = []
        self._brokers = brokers
        self._partitions = partitions
        self._held: list[dict[str, list[int]]] = [{} for _ in range(brokers)]
        for number in range(partitions):
            for broker in self._replicas(number):
                self._held[broker].setdefault(_topic(number), []).append(number % _OF_TOPIC)
        self._known: dict[tuple[int, int, int, bytes], bytes] = {}
        self._answers: Mapping[int, Callable[[int, Any], Any]] = {
            ApiVersionsRequest.API_KEY: self._versions,
            DescribeClusterRequest.API_KEY: self._cluster,
            DescribeConfigsRequest.API_KEY: self._configs,
            DescribeLogDirsRequest.API_KEY: self._log_dirs,
            ListOffsetsRequest.API_KEY: self._offsets,
            ListPartitionReassignmentsRequest.API_KEY: lambda *_: ListPartitionReassignmentsResponse(topics=[]),
            MetadataRequest.API_KEY: self._metadata,
        }

    def answer(self, broker: int, frame: bytes) -> bytes:
        """Return the answer of one broker, which begins with its length. `frame` is a request without its length."""
        key, version, correlation, length = struct.unpack_from(">hhih", frame)
        request = _REQUESTS[key]
        start = 10 + max(0, length) + (1 if request.flexible_version_q(version) else 0)
        asked = (broker, key, version, frame[start:])
        if asked not in self._known:
            found = self._answers[key](broker, request.decode(frame[start:], version=version))
            found.API_VERSION = version
            found.with_header(correlation_id=0)
            self._known[asked] = found.encode(header=True)[4:]
        rest = self._known[asked]
        return struct.pack(">ii", len(rest) + 4, correlation) + rest

    def _replicas(self, number: int) -> tuple[int, ...]:
        stride = 1 + number // self._brokers % (self._brokers // _REPLICAS)
        return tuple((number + n * stride) % self._brokers for n in range(_REPLICAS))

    def _versions(self, _broker: int, _request: Any) -> Any:
        version = ApiVersionsResponse.ApiVersion
        return ApiVersionsResponse(
            api_keys=[version(api_key=k, min_version=0, max_version=of.max_version) for k, of in _REQUESTS.items()]
        )

    def _cluster(self, _broker: int, _request: Any) -> Any:
        return DescribeClusterResponse(
            cluster_id=_CLUSTER,
            controller_id=0,
            endpoint_type=1,
            brokers=[
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=n, host="127.0.0.1", port=port, rack=f"rack-{n % _REPLICAS}", is_fenced=False
                )
                for n, port in enumerate(self.ports)
            ],
        )

    def _configs(self, _broker: int, request: Any) -> Any:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResponse.DescribeConfigsResult(
                    resource_type=one.resource_type, resource_name=one.resource_name, configs=[]
                )
                for one in request.resources
            ]
        )

    def _log_dirs(self, broker: int, request: Any) -> Any:
        result = DescribeLogDirsResponse.DescribeLogDirsResult
        topic, state = result.DescribeLogDirsTopic, result.DescribeLogDirsTopic.DescribeLogDirsPartition
        held = self._held[broker] if request.topics is None else {}
        topics = [
            topic(
                name=name,
                partitions=[
                    state(partition_index=n, partition_size=_size(name, n), offset_lag=0, is_future_key=False)
                    for n in numbers
                ],
            )
            for name, numbers in held.items()
        ]
        return DescribeLogDirsResponse(
            results=[result(log_dir="/data", topics=topics, total_bytes=_VOLUME, usable_bytes=_VOLUME // 2)]
        )

    def _offsets(self, _broker: int, request: Any) -> Any:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        state = topic.ListOffsetsPartitionResponse
        return ListOffsetsResponse(
            topics=[
                topic(
                    name=asked.name,
                    partitions=[
                        state(
                            partition_index=one.partition_index,
                            offset=_size(asked.name, one.partition_index) // 1_000 if one.timestamp == -1 else 0,
                        )
                        for one in asked.partitions
                    ],
                )
                for asked in request.topics
            ]
        )

    def _metadata(self, _broker: int, request: Any) -> Any:
        broker = MetadataResponse.MetadataResponseBroker
        wanted = None if request.topics is None else {topic.name for topic in request.topics}
        topics: dict[str, list[Any]] = {}
        for number in range(self._partitions if wanted is None or wanted else 0):
            if wanted is None or _topic(number) in wanted:
                topics.setdefault(_topic(number), []).append(self._state(number))
        named = MetadataResponse.MetadataResponseTopic
        absent = [] if wanted is None else sorted(wanted - topics.keys())
        return MetadataResponse(
            brokers=[
                broker(node_id=n, host="127.0.0.1", port=port, rack=f"rack-{n % _REPLICAS}")
                for n, port in enumerate(self.ports)
            ],
            cluster_id=_CLUSTER,
            controller_id=0,
            topics=[named(name=name, partitions=states) for name, states in topics.items()]
            + [named(name=name, error_code=_UNKNOWN_TOPIC, partitions=[]) for name in absent],
        )

    def _state(self, number: int) -> Any:
        replicas = list(self._replicas(number))
        return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
            partition_index=number % _OF_TOPIC,
            leader_id=replicas[0],
            leader_epoch=1,
            replica_nodes=replicas,
            isr_nodes=replicas,
            offline_replicas=[],
        )


def _topic(number: int) -> str:
    return f"topic-{number // _OF_TOPIC:05d}"


def _size(topic: str, partition: int) -> int:
    return (int(topic[-5:]) * 7_919 + partition * 104_729) % 10**6 * 10**5


async def _serve(cluster: ManyBrokers, brokers: int) -> None:
    async def talk(broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                writer.write(cluster.answer(broker, await reader.readexactly(size)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    for n in range(brokers):
        server = await asyncio.start_server(partial(talk, n), "127.0.0.1", 0, limit=2**24)
        cluster.ports.append(server.sockets[0].getsockname()[1])
    print(f"127.0.0.1:{cluster.ports[0]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


@contextmanager
def many_brokers(brokers: int, partitions: int) -> Iterator[str]:
    """Run the cluster in a separate process, and yield its bootstrap address."""
    command = [sys.executable, "-m", "bench.many_brokers", str(brokers), str(partitions)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_serve(ManyBrokers(int(sys.argv[1]), int(sys.argv[2])), int(sys.argv[1])))
