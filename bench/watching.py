"""The CPU time of a reading of `move watch` in a cluster of 100,000 partitions, including the decoding of answers.

`python -m bench.watching N` prints the seconds of each reading while N partitions move, spread over all topics.
"""

from __future__ import annotations

import gc
import io
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

from kafka.cluster import ClusterMetadata
from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafka.protocol.admin.configs import DescribeConfigsResponse
from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse
from kafka.protocol.consumer import ListOffsetsRequest as ListOffsets
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from kquota.cli.clock import SystemClock
from kquota.reassign.moves import PartitionReplicas, list_entries, moves
from kquota.reassign.plan import Plan
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.stores.admin.offsets import ListOffsetsRequest
from kquota.stores.admin.partition_states import PartitionStatesRequest
from kquota.stores.admin.replica_logs import LogSizesRequest, WireReplicaLogs
from kquota.stores.admin.running import RunningMovesRequest
from kquota.terms import THROTTLE_LISTS, BrokerId, TopicPartition
from kquota.watch.observation import MoveWatch, WatchPorts, without_collections

BROKERS: Final = 100
TOPICS: Final = 1_000
EACH: Final = 100
READINGS: Final = 7
"""The number of readings. The watch reads all topics in the first reading, and again in one later reading (every 30 s).
"""
_RATE: Final = "50000000"
_OWN: Final = {2: 1, 4: 2}
"""The source of a value that is set on a topic or a broker, by the code of this kind of resource (KIP-226)."""


def main(moving: int) -> None:
    """Print the CPU seconds of each reading."""
    gc.set_threshold(200_000)  # like kquota's own main
    stage = _EncodedCluster(moving)
    clock = _SkippingClock()
    ports = WatchPorts(cluster=WireMoves(stage), runs=_NoRuns(), logs=WireReplicaLogs(stage), clock=clock)  # type: ignore[arg-type]
    watch = MoveWatch(ports, plan=Plan(targets=stage.targets))
    costs: dict[str, list[float]] = {"first": [], "reading": [], "wide": []}
    for number in range(READINGS):
        began, stage.wide, stage.encoding = time.process_time(), False, 0.0
        watch.look()
        gc.collect(0)  # Python does it after the reading, which creates more objects than the threshold
        kind = "reading" if not stage.wide else "wide" if number else "first"
        costs[kind].append(round(time.process_time() - began - stage.encoding, 3))
        clock.skipped += 5.5
        stage.go_on()
    print(json.dumps(costs))


class _NoRuns:
    """A record without runs."""

    def unfinished(self) -> tuple[()]:
        return ()


class _SkippingClock(SystemClock):
    """A clock that moves only between two readings, so that a busy machine changes no reading."""

    skipped: float = 0.0

    def monotonic(self) -> float:
        return self.skipped


class _EncodedCluster(Wire):
    """A connection whose brokers answer at once, with the bytes of real answers.

    Between two readings every log grows, and a few moves end. `encoding` are the CPU seconds of the answers since it
    was reset, which a real cluster spends elsewhere.
    """

    def __init__(self, moving: int) -> None:
        names = [TopicPartition(f"topic-{n:04d}", p) for n in range(TOPICS) for p in range(EACH)]
        step = len(names) // moving
        self._held = {name: [(n + k) % BROKERS for k in range(3)] for n, name in enumerate(names)}
        self.targets = {
            name: tuple(BrokerId((b + 50) % BROKERS if k == 2 else b) for k, b in enumerate(self._held[name]))
            for name in names[::step][:moving]
        }
        before = {n: PartitionReplicas(replicas=tuple(map(BrokerId, self._held[n]))) for n in self.targets}
        planned = moves(Plan(targets=self.targets), before)
        self._lists: dict[str, dict[str, str]] = {key: {} for key in THROTTLE_LISTS}
        for setting, listed in list_entries(planned).items():
            self._lists[setting.key][setting.name] = ",".join(listed)
        self._running = dict(self.targets)
        self._grown = 0
        self._manager: Any = SimpleNamespace(cluster=ClusterMetadata(bootstrap_servers="broker"))
        self.wide = False
        self.encoding = 0.0

    def go_on(self) -> None:
        """Let every log grow, and every thousandth move end, each in another topic."""
        self._grown += 1
        for name in list(self._running)[:: max(1, len(self._running) // max(1, len(self.targets) // 1_000))]:
            self._held[name] = list(self._running.pop(name))

    def ask(self, request: Any, *_: object) -> Any:
        return self._answered(request)

    def read(self, request: Any, *_: object, **__: object) -> Any:
        return self._answered(request)

    def ask_each(self, requests: Mapping[BrokerId, Any], *_: object) -> dict[BrokerId, Any]:
        return {broker: self._answered(request) for broker, request in requests.items()}

    def _answered(self, request: Any) -> Any:
        """Return the decoded answer, after the steps of kafka-python."""
        began = time.process_time()
        with without_collections():  # because a real process does not create the objects of the encoder
            version, data = self._encoded(request)
        self.encoding += time.process_time() - began
        request.API_VERSION = version
        request.with_header()
        request.encode(header=True, framed=True)
        return request.header.get_response_class().decode(io.BytesIO(data))

    def _encoded(self, request: Any) -> tuple[int, bytes]:
        """Return the version and the bytes of the answer."""
        match request:
            case PartitionStatesRequest():
                self.wide |= request.topics is None
                every = [f"topic-{n:04d}" for n in range(TOPICS)]
                return 13, self._encoded_metadata(
                    every if request.topics is None else [topic.name for topic in request.topics]
                )
            case RunningMovesRequest():
                return 0, self._encoded_moves()
            case LogSizesRequest():
                return 4, self._encoded_sizes(_decoded(DescribeLogDirsRequest, request, version=4).topics)
            case ListOffsetsRequest():
                return 9, self._encoded_offsets(_decoded(ListOffsets, request, version=9).topics)
            case _:
                return 4, self._encoded_configs(request)

    def _replicas(self, name: TopicPartition) -> list[int]:
        held = self._held[name]
        return [*held, *(b for b in self._running.get(name, ()) if b not in held)]

    def _encoded_configs(self, request: Any) -> bytes:
        result = DescribeConfigsResponse.DescribeConfigsResult
        entry = result.DescribeConfigsResourceResult
        fixed = {"read_only": False, "is_sensitive": False, "synonyms": [], "config_type": 0, "documentation": None}
        results = [
            result(
                error_code=0,
                error_message=None,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
                configs=[
                    entry(
                        name=key,
                        value=self._lists[key].get(one.resource_name, "") if key in self._lists else _RATE,
                        config_source=_OWN[one.resource_type],
                        **fixed,
                    )
                    for key in one.configuration_keys
                ],
            )
            for one in request.resources
        ]
        return bytes(DescribeConfigsResponse(throttle_time_ms=0, results=results).encode(version=4))

    def _encoded_metadata(self, topics: list[str]) -> bytes:
        topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
        partition = topic.MetadataResponsePartition
        described = [
            topic(
                error_code=0,
                name=name,
                topic_id=UUID(int=int(name[-4:]) + 1),
                is_internal=False,
                partitions=[
                    partition(
                        error_code=0,
                        partition_index=p,
                        leader_id=self._held[TopicPartition(name, p)][0],
                        leader_epoch=1,
                        replica_nodes=self._replicas(TopicPartition(name, p)),
                        isr_nodes=self._held[TopicPartition(name, p)],
                        offline_replicas=[],
                    )
                    for p in range(EACH)
                ],
            )
            for name in topics
        ]
        nodes = [broker(node_id=b, host="broker", port=9092, rack=f"rack-{b % 3}") for b in range(BROKERS)]
        answer = MetadataResponse(
            throttle_time_ms=0, brokers=nodes, cluster_id="bench", controller_id=0, topics=described
        )
        return bytes(answer.encode(version=13))

    def _encoded_moves(self) -> bytes:
        topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
        partition = topic.OngoingPartitionReassignment
        topics: defaultdict[str, list[Any]] = defaultdict(list)
        for name, target in self._running.items():
            held = self._held[name]
            topics[name.topic].append(
                partition(
                    partition_index=name.partition,
                    replicas=self._replicas(name),
                    adding_replicas=[b for b in target if b not in held],
                    removing_replicas=[b for b in held if b not in target],
                )
            )
        answer = ListPartitionReassignmentsResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            topics=[topic(name=name, partitions=those) for name, those in topics.items()],
        )
        return bytes(answer.encode(version=0))

    def _encoded_sizes(self, asked: Iterable[Any]) -> bytes:
        result = DescribeLogDirsResponse.DescribeLogDirsResult
        topic = result.DescribeLogDirsTopic
        partition = topic.DescribeLogDirsPartition
        topics = [
            topic(
                name=one.topic,
                partitions=[
                    partition(
                        partition_index=p,
                        partition_size=10**9 + p + self._grown * 10**6,
                        offset_lag=0,
                        is_future_key=False,
                    )
                    for p in one.partitions
                ],
            )
            for one in asked
        ]
        answer = DescribeLogDirsResponse(
            throttle_time_ms=0,
            error_code=0,
            results=[result(error_code=0, log_dir="/data", topics=topics, total_bytes=10**13, usable_bytes=10**13)],
        )
        return bytes(answer.encode(version=4))

    def _encoded_offsets(self, asked: Iterable[Any]) -> bytes:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        partition = topic.ListOffsetsPartitionResponse
        offset = 10**6 + self._grown * 10**3
        topics = [
            topic(
                name=one.name,
                partitions=[
                    partition(
                        partition_index=p.partition_index,
                        error_code=0,
                        timestamp=-1,
                        offset=offset + p.partition_index,
                        leader_epoch=1,
                    )
                    for p in one.partitions
                ],
            )
            for one in asked
        ]
        return bytes(ListOffsetsResponse(throttle_time_ms=0, topics=topics).encode(version=9))


def _decoded(kind: Any, request: Any, version: int) -> Any:
    """Return kquota's request as kafka-python reads it."""
    request.API_VERSION = version
    return kind.decode(request.body(), version=version)


if __name__ == "__main__":
    main(int(sys.argv[1]))
