"""A slow controller in memory, or one whose brokers lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquota.mutation.port import BatchResult
from kquota.mutation.topic import Mutation
from tests.mutation.fake import MemoryTopics


@dataclass
class Controller(MemoryTopics):
    """A controller that runs mutations one by one, and whose brokers show each one `lag` seconds later."""

    cost: float = 0.0
    lag: float = 0.0
    shown: float = 0.0

    def send(self, mutations: Sequence[Mutation], seconds: float) -> BatchResult:
        answer = super().send(mutations, seconds)
        self.clock.now += self.cost * sum(one.mutations for one in mutations)
        self.shown = self.clock.now + self.lag
        return answer

    def behind(self, wanted: Mapping[str, int]) -> int:
        return 0 if self.clock.now >= self.shown and all(self.held.get(t, 0) == n for t, n in wanted.items()) else 1
