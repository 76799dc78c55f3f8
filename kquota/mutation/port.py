"""What this room needs of a cluster and of time. `tests/mutation/contract.py` defines the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kquota.mutation.request import Mutation
from kquota.mutation.topic import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one topic was not done: the broker's error, by code and name, and its own words."""

    code: int
    reason: str

    @property
    def rejected(self) -> bool:
        """Whether the quota rejected it: THROTTLING_QUOTA_EXCEEDED."""
        return self.code == REJECTED


REJECTED = 89
EXISTS = 36
"""TOPIC_ALREADY_EXISTS."""
MISSING = 3
"""UNKNOWN_TOPIC_OR_PARTITION."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What became of each topic of one request, None is done; and throttle_time_ms, for which the channel is muted."""

    throttle_time_ms: int
    outcomes: Mapping[str, Failure | None]


class Topics(Protocol):
    """The topics of one cluster; its controller is asked in a version in which it rejects rather than delays."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        """Ask for mutations of one kind in one request, which may take `seconds`.

        Raises Unreachable when no answer came: then nobody knows. A broker before 2.7 has no such quota, and rejects
        nothing.
        """
        ...

    def topics(self, names: Collection[str] | None, *, moves: bool = False) -> tuple[Topic, ...]:
        """The topics of these names that exist, or all (None), by name; with `moves` also who is added and removed.

        Brokers that are too old (before 2.4), or do not let us look at moves, show none.
        """
        ...


class MutationCluster(Protocol):
    """A cluster that is connected; `kquota.connect` gives one."""

    @property
    def topics(self) -> Topics:
        """Its topics."""
        ...

    @property
    def checked(self) -> Topics:
        """The same, of which the controller only says whether it would (ValidateOnly); a deletion cannot be asked so.

        KIP-599 meant that to be free: Kafka 4 spends the quota on it all the same, and can reject it.
        """
        ...

    @property
    def timeout(self) -> float:
        """The seconds for which what is rejected is sent again, unless a call says otherwise."""
        ...

    def mutation_rate(self) -> float | None:
        """The controller_mutation_rate that binds us, None where there is none or nobody tells: rejections do then."""
        ...

    def mutation_burst(self) -> float:
        """How many seconds of that rate a full bucket holds; as Kafka ships it where nobody tells."""
        ...

    def default_partitions(self) -> int:
        """How many a topic gets for which nobody says it: the brokers' num.partitions, 1 where they do not tell."""
        ...


class MonotonicClock(Protocol):
    """Time, so that a test need not wait; Python's own `time` is one."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
