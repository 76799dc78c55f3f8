"""kquota's decoders of Metadata, ListPartitionReassignments and DescribeLogDirs find the values of kafka-python."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.metadata import MetadataResponse

from kquota.reassign.moves import PartitionReplicas
from kquota.stores.admin.partition_states import PartitionStates, PartitionStatesRequest, topic_states
from kquota.stores.admin.replica_logs import LogSizes, LogSizesRequest, sizes_of
from kquota.stores.admin.running import RunningMoves, RunningMovesRequest, moving_topics
from kquota.stores.admin.wire_format import printed_id
from kquota.terms import TopicPartition
from tests.fuzz.limit import SPREAD

METADATA = (9, 10, 11, 12, 13)
LOG_DIRS = (2, 3, 4)
NAMES = st.text(alphabet="aé-_.", min_size=1, max_size=20)
NUMBERS = st.integers(0, 2**31 - 1)
LONG = 200
"""A length of more than one byte as a varint."""
BROKERS = st.lists(NUMBERS, max_size=4)
TEXTS = st.none() | NAMES

_Described = MetadataResponse.MetadataResponseTopic
_Moving = ListPartitionReassignmentsResponse.OngoingTopicReassignment
_Dir = DescribeLogDirsResponse.DescribeLogDirsResult


def decoded(request: Any, version: int, data: bytes) -> Any:
    """Decode the bytes after the header, as kafka-python's parser does."""
    buffer = KafkaBytes(len(data))
    buffer.write(data)
    buffer.seek(0)
    request.API_VERSION = version
    request.with_header(7, "kquota")
    return request.header.get_response_class().decode(buffer)


PARTITIONS = st.builds(
    _Described.MetadataResponsePartition,
    error_code=st.integers(0, 9),
    partition_index=NUMBERS,
    leader_id=st.integers(-1, 9),
    leader_epoch=st.integers(-1, 9),
    replica_nodes=BROKERS,
    isr_nodes=BROKERS,
    offline_replicas=BROKERS,
)
TOPICS = st.builds(
    _Described,
    error_code=st.sampled_from([0, 3, 5]),
    name=NAMES,
    topic_id=st.uuids() | st.just(UUID(int=0)),
    is_internal=st.booleans(),
    partitions=st.lists(PARTITIONS, max_size=3, unique_by=lambda one: one.partition_index),
)
METADATA_ANSWERS = st.builds(
    MetadataResponse,
    throttle_time_ms=NUMBERS,
    brokers=st.lists(
        st.builds(MetadataResponse.MetadataResponseBroker, node_id=NUMBERS, host=NAMES, port=NUMBERS, rack=TEXTS),
        max_size=3,
    ),
    cluster_id=TEXTS,
    controller_id=st.integers(-1, 9),
    topics=st.lists(TOPICS, max_size=3, unique_by=lambda one: one.name),
)


def states(version: int, data: bytes, cache: Any = None) -> PartitionStates:
    found = decoded(PartitionStatesRequest(None, topic_states() if cache is None else cache), version, data)
    assert isinstance(found, PartitionStates)
    return found


def must_match(found: PartitionStates, theirs: Any, version: int) -> None:
    assert (found.throttle_time_ms, found.cluster.controller_id) == (theirs.throttle_time_ms, theirs.controller_id)
    assert [list(broker) for broker in found.cluster.brokers] == [list(broker) for broker in theirs.brokers]
    assert found.cluster.cluster_id == theirs.cluster_id
    assert [(one.name, one.error_code) for one in found.topics] == [(one.name, one.error_code) for one in theirs.topics]
    for ours, topic in zip(found.topics, theirs.topics, strict=True):
        assert ours.id == (printed_id(topic.topic_id) if version >= 10 else None)
        assert list(ours.partitions.items()) == [
            (
                TopicPartition(topic.name, one.partition_index),
                PartitionReplicas(
                    replicas=tuple(one.replica_nodes),
                    leader=None if one.leader_id < 0 else one.leader_id,
                    isr=tuple(one.isr_nodes),
                ),
            )
            for one in sorted(topic.partitions, key=lambda one: one.partition_index)
        ]


@given(st.sampled_from(METADATA), METADATA_ANSWERS)
def test_the_partitions_are_those_of_kafka_python(version: int, answer: Any) -> None:
    data = bytes(answer.encode(version=version))
    must_match(states(version, data), MetadataResponse.decode(data, version=version), version)


@given(st.sampled_from(METADATA), st.sampled_from(METADATA), METADATA_ANSWERS, METADATA_ANSWERS, st.data())
def test_topics_of_earlier_answers_do_not_change_the_result(
    first: int, second: int, before: Any, after: Any, data: st.DataObject
) -> None:
    """Some topics of the second answer are those of the first one. Its broker can have another release."""
    kept = data.draw(st.lists(st.sampled_from(before.topics), unique_by=id) if before.topics else st.just([]))
    names = {topic.name for topic in kept}
    after.topics = data.draw(st.permutations([*kept, *(one for one in after.topics if one.name not in names)]))
    cache = topic_states()
    states(first, bytes(before.encode(version=first)), cache)
    encoded = bytes(after.encode(version=second))
    must_match(states(second, encoded, cache), MetadataResponse.decode(encoded, version=second), second)


def described(name: str, partitions: int) -> Any:
    return _Described(
        error_code=0,
        name=name,
        is_internal=False,
        partitions=[
            _Described.MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=1,
                leader_epoch=1,
                replica_nodes=list(range(LONG)),
                isr_nodes=[1],
                offline_replicas=[],
            )
            for number in range(partitions)
        ],
    )


def test_an_unchanged_topic_is_the_same_object() -> None:
    answer = MetadataResponse(throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1)
    cache = topic_states()
    answer.topics = [described("a" * LONG, LONG), described("b", 2)]
    before = states(9, bytes(answer.encode(version=9)), cache)
    must_match(before, answer, 9)
    answer.topics[1] = described("b", 1)
    after = states(9, bytes(answer.encode(version=9)), cache)
    assert after.topics[0] is before.topics[0]
    must_match(after, answer, 9)


def test_partitions_take_memory_in_proportion_to_their_bytes() -> None:
    """Brokers are the same in many partitions, as in every cluster. Other threads only add to a peak, so the lowest of
    three counts.
    """
    answer = MetadataResponse(throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=1)
    answer.topics = [described(f"topic-{number}", 100) for number in range(20)]
    for number, one in enumerate(one for topic in answer.topics for one in topic.partitions):
        one.replica_nodes = one.isr_nodes = [(number + k) % 100 for k in range(3)]
    data = bytes(answer.encode(version=12))
    peaks = []
    for _ in range(3):
        cache = topic_states()
        tracemalloc.start()
        try:
            found = states(12, data, cache)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len(found.topics) == 20
    assert min(peaks) <= SPREAD * len(data) + 50_000


MOVES = st.builds(
    ListPartitionReassignmentsResponse,
    throttle_time_ms=NUMBERS,
    error_code=st.sampled_from([0, 41]),
    error_message=TEXTS,
    topics=st.lists(
        st.builds(
            _Moving,
            name=NAMES,
            partitions=st.lists(
                st.builds(
                    _Moving.OngoingPartitionReassignment,
                    partition_index=NUMBERS,
                    replicas=BROKERS,
                    adding_replicas=BROKERS,
                    removing_replicas=BROKERS,
                ),
                max_size=3,
                unique_by=lambda one: one.partition_index,
            ),
        ),
        max_size=3,
        unique_by=lambda one: one.name,
    ),
)


@given(MOVES)
def test_the_moves_are_those_of_kafka_python(answer: Any) -> None:
    data = bytes(answer.encode(version=0))
    theirs = ListPartitionReassignmentsResponse.decode(data, version=0)
    found = decoded(RunningMovesRequest(moving_topics()), 0, data)
    assert isinstance(found, RunningMoves)
    assert found.throttle_time_ms == theirs.throttle_time_ms
    assert (found.error_code, found.error_message) == (theirs.error_code, theirs.error_message)
    assert [(one.name, list(one.partitions.items())) for one in found.topics] == [
        (
            topic.name,
            [
                (
                    TopicPartition(topic.name, one.partition_index),
                    PartitionReplicas(
                        replicas=tuple(one.replicas),
                        adding=tuple(one.adding_replicas),
                        removing=tuple(one.removing_replicas),
                    ),
                )
                for one in sorted(topic.partitions, key=lambda one: one.partition_index)
            ],
        )
        for topic in theirs.topics
    ]


SIZES = st.builds(
    DescribeLogDirsResponse,
    throttle_time_ms=NUMBERS,
    error_code=st.sampled_from([0, 31]),
    results=st.lists(
        st.builds(
            _Dir,
            error_code=st.sampled_from([0, 56]),
            log_dir=NAMES,
            topics=st.lists(
                st.builds(
                    _Dir.DescribeLogDirsTopic,
                    name=NAMES,
                    partitions=st.lists(
                        st.builds(
                            _Dir.DescribeLogDirsTopic.DescribeLogDirsPartition,
                            partition_index=NUMBERS,
                            partition_size=st.integers(-1, 2**62),
                            offset_lag=st.integers(-1, 2**62),
                            is_future_key=st.booleans(),
                        ),
                        max_size=3,
                    ),
                ),
                max_size=3,
            ),
            total_bytes=st.integers(-1, 2**62),
            usable_bytes=st.integers(-1, 2**62),
        ),
        max_size=3,
    ),
)


@given(st.sampled_from(LOG_DIRS), SIZES)
def test_the_sizes_are_those_of_kafka_python(version: int, answer: Any) -> None:
    data = bytes(answer.encode(version=version))
    theirs = DescribeLogDirsResponse.decode(data, version=version)
    found = decoded(LogSizesRequest([]), version, data)
    assert isinstance(found, LogSizes)
    assert (found.throttle_time_ms, found.error_code) == (theirs.throttle_time_ms, theirs.error_code or 0)
    ours = [
        (one.path, one.error_code, one.usable, [(topic, list(entries)) for topic, entries in one.topics])
        for one in found.results
    ]
    assert ours == [
        (
            one.log_dir,
            one.error_code,
            one.usable_bytes if version >= 4 else None,
            [
                (t.name, [(p.partition_index, p.partition_size, p.is_future_key) for p in t.partitions])
                for t in one.topics
            ],
        )
        for one in theirs.results
    ]


@given(st.sampled_from(LOG_DIRS), st.dictionaries(NAMES, st.lists(NUMBERS, max_size=200), max_size=5))
def test_a_request_for_sizes_has_the_bytes_of_kafka_pythons(version: int, asked: Mapping[str, list[int]]) -> None:
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    theirs = DescribeLogDirsRequest(topics=[topic(topic=name, partitions=those) for name, those in asked.items()])
    ours: Any = LogSizesRequest([sizes_of(topic, those) for topic, those in asked.items()])
    for each in (ours, theirs):
        each.API_VERSION = version
        each.with_header(7, "kquota")
    assert ours.encode(header=True, framed=True) == theirs.encode(header=True, framed=True)


ANSWERS: Mapping[str, tuple[Any, int, st.SearchStrategy[Any]]] = {
    "partitions": (lambda: PartitionStatesRequest(None, topic_states()), 12, METADATA_ANSWERS),
    "moves": (RunningMovesRequest, 0, MOVES),
    "sizes": (lambda: LogSizesRequest([]), 4, SIZES),
}


@pytest.mark.parametrize("kind", ANSWERS)
@given(data=st.data())
def test_a_malformed_answer_is_an_error_that_kafka_python_reports(kind: str, data: st.DataObject) -> None:
    """The answer is cut, a byte of it has another value, or it consists of random bytes."""
    request, version, answers = ANSWERS[kind]
    answer = bytearray(bytes(data.draw(answers).encode(version=version)))
    match data.draw(st.sampled_from(["cut", "changed", "random"])):
        case "cut":
            del answer[data.draw(st.integers(0, len(answer) - 1)) :]
        case "changed":
            answer[data.draw(st.integers(0, len(answer) - 1))] = data.draw(st.integers(0, 255))
        case _:
            answer = bytearray(data.draw(st.binary(max_size=200)))
    with contextlib.suppress(ValueError, struct.error):
        decoded(request(), version, bytes(answer))
