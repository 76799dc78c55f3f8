"""The CPU time of a reading of `move watch` in a cluster of 100,000 partitions, with the decoding of all answers.

`python -m bench.watching N` prints the seconds of each reading while N partitions move, spread over all topics.
"""

from __future__ import annotations

import gc
import io
import json
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka.protocol.admin.cluster import DescribeLogDirsResponse
from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from kquota.cli.clock import SystemClock
from kquota.reassign.plan import Plan
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import LiveBroker
from kquota.stores.admin.moves import WireMoves
from kquota.stores.admin.replica_logs import WireReplicaLogs
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.observation import MoveWatch, WatchPorts

BROKERS: Final = 100
TOPICS: Final = 1_000
EACH: Final = 100
READINGS: Final = 7
"""A watch reads every topic in the first of them, and in one of the others (every 30 s)."""
_RATE: Final = "50000000"


def main(moving: int) -> None:
    """Prints the CPU seconds of each reading."""
    gc.set_threshold(100_000)  # like kquota's own main
    stage = _EncodedCluster(moving=moving)
    clock = _SkippingClock()
    cluster: Any = _Cluster(stage)  # type: ignore[arg-type]
    ports = WatchPorts(cluster=cluster, runs=_NoRuns(), logs=WireReplicaLogs(stage), clock=clock)  # type: ignore[arg-type]
    watch = MoveWatch(ports, plan=Plan(targets=stage.targets))
    costs: dict[str, list[float]] = {"reading": [], "wide": []}
    for number in range(READINGS):
        began, stage.wide = time.process_time(), False
        watch.look()
        costs["wide" if stage.wide or not number else "reading"].append(time.process_time() - began)
        clock.skipped += 5.5
    print(json.dumps(costs))


class _NoRuns:
    """A record without runs."""

    def unfinished(self) -> tuple[()]:
        return ()


class _SkippingClock(SystemClock):
    """A clock for which the time between two readings passes at once."""

    skipped: float = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.skipped


class _Cluster(WireMoves):
    """Answers with configs that need no decoding: kquota reads the lists only if the moves have changed."""

    def values(self, settings: Collection[Setting]) -> dict[Setting, str | None]:
        return {one: ",".join(f"{n}:{n % BROKERS}" for n in range(EACH)) if one.is_list else _RATE for one in settings}


@dataclass(kw_only=True)
class _EncodedCluster:
    """A connection whose brokers answer at once, with the bytes of real answers. It decodes them for each request."""

    moving: int
    wide: bool = False

    def __post_init__(self) -> None:
        names = [TopicPartition(f"topic-{n:04d}", p) for n in range(TOPICS) for p in range(EACH)]
        step = len(names) // self.moving
        self._held = {name: [(n + k) % BROKERS for k in range(3)] for n, name in enumerate(names)}
        self.targets = {
            name: tuple(BrokerId((b + 50) % BROKERS if k == 2 else b) for k, b in enumerate(self._held[name]))
            for name in names[::step][: self.moving]
        }
        self._moved_topics = {name.topic for name in self.targets}
        self._metadata = {
            True: self._encoded_metadata([f"topic-{n:04d}" for n in range(TOPICS)]),
            False: self._encoded_metadata(sorted(self._moved_topics)),
        }
        self._running = self._encoded_moves()
        self._sizes: dict[BrokerId, bytes] = {}
        self._offsets: dict[BrokerId, bytes] = {}

    @property
    def controller(self) -> BrokerId:
        return BrokerId(0)

    def brokers(self) -> dict[BrokerId, LiveBroker]:
        return {
            BrokerId(b): LiveBroker(id=BrokerId(b), host="broker", port=9092, rack=f"rack-{b % 3}")
            for b in range(BROKERS)
        }

    def metadata(self, topics: list[str] | None, *_: object) -> Any:
        every = topics is None
        self.wide |= every
        return MetadataResponse.decode(self._metadata[every], version=9)

    def ask(self, *_: object) -> Any:
        return ListPartitionReassignmentsResponse.decode(self._running, version=0)

    def ask_each(self, requests: Mapping[BrokerId, Any], *_: object) -> dict[BrokerId, Any]:
        found = {}
        for broker, request in requests.items():
            sizes = type(request).__name__.startswith("DescribeLogDirs")
            kept = self._sizes if sizes else self._offsets
            if broker not in kept:
                kept[broker] = (self._encoded_sizes if sizes else self._encoded_offsets)(request)
            request.API_VERSION = 2 if sizes else 5
            request.with_header()
            request.encode(header=True, framed=True)
            found[broker] = request.header.get_response_class().decode(io.BytesIO(kept[broker]))
        return found

    def _replicas(self, name: TopicPartition) -> list[int]:
        held = self._held[name]
        return [*held, *(b for b in self.targets.get(name, ()) if b not in held)]

    def _encoded_metadata(self, topics: list[str]) -> bytes:
        topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
        partition = topic.MetadataResponsePartition
        described = [
            topic(
                error_code=0,
                name=name,
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
        return bytes(answer.encode(version=9))

    def _encoded_moves(self) -> bytes:
        topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
        partition = topic.OngoingPartitionReassignment
        topics: defaultdict[str, list[Any]] = defaultdict(list)
        for name, target in self.targets.items():
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

    @staticmethod
    def _encoded_sizes(request: Any) -> bytes:
        result = DescribeLogDirsResponse.DescribeLogDirsResult
        topic = result.DescribeLogDirsTopic
        partition = topic.DescribeLogDirsPartition
        topics = [
            topic(
                name=one.topic,
                partitions=[
                    partition(partition_index=p, partition_size=10**9, offset_lag=0, is_future_key=False)
                    for p in one.partitions
                ],
            )
            for one in request.topics
        ]
        answer = DescribeLogDirsResponse(
            throttle_time_ms=0, results=[result(error_code=0, log_dir="/data", topics=topics)]
        )
        return bytes(answer.encode(version=2))

    @staticmethod
    def _encoded_offsets(request: Any) -> bytes:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        partition = topic.ListOffsetsPartitionResponse
        topics = [
            topic(
                name=name,
                partitions=[
                    partition(partition_index=p, error_code=0, timestamp=-1, offset=10**6, leader_epoch=1)
                    for p in numbers
                ],
            )
            for name, numbers in request.partitions.items()
        ]
        return bytes(ListOffsetsResponse(throttle_time_ms=0, topics=topics).encode(version=5))


if __name__ == "__main__":
    main(int(sys.argv[1]))
