"""The leaders of a cluster in memory, with brokers that die and followers that fall behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kquota.election.port import NOT_NEEDED, ElectionType
from kquota.mutation.port import MISSING, Failure
from kquota.mutation.topic import Partition
from kquota.terms import BrokerId, TopicPartition

PREFERRED_NOT_AVAILABLE = 80
ELIGIBLE_NOT_AVAILABLE = 83


@dataclass
class MemoryElections:
    """Leaders in memory. Gaps: a new leader is visible at once unless `stale` readings remain, and moves do not exist.

    `troubled` partitions lose their followers after the batch with this number, counted from 1.
    """

    held: dict[TopicPartition, Partition] = field(default_factory=dict)
    dead: set[BrokerId] = field(default_factory=set)
    requests: list[tuple[TopicPartition, ...]] = field(default_factory=list)
    stale: int = 0
    troubled: Mapping[int, TopicPartition] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shown = dict(self.held)
        self._left = 0

    def add(self, name: TopicPartition, *replicas: int, leader: int | None) -> None:
        """Add a partition. All its replicas are in sync, or none without a leader."""
        ids = tuple(map(BrokerId, replicas))
        found = None if leader is None else BrokerId(leader)
        isr = () if leader is None else ids
        self.held[name] = Partition(number=name.partition, leader=found, replicas=ids, isr=isr)
        self._shown[name] = self.held[name]

    def partitions(self) -> Mapping[TopicPartition, Partition]:
        if self._left:
            self._left -= 1
        else:
            self._shown = dict(self.held)
        return dict(sorted(self._shown.items()))

    def must_show(self, topics: Collection[str]) -> None:
        """Do nothing, because this cluster hides no topic."""

    def elect(
        self, kind: ElectionType, partitions: Collection[TopicPartition], seconds: float
    ) -> Mapping[TopicPartition, Failure | None]:
        self.requests.append(tuple(partitions))
        found = {name: self._elected(kind, name) for name in partitions}
        self._left = self.stale
        if trouble := self.troubled.get(len(self.requests)):
            state = self.held[trouble]
            self.held[trouble] = replace(state, isr=state.isr[:1])
        return found

    def _elected(self, kind: ElectionType, name: TopicPartition) -> Failure | None:
        if name not in self.held:
            return Failure(code=MISSING, reason="UnknownTopicOrPartition (3)")
        state = self.held[name]
        preferred = kind is ElectionType.PREFERRED
        if (state.leader == state.replicas[0]) if preferred else (state.leader is not None):
            return Failure(code=NOT_NEEDED, reason="ElectionNotNeeded (84)")
        alive = [broker for broker in state.replicas if broker not in self.dead]
        chosen = state.replicas[0] if preferred else next(iter(alive), None)
        if preferred and (chosen in self.dead or chosen not in state.isr):
            return Failure(code=PREFERRED_NOT_AVAILABLE, reason="PreferredLeaderNotAvailable (80)")
        if chosen is None:
            return Failure(code=ELIGIBLE_NOT_AVAILABLE, reason="EligibleLeadersNotAvailable (83)")
        isr = state.isr if preferred else (chosen,)
        self.held[name] = replace(state, leader=chosen, isr=isr)
        return None
