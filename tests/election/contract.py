"""The contract of an Elections port. The fake and the real store pass it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kquota.election.port import NOT_NEEDED, Elections, ElectionType
from kquota.mutation.port import MISSING
from kquota.terms import TopicPartition
from tests.waiting import until


class ElectionsContract:
    """The subclass provides `elections`, and how a topic is created and its preferred leaders change."""

    elections: Elections

    def topic(self, replicas: Mapping[int, Sequence[int]]) -> str:
        raise NotImplementedError

    def prefer(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Give the partitions another order of their replicas. The leader does not change."""
        raise NotImplementedError

    def leader(self, name: TopicPartition) -> int | None:
        return self.elections.partitions()[name].leader

    def test_the_first_replica_becomes_the_leader(self) -> None:
        topic = self.topic({0: (1, 2), 1: (2, 1)})
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        self.prefer({first: (2, 1)})
        until(lambda: self.elections.partitions()[first].replicas == (2, 1), "the new order is seen")
        assert self.leader(first) == 1
        found = self.elections.elect(ElectionType.PREFERRED, [first, second], 30)
        assert found[first] is None
        assert (failure := found[second]) is not None
        assert failure.code == NOT_NEEDED
        until(lambda: self.leader(first) == 2, "the preferred leader is seen")
        state = self.elections.partitions()[first]
        assert (state.number, set(state.isr), state.adding, state.under_replicated) == (0, {1, 2}, (), False)

    def test_each_partition_has_its_own_error(self) -> None:
        topic = self.topic({0: (1, 2)})
        unknown, known = TopicPartition(topic, 7), TopicPartition(topic, 0)
        found = self.elections.elect(ElectionType.PREFERRED, [unknown, known], 30)
        failures = {name: failure.code for name, failure in found.items() if failure}
        assert failures == {unknown: MISSING, known: NOT_NEEDED}

    def test_a_partition_with_a_leader_needs_no_unclean_election(self) -> None:
        name = TopicPartition(self.topic({0: (1, 2)}), 0)
        failure = self.elections.elect(ElectionType.UNCLEAN, [name], 30)[name]
        assert failure is not None
        assert failure.code == NOT_NEEDED
