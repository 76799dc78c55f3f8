"""A controller in memory with the broker's own token bucket, and a clock that only moves when somebody waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kquota.errors import Unreachable
from kquota.mutation.port import REJECTED, Answer, Failure
from kquota.mutation.request import Creation, Deletion, Mutation
from kquota.simulate.bucket import Bucket
from kquota.simulate.delay import Mutations

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
    """Gaps: no configs, no placement, no time-outs of the controller's own."""

    clock: FakeClock = field(default_factory=FakeClock)
    rate: float | None = None
    topics: dict[str, int] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    lost_at: int | None = None
    """The answer to this request, counted from 1, never comes."""

    def __post_init__(self) -> None:
        self._quota = None if self.rate is None else Mutations(Bucket(rate=self.rate))

    def send(self, mutations: Sequence[Mutation], seconds: float) -> Answer:
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
        self.clock.now += ROUND_TRIP
        if len(self.requests) == self.lost_at:
            raise Unreachable("no answer to CreateTopics")
        return Answer(throttle_time_ms=throttle, outcomes=outcomes)

    def _wrong(self, one: Mutation) -> Failure | None:
        there = one.topic in self.topics
        if isinstance(one, Creation):
            return Failure(code=36, reason="TopicAlreadyExists (36)") if there else None
        if not there:
            return Failure(code=3, reason="UnknownTopicOrPartition (3)")
        if not isinstance(one, Deletion) and one.partitions <= self.topics[one.topic]:
            return Failure(code=37, reason="InvalidPartitions (37)")
        return None

    def _do(self, one: Mutation) -> None:
        if isinstance(one, Deletion):
            del self.topics[one.topic]
        else:
            self.topics[one.topic] = one.partitions or one.mutations
