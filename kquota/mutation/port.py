"""The interfaces to the cluster and the clock. `tests/mutation/contract.py` defines that of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kquota.mutation.topic import Mutation, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one topic failed: the broker's error code, with its name and message."""

    code: int
    reason: str

    @property
    def rejected(self) -> bool:
        """True if the quota rejected it: THROTTLING_QUOTA_EXCEEDED."""
        return self.code == REJECTED


REJECTED = 89
EXISTS = 36
"""TOPIC_ALREADY_EXISTS."""
MISSING = 3
"""UNKNOWN_TOPIC_OR_PARTITION."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The result for each topic of one request, None if done, and throttle_time_ms, for which the channel is muted."""

    throttle_time_ms: int
    outcomes: Mapping[str, Failure | None]


class Topics(Protocol):
    """The topics of one cluster. Requests use a version in which the controller rejects instead of delaying."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        """Request mutations of one kind, with a timeout of `seconds`.

        Raises Unreachable if no answer came: the result is unknown. A broker before 2.7 has no such quota, and rejects
        nothing.
        """
        ...

    def topics(self, names: Collection[str] | None, *, moves: bool = False) -> tuple[Topic, ...]:
        """The existing topics of these names, or all (None), by name; with `moves` also adding and removing replicas.

        Brokers that are too old (before 2.4), or do not let us read reassignments, show none.
        """
        ...


class MutationCluster(Protocol):
    """A connected cluster; `kquota.connect` provides one."""

    @property
    def topics(self) -> Topics:
        """Its topics."""
        ...

    @property
    def checked(self) -> Topics:
        """The same topics, for which the controller only checks requests (ValidateOnly). Deletions cannot be checked.

        KIP-599 meant this to be free. Kafka 4 counts it against the quota, and can reject it.
        """
        ...

    @property
    def timeout(self) -> float:
        """The seconds for which rejected topics are sent again, unless a call states otherwise."""
        ...

    def mutation_rate(self) -> float | None:
        """The controller_mutation_rate that applies to us, None if there is none or it is unknown."""
        ...

    def mutation_burst(self) -> float:
        """How many seconds of that rate a full bucket holds; Kafka's default if it is unknown."""
        ...

    def default_partitions(self) -> int:
        """The number of partitions of a topic without its own number: the brokers' num.partitions, 1 if unknown."""
        ...


class MonotonicClock(Protocol):
    """The clock, so that a test need not wait; Python's `time` module is one."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
