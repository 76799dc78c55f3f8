"""The contract of a Topics port. The fake and the real store pass it."""

from __future__ import annotations

from collections.abc import Mapping

from kquota.mutation.port import Topics
from kquota.mutation.topic import Creation, Deletion, Growth, Topic
from kquota.terms import BrokerId
from tests.waiting import until


class TopicsContract:
    """The subclass provides `topics`, and `partitions` (of every topic, as another client sees them)."""

    topics: Topics
    prefix: str

    def partitions(self) -> Mapping[str, int]:
        raise NotImplementedError

    def seen(self, **wanted: int) -> None:
        expected = {f"{self.prefix}-{name}": count for name, count in wanted.items()}
        until(
            lambda: {n: c for n, c in self.partitions().items() if n.startswith(self.prefix)} == expected,
            f"{expected} is seen",
        )

    def name(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    def test_topics_are_created_grown_and_deleted(self) -> None:
        made = [Creation(topic=self.name(n), partitions=2, replication_factor=1) for n in "ab"]
        assert self.topics.send(made, 30).outcomes == {self.name("a"): None, self.name("b"): None}
        self.seen(a=2, b=2)
        assert self.topics.send([Growth(topic=self.name("a"), partitions=5, now=2)], 30).outcomes == {
            self.name("a"): None
        }
        self.seen(a=5, b=2)
        gone = [Deletion(topic=self.name("a"), partitions=5), Deletion(topic=self.name("b"), partitions=2)]
        assert self.topics.send(gone, 30).outcomes == {self.name("a"): None, self.name("b"): None}
        self.seen()

    def test_each_topic_has_its_own_error(self) -> None:
        one = Creation(topic=self.name("a"), partitions=1, replication_factor=1)
        assert self.topics.send([one], 30).outcomes[one.topic] is None
        two = Creation(topic=self.name("b"), partitions=1, replication_factor=1)
        answer = self.topics.send([one, two], 30)
        failure = answer.outcomes[one.topic]
        assert failure is not None
        assert (failure.code, failure.rejected, answer.outcomes[two.topic]) == (36, False, None)
        self.seen(a=1, b=1)
        unknown = self.topics.send([Deletion(topic=self.name("c"), partitions=1)], 30).outcomes[self.name("c")]
        assert unknown is not None
        assert unknown.code == 3
        grown = self.topics.send([Growth(topic=self.name("a"), partitions=1, now=1)], 30).outcomes[self.name("a")]
        assert grown is not None
        assert grown.code == 37
        for name in "ab":
            self.topics.send([Deletion(topic=self.name(name), partitions=1)], 30)
        self.seen()

    def test_topics_are_reported_in_their_current_state(self) -> None:
        made = Creation(topic=self.name("a"), assignment={0: (BrokerId(1), BrokerId(2)), 1: (BrokerId(2), BrokerId(1))})
        assert self.topics.send([made], 30).outcomes[made.topic] is None
        self.seen(a=2)
        told: list[Topic] = []

        def in_sync() -> bool:
            """Return True if all replicas are in sync. Any broker may be asked, and brokers learn about a topic at
            different times.
            """
            told[:] = self.topics.topics([made.topic, self.name("no-such")], detailed=True)
            return [len(p.isr) for topic in told for p in topic.partitions] == [2, 2]

        until(in_sync, "in sync")
        (topic,) = told
        assert (topic.name, topic.internal, topic.replication_factor) == (made.topic, False, 2)
        assert [(p.number, p.leader, p.replicas, p.under_replicated) for p in topic.partitions] == [
            (0, 1, (1, 2), False),
            (1, 2, (2, 1), False),
        ]
        until(lambda: topic in self.topics.topics(None, detailed=True), "among all others")
        assert self.topics.topics([]) == ()
        self.topics.send([Deletion(topic=made.topic, partitions=2)], 30)
        self.seen()
