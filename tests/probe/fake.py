"""A controller in memory that is slow or whose brokers lag, and a client that writes to its topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kquota.mutation.port import BatchResult
from kquota.mutation.topic import Creation, Mutation
from kquota.pace.lag import GroupOffsets, OffsetsReading
from kquota.reassign.port import Clock
from kquota.settings.resource import TOPICS, Entry, Resource
from kquota.terms import BrokerId, TopicPartition
from tests.mutation.fake import MemoryTopics
from tests.settings.fake import FakeConfigs


@dataclass
class Controller(MemoryTopics):
    """A controller that runs mutations one by one, and whose brokers show each one `lag` seconds later."""

    cost: float = 0.0
    lag: float = 0.0
    shown: float = 0.0
    configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The configs with which each topic was created."""

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        answer = super().send(mutations, seconds)
        self.configs |= {one.topic: one.configs for one in mutations if isinstance(one, Creation)}
        self.clock.now += self.cost * sum(one.mutations for one in mutations)
        self.shown = self.clock.now + self.lag
        return answer

    def behind(self, wanted: Mapping[str, int]) -> int:
        return 0 if self.clock.now >= self.shown and all(self.held.get(t, 0) == n for t, n in wanted.items()) else 1


class CreatedConfigs(FakeConfigs):
    """The configs of a cluster that include those with which its topics were created."""

    def __init__(self, topics: Controller) -> None:
        super().__init__()
        self._created = topics

    def describe(self, resources: Collection[Resource]) -> Mapping[Resource, tuple[Entry, ...]]:
        for topic in self._created.topics(None):
            self.held[Resource(kind=TOPICS, name=topic.name)] = dict(self._created.configs.get(topic.name, {}))
        return super().describe(resources)


@dataclass(kw_only=True)
class MemoryWrites:
    """Writes to a topic of `topics`. `latency` has the seconds that a broker needs, and `sleep` passes the time.

    Implements `SmallWrites`. Gaps: every write is answered at once, or never.
    """

    topics: MemoryTopics
    topic: str
    latency: Callable[[BrokerId], float]
    sleep: Callable[[float], object]
    written: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def write(self, seconds: float) -> None:
        for topic in self.topics.topics([self.topic]):
            for one in topic.partitions:
                self.written[one.number].append(self.latency(one.replicas[0]))
        self.sleep(seconds)

    def latencies(self) -> Mapping[int, Sequence[float]]:
        found, self.written = self.written, defaultdict(list)
        return found

    @property
    def lost(self) -> bool:
        return not self.topics.topics([self.topic])


@dataclass(kw_only=True)
class MemoryGroups:
    """The offsets that `offsets` returns at the time of `clock`.

    Implements `ConsumerGroups`. Gap: every broker answers.
    """

    offsets: Callable[[float], Mapping[str, Mapping[TopicPartition, GroupOffsets]]]
    clock: Clock

    def read(self) -> OffsetsReading:
        at = self.clock.monotonic()
        return OffsetsReading(at=at, groups=self.offsets(at))
