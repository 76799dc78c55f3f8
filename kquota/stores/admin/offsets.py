"""ListOffsets for many partitions of one broker: the request, and the offsets in its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.consumer import ListOffsetsRequest

from kquota.terms import TopicPartition

LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -4, -6
"""The timestamps with a meaning of their own. A broker answers each with an offset."""
CONSUMER: Final = -1
"""To a consumer, only the leader answers."""
DEBUGGING_REPLICA: Final = -2
"""The replica id with which a follower reports the offsets of its own log."""
_SINCE: Final = {EARLIEST_LOCAL: 8, PENDING: 11}
"""The versions that added these timestamps (KIP-405, KIP-1023)."""
_PLAIN: Final = (4, 5)
"""The last versions without tagged fields, which kafka-python encodes in a third of the time. All supported brokers
have them.
"""


def request(partitions: Mapping[str, Sequence[int]], timestamp: int, replica_id: int) -> Any:
    """Return the request for one offset of each partition. It has tuples in place of kafka-python's objects, which are
    slow to create.
    """
    oldest = _SINCE.get(timestamp)
    if oldest is None:
        topics: Any = [
            (topic, [(number, -1, timestamp) for number in numbers]) for topic, numbers in partitions.items()
        ]
        least, most = _PLAIN
        return ListOffsetsRequest(
            replica_id=replica_id, isolation_level=0, topics=topics, min_version=least, max_version=most
        )
    # The same entry for the same number in each topic.
    entries = {
        number: ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=number, current_leader_epoch=-1, timestamp=timestamp
        )
        for number in {number for numbers in partitions.values() for number in numbers}
    }
    topics = [(topic, [entries[number] for number in numbers]) for topic, numbers in partitions.items()]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=0, topics=topics, min_version=oldest)


def offsets(answer: Any) -> Iterator[tuple[TopicPartition, int]]:
    """Yield the offsets in an answer. A partition without an offset is absent."""
    for topic in answer.topics:
        name = topic.name
        for state in topic.partitions:
            if state.error_code == 0 and state.offset >= 0:
                yield TopicPartition(name, state.partition_index), state.offset
