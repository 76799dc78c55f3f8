"""The Elections port on the Admin API, since Kafka 2.4: metadata, reassignments (KIP-455) and ElectLeaders
(KIP-460).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka.protocol.admin.topics import ElectLeadersRequest

from kquota.election.port import ElectionType
from kquota.errors import Refused, Unreachable
from kquota.mutation.port import Failure
from kquota.mutation.topic import Partition
from kquota.stores.admin.connection import ALTER, Wire, advice_on_rights, kafka_error
from kquota.stores.admin.permissions import must_show
from kquota.stores.admin.running import ask_controller, moving
from kquota.stores.admin.topics import failure, partition_state
from kquota.stores.admin.wire_format import numbers_by_topic
from kquota.terms import MAYBE_WRITTEN, TopicPartition

_UNMENTIONED = Failure(code=-1, reason="the broker's answer does not mention the partition. Check its leader")


class WireElections:
    """The leaders of a cluster and their elections, through its brokers. Implements `Elections`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def partitions(self) -> Mapping[TopicPartition, Partition]:
        # Read the moves before the partitions. Otherwise, a replica of a move that ends in between looks out of sync.
        running = moving(self._wire)
        found = {
            TopicPartition(topic.name, state.partition_index): state
            for topic in self._wire.metadata(None).topics
            if not topic.error_code
            for state in topic.partitions
        }
        return {name: partition_state(state, running.get(name)) for name, state in sorted(found.items())}

    def must_show(self, topics: Collection[str]) -> None:
        must_show(self._wire, topics)

    def elect(
        self, kind: ElectionType, partitions: Collection[TopicPartition], seconds: float
    ) -> Mapping[TopicPartition, Failure | None]:
        request = ElectLeadersRequest(
            election_type=kind.value,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in numbers_by_topic(sorted(partitions)).items()
            ],
            timeout_ms=int(seconds * 1_000),
        )
        answer = ask_controller(self._wire, request)
        if answer.error_code:
            words = f"leader election: the broker answered {kafka_error(answer.error_code, None)}"
            words += advice_on_rights(answer.error_code, ALTER)
            raise Unreachable(words) if answer.error_code in MAYBE_WRITTEN else Refused(words)
        found = {
            TopicPartition(topic.topic, one.partition_id): failure(one)
            for topic in answer.replica_election_results
            for one in topic.partition_result
        }
        return {name: found.get(name, _UNMENTIONED) for name in partitions}
