"""Elections in batches, with a pause and a check of the cluster's health between two batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.election.leaders import batches, leaderless, unhealthy
from kquota.election.port import NOT_NEEDED, Elections, ElectionType
from kquota.errors import Refused
from kquota.mutation.port import Failure, MonotonicClock
from kquota.mutation.topic import Partition
from kquota.terms import TopicPartition

_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """The rules of elections in batches. Times are in seconds."""

    size: int | None = None
    """The maximum number of partitions in one request. None means all partitions."""
    pause: float = 0.0
    """The time to wait after each batch except the last, before the cluster is checked."""
    settle: float = 60.0
    """The maximum time after each `pause` until the cluster is as healthy as before the first batch, and shows the new
    leaders.
    """
    request_seconds: float = 60.0
    """The timeout of one request."""


@dataclass(slots=True, kw_only=True)
class ElectionResults:
    """The results of the elections so far."""

    outcomes: dict[TopicPartition, Failure | None] = field(default_factory=dict)
    """None for each partition whose leader was elected, otherwise the failure."""
    unknown: tuple[TopicPartition, ...] = ()
    """The partitions of a request whose result is unknown, for example because no answer came."""
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """The partitions of a request that the brokers refused as a whole, with the reason."""
    left: list[TopicPartition] = field(default_factory=list)
    """The partitions whose election was not requested."""
    unsettled: tuple[TopicPartition, ...] = ()
    """The partitions that had become unhealthy, or still lacked their new leader, when the elections stopped."""

    @property
    def elected(self) -> list[TopicPartition]:
        """The partitions with a new leader."""
        return [name for name, failure in self.outcomes.items() if failure is None]

    @property
    def not_needed(self) -> list[TopicPartition]:
        """The partitions that did not need an election of the requested type."""
        return [name for name, failure in self.outcomes.items() if failure and failure.code == NOT_NEEDED]

    @property
    def failed(self) -> Mapping[TopicPartition, Failure]:
        """The partitions whose election failed, with the reasons."""
        return {name: failure for name, failure in self.outcomes.items() if failure and failure.code != NOT_NEEDED}


def elect(
    cluster: Elections,
    clock: MonotonicClock,
    kind: ElectionType,
    names: Sequence[TopicPartition],
    partitions: Mapping[TopicPartition, Partition],
    rules: BatchRules,
    results: ElectionResults,
    on_batch: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Elect leaders batch by batch. `results` is updated after each batch, so it is also correct after an error.

    `partitions` is the state before the elections. After each batch except the last, and after `rules.pause`, the
    cluster has `rules.settle` seconds to become as healthy as in this state and to show the new leaders. Otherwise, no
    further batch is sent.

    `on_batch` receives the number of finished batches and the number of all batches. Raises Unreachable and Refused as
    the port does.
    """
    todo = list(batches(names, partitions, rules.size))
    results.left = [name for batch in todo for name in batch]
    before = unhealthy(partitions)
    for number, batch in enumerate(todo, 1):
        del results.left[: len(batch)]
        results.unknown = tuple(batch)
        try:
            results.outcomes |= cluster.elect(kind, batch, rules.request_seconds)
        except Refused as error:
            results.refused, results.unknown = dict.fromkeys(batch, str(error)), ()
            raise
        results.unknown = ()
        on_batch(number, len(todo))
        if results.left:
            clock.sleep(rules.pause)
            results.unsettled = _settle(cluster, clock, kind, results, before, rules.settle)
            if results.unsettled:
                return


def _settle(
    cluster: Elections,
    clock: MonotonicClock,
    kind: ElectionType,
    results: ElectionResults,
    before: frozenset[TopicPartition],
    seconds: float,
) -> tuple[TopicPartition, ...]:
    """Wait at most `seconds` until each elected partition has its new leader and no partition outside `before` is
    unhealthy. Return the partitions that still do not meet these conditions. One reading is not enough, because a
    broker may show the old leaders right after an election.
    """
    give_up, elected = clock.monotonic() + seconds, results.elected
    while True:
        now = cluster.partitions()
        waiting = (unhealthy(now) - before) | leaderless(kind, elected, now)
        if not waiting or clock.monotonic() >= give_up:
            return tuple(sorted(waiting))
        clock.sleep(_POLL_SECONDS)
