"""A controller in memory with the broker's own token bucket, and a clock that only advances when a client waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kquota.errors import Unreachable
from kquota.mutation.port import REJECTED, BatchResult, Failure
from kquota.mutation.topic import Assignment, Creation, Deletion, Mutation, Partition, Topic
from kquota.simulate.delay import Bucket, Mutations
from kquota.terms import SAMPLES, BrokerId

ROUND_TRIP = 0.01


@dataclass
class FakeClock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class MemoryTopics:
    """A controller in memory. Gaps: no configs, no placement, no moves, and it times out only for topics in `late`."""

    clock: FakeClock = field(default_factory=FakeClock)
    rate: float | None = None
    held: dict[str, int] = field(default_factory=dict)
    placed: dict[str, Assignment] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    burst_samples: int = SAMPLES
    lost_at: int | None = None
    """The number of the request whose answer is lost, counted from 1, or None."""
    late: Mapping[str, Failure] = field(default_factory=dict)
    """The failures of topics that the controller nevertheless changes."""

    def __post_init__(self) -> None:
        self._quota = None if self.rate is None else Mutations(Bucket(rate=self.rate, samples=self.burst_samples))

    def must_have_controller(self) -> None:
        """Do nothing, because this controller always answers."""

    def must_show(self, topics: Collection[str]) -> None:
        """Do nothing, because this cluster hides no topic."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        self.requests.append(len(mutations))
        outcomes: dict[str, Failure | None] = {}
        throttle = 0
        for one in mutations:
            wait = None
            failure = self._wrong(one)
            if failure is None and self._quota is not None:
                wait = self._quota.admit(one.mutations, round(self.clock.now * 1_000))
            if wait is not None:
                throttle = max(throttle, wait)
                failure = Failure(code=REJECTED, reason="ThrottlingQuotaExceeded (89)")
            outcomes[one.topic] = failure
            if failure is None:
                self._do(one)
                outcomes[one.topic] = self.late.get(one.topic)
        self.clock.now += ROUND_TRIP
        if len(self.requests) == self.lost_at:
            raise Unreachable("no answer to CreateTopics")
        return BatchResult(throttle_time_ms=throttle, outcomes=outcomes)

    def topics(self, names: Collection[str] | None, *, detailed: bool = False) -> tuple[Topic, ...]:
        return tuple(self._topic(name) for name in sorted(self.held) if names is None or name in names)

    def _topic(self, name: str) -> Topic:
        placed = self.placed.get(name, {})
        partitions = []
        for number in range(self.held[name]):
            replicas = placed.get(number, (BrokerId(1),))
            partitions.append(Partition(number=number, leader=replicas[0], replicas=replicas, isr=replicas))
        return Topic(name=name, id=None, internal=False, partitions=tuple(partitions))

    def _wrong(self, one: Mutation) -> Failure | None:
        there = one.topic in self.held
        if isinstance(one, Creation):
            return Failure(code=36, reason="TopicAlreadyExists (36)") if there else None
        if not there:
            return Failure(code=3, reason="UnknownTopicOrPartition (3)")
        if not isinstance(one, Deletion) and one.partitions <= self.held[one.topic]:
            return Failure(code=37, reason="InvalidPartitions (37)")
        return None

    def _do(self, one: Mutation) -> None:
        if isinstance(one, Deletion):
            del self.held[one.topic]
        else:
            self.held[one.topic] = one.mutations if isinstance(one, Creation) else one.partitions
            if one.assignment:
                self.placed[one.topic] = one.assignment
