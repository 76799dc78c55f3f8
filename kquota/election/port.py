"""The interface to the leaders of a cluster. `tests/election/contract.py` defines it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, Protocol

from kquota.mutation.port import Failure
from kquota.mutation.topic import Partition
from kquota.terms import TopicPartition

NOT_NEEDED: Final = 84
"""`ELECTION_NOT_NEEDED`: the partition does not need an election of this kind."""


class ElectionType(Enum):
    """The two elections of KIP-460, with their numbers in the request."""

    PREFERRED = 0
    """The first replica becomes the leader if it is in sync."""
    UNCLEAN = 1
    """An out-of-sync replica may become the leader of a partition without a leader, which can lose records."""


class Elections(Protocol):
    """The leaders of one cluster."""

    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """Return all partitions with their leader, replicas and in-sync replicas, sorted by topic and partition number.

        Raises Unreachable if no answer came, and Refused if the brokers refuse the request.
        """

    def must_show(self, topics: Collection[str]) -> None:
        """Raise Refused for a topic that Kafka hides from this user, because the topic may exist.

        For a topic that does not exist, raise nothing. Raises Unreachable if no answer came.
        """

    def elect(
        self, kind: ElectionType, partitions: Collection[TopicPartition], seconds: float
    ) -> Mapping[TopicPartition, Failure | None]:
        """Elect leaders with one request that has a timeout of `seconds`. A result of None means that the leader was
        elected.

        A partition that needs no election fails with `NOT_NEEDED`. Raises Unreachable if the results are unknown, for
        example because no answer came. Raises Refused if the brokers refuse the whole request, so no leader was
        elected.
        """
