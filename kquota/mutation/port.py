"""The interfaces to the cluster and the clock. `tests/mutation/contract.py` defines the interface to the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kquota.mutation.topic import Mutation, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The broker's error for one topic or partition: its `code`, and as `reason` its name and message."""

    code: int
    reason: str

    @property
    def rejected(self) -> bool:
        """True if the quota rejected the topic: `THROTTLING_QUOTA_EXCEEDED`."""
        return self.code == REJECTED


REJECTED = 89
EXISTS = 36
"""The code of `TOPIC_ALREADY_EXISTS`."""
MISSING = 3
"""The code of `UNKNOWN_TOPIC_OR_PARTITION`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The result of one request: for each topic its failure, or None for success. The broker mutes the connection for
    `throttle_time_ms`.
    """

    throttle_time_ms: int
    outcomes: Mapping[str, Failure | None]


class Topics(Protocol):
    """The topics of one cluster. Requests use a protocol version in which the controller rejects mutations over the
    quota, instead of delaying the client.
    """

    def must_have_controller(self) -> None:
        """Raise Unreachable if no controller of a KRaft cluster answers the brokers, because nothing can be written
        then.
        """

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        """Request mutations of one kind, with a timeout of `seconds`. A broker before 2.7 has no mutation quota, so it
        never rejects a topic because of a quota.

        Raises Unreachable if no answer came. The result is then unknown.
        """

    def topics(self, names: Collection[str] | None, *, detailed: bool = False) -> tuple[Topic, ...]:
        """Return the existing topics with these names, or all topics (None), sorted by name. With `detailed`, include
        the eligible leader replicas, and the replicas that a reassignment adds and removes.

        Brokers before 2.4, and brokers that do not authorize this client to read reassignments, do not report the
        replicas of a reassignment. Raises Unreachable if no answer came, and Refused if the brokers refuse the request.
        """

    def must_show(self, topics: Collection[str]) -> None:
        """Raise Refused for a topic that Kafka hides from this user, because the topic may exist.

        For a topic that does not exist, raise nothing. Raises Unreachable if no answer came.
        """


class MutationCluster(Protocol):
    """A connected cluster. `kquota.connect` provides one."""

    @property
    def topics(self) -> Topics:
        """The topics of the cluster."""

    @property
    def checked(self) -> Topics:
        """The same topics, but the controller only checks creations and growths (`ValidateOnly`).

        According to KIP-599, the checks are free. Kafka 4 counts them against the quota, and can reject them. `send`
        raises Refused for deletions, because Kafka cannot check a deletion.
        """

    @property
    def timeout(self) -> float:
        """The seconds during which rejected topics are sent again, unless a call gives another timeout."""

    def mutation_rate(self) -> float | None:
        """Return the `controller_mutation_rate` that applies to this client, always positive and finite. None if it is
        not set, is unknown, or has any other value, for example 0.
        """

    def mutation_burst(self) -> float:
        """Return the size of a full bucket, in seconds of the mutation rate. If unknown, return Kafka's default."""

    def default_partitions(self) -> int:
        """Return the number of partitions of a new topic that does not specify one: `num.partitions` of the brokers, or
        1 if it is unknown or not the same on all brokers.
        """


class MonotonicClock(Protocol):
    """A clock that tests can replace, so that they do not wait. Python's `time` module implements this interface."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary moment."""

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
