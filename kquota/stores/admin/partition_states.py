"""Metadata of many partitions: a decoder for answers of the flexible versions, from 9 (Kafka 2.4)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.metadata import MetadataResponse as _Answer

from kquota.reassign.moves import PartitionReplicas
from kquota.stores.admin.wire_format import (
    INT16,
    INT32,
    OwnAnswer,
    TopicCache,
    after_tags,
    broker_ids,
    compact,
    exactly,
    optional_text,
    printed_id,
    read_text,
)
from kquota.terms import BrokerId, TopicPartition

_OLDEST: Final = 9
_WITH_TOPIC_ID: Final = 10
_ENTRY: Final = struct.Struct(">hiii")
"""The fields of a partition that have a fixed size: error code, partition, leader and leader epoch. Three arrays of
broker ids follow.
"""
_OPERATIONS: Final = 4
"""The size in bytes of the authorized operations at the end of a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStates:
    """The partitions of one topic, sorted by number, or the error code of the topic.

    `id` is None before Kafka 2.8, and if the topic does not exist.
    """

    name: str
    error_code: int
    id: str | None
    partitions: Mapping[TopicPartition, PartitionReplicas]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStates:
    """An answer to Metadata. `cluster` is kafka-python's MetadataResponse with the brokers, the cluster id and the
    controller, but without topics.

    `throttle_time_ms` is the time that the client must wait (KIP-219).
    """

    throttle_time_ms: int
    cluster: Any
    topics: list[TopicStates]


def topic_states() -> TopicCache[TopicStates]:
    """Return an empty cache for the answers to `PartitionStatesRequest`."""
    return TopicCache(_topic, name_at=INT16.size)


class PartitionStatesRequest(OwnAnswer, MetadataRequest, init=False):  # type: ignore[misc,call-arg]
    """A request for the partitions of `topics`, or of every topic (None). Its answer is `PartitionStates`."""

    RESPONSE = _Answer

    def __init__(self, topics: Collection[str] | None, cache: TopicCache[TopicStates]) -> None:
        named = None if topics is None else [self.MetadataRequestTopic(name=topic) for topic in topics]
        super().__init__(topics=named, allow_auto_topic_creation=False, min_version=_OLDEST)
        self._cache = cache

    def decoded(self, data: bytes) -> PartitionStates:
        cluster, at = _cluster(data)
        topics = self._cache.read(data, at, self.API_VERSION, complete=self.topics is None)
        return PartitionStates(throttle_time_ms=cluster.throttle_time_ms, cluster=cluster, topics=topics)


def _cluster(data: bytes) -> tuple[Any, int]:
    """Return the answer without its topics, and the position of the topics."""
    (throttled,) = INT32.unpack_from(data)
    count, at = compact(data, INT32.size)
    brokers = []
    for _ in range(count):
        (number,) = INT32.unpack_from(data, at)
        host, at = read_text(data, at + INT32.size)
        (port,) = INT32.unpack_from(data, at)
        rack, at = optional_text(data, at + INT32.size)
        at = after_tags(data, at)
        brokers.append(_Answer.MetadataResponseBroker(number, host, port, rack, version=_OLDEST))
    cluster_id, at = optional_text(data, at)
    (controller,) = INT32.unpack_from(data, at)
    return _Answer(throttled, brokers, cluster_id, controller, [], version=_OLDEST), at + INT32.size


def _topic(data: bytes, at: int, version: int) -> tuple[TopicStates, int]:
    (error,) = INT16.unpack_from(data, at)
    name, at = read_text(data, at + INT16.size)
    topic_id = None
    if version >= _WITH_TOPIC_ID:
        topic_id, at = printed_id(UUID(bytes=exactly(data, at, at + 16))), at + 16
    count, at = compact(data, at + 1)  # after the flag of internal topics
    partitions = {}
    for _ in range(count):
        _, number, leader, _ = _ENTRY.unpack_from(data, at)
        replicas, at = broker_ids(data, at + _ENTRY.size)
        in_sync, at = broker_ids(data, at)
        _, at = broker_ids(data, at)  # the offline replicas
        at = after_tags(data, at)
        partitions[TopicPartition(name, number)] = PartitionReplicas(
            replicas=replicas,
            leader=BrokerId(leader) if leader >= 0 else None,
            isr=in_sync,
        )
    found = TopicStates(name=name, error_code=error, id=topic_id, partitions=dict(sorted(partitions.items())))
    return found, after_tags(data, at + _OPERATIONS)
