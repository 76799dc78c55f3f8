"""kquota's codec of ListOffsets reads and writes the same bytes as kafka-python."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.frame import KafkaBytes

from kquota.stores.admin import offsets
from kquota.stores.admin.offsets import EARLIEST_LOCAL, LATEST, PENDING, OffsetsAnswer

VERSIONS = (6, 7, 8, 9, 10, 11)
NAMES = st.text(alphabet="aé-_.", min_size=1, max_size=200)
NUMBERS = st.integers(0, 2**31 - 1)
ASKED = st.dictionaries(NAMES, st.lists(NUMBERS, max_size=200), max_size=5)
ENTRIES = st.tuples(NUMBERS, st.integers(-1, 130), st.integers(-1, 2**62), st.integers(-1, 2**62), st.integers(-1, 9))
ANSWERS = st.dictionaries(NAMES, st.lists(ENTRIES, max_size=200, unique_by=lambda entry: entry[0]), max_size=5)


@given(st.sampled_from(VERSIONS), ASKED, st.sampled_from([LATEST, EARLIEST_LOCAL, PENDING]), st.sampled_from([-1, -2]))
def test_a_request_has_the_bytes_of_kafka_pythons(
    version: int, asked: dict[str, list[int]], timestamp: int, replica_id: int
) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic
    theirs = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=0,
        timeout_ms=30_000,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartition(partition_index=n, current_leader_epoch=-1, timestamp=timestamp)
                    for n in numbers
                ],
            )
            for name, numbers in asked.items()
        ],
    )
    ours = offsets.ListOffsetsRequest.of(asked, timestamp, replica_id)
    for each in (ours, theirs):
        each.API_VERSION = version
        each.with_header(7, "kquota")
    assert ours.encode(header=True, framed=True) == theirs.encode(header=True, framed=True)


def answered(version: int, topics: dict[str, list[tuple[int, int, int, int, int]]]) -> bytes:
    """The bytes after the header."""
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    names = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    answer = ListOffsetsResponse(
        throttle_time_ms=250,
        topics=[
            topic(
                name=name,
                partitions=[topic.ListOffsetsPartitionResponse(**dict(zip(names, e, strict=True))) for e in entries],
            )
            for name, entries in topics.items()
        ],
    )
    answer.API_VERSION = version
    return bytes(answer.encode())


def decoded(version: int, data: bytes) -> OffsetsAnswer:
    buffer = KafkaBytes(len(data))
    buffer.write(data)
    buffer.seek(0)
    asked: Any = offsets.ListOffsetsRequest([], LATEST, -1)
    asked.API_VERSION = version
    asked.with_header(7, "kquota")
    found = asked.header.get_response_class().decode(buffer)
    assert isinstance(found, OffsetsAnswer)
    return found


@given(st.sampled_from(VERSIONS), ANSWERS)
def test_an_answer_has_the_offsets_that_kafka_python_wrote(
    version: int, topics: dict[str, list[tuple[int, int, int, int, int]]]
) -> None:
    found = decoded(version, answered(version, topics))
    known = {
        name: {number: offset for number, error, _, offset, _ in entries if error == 0 and offset >= 0}
        for name, entries in topics.items()
    }
    assert found == OffsetsAnswer(throttle_time_ms=250, offsets=known)


@pytest.mark.parametrize("version", [6, 8])
def test_a_truncated_answer_is_an_error_that_kafka_python_reports(version: int) -> None:
    data = answered(version, {"t": [(0, 0, -1, 5, 1), (1, 0, -1, 6, 1)]})
    for length in range(len(data) - 1):
        with pytest.raises((ValueError, struct.error)):
            decoded(version, data[:length])


def test_tagged_fields_of_an_entry_are_refused() -> None:
    data = bytearray(answered(8, {"t": [(0, 0, -1, 5, 1)]}))
    data[-3] = 1  # the tagged fields of the entry, of the topic and of the answer end it
    with pytest.raises(ValueError, match="tagged fields"):
        decoded(8, bytes(data))


@pytest.mark.parametrize(
    ("timestamp", "versions"), [(LATEST, (6, None)), (EARLIEST_LOCAL, (8, None)), (PENDING, (11, None))]
)
def test_the_versions_that_a_timestamp_needs(timestamp: int, versions: tuple[int, int | None]) -> None:
    asked = offsets.ListOffsetsRequest([], timestamp, -1)
    assert (asked._min_version, asked._max_version) == versions


def test_errors_name_the_request_of_the_protocol() -> None:
    assert offsets.ListOffsetsRequest.__name__ == ListOffsetsRequest.__name__
