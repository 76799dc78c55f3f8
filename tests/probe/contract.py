"""The contract of a Sight port. The fake and the real store pass it."""

from __future__ import annotations

from kquota.mutation.port import Topics
from kquota.mutation.topic import Creation, Deletion, Growth
from kquota.probe.port import Sight
from tests.waiting import until


class SightContract:
    """Topics are created through `topics`, the port next to it."""

    topics: Topics
    sight: Sight
    topic: str

    def seen(self, partitions: int) -> None:
        until(lambda: self.sight.behind({self.topic: partitions}) == 0, f"{partitions} partitions are seen")

    def test_a_topic_is_shown_when_all_brokers_have_exactly_its_partitions(self) -> None:
        assert self.sight.behind({}) == 0
        self.seen(0)
        assert self.sight.behind({self.topic: 2}) > 0
        self.topics.send([Creation(topic=self.topic, partitions=2, replication_factor=1)], 30)
        self.seen(2)
        assert self.sight.behind({self.topic: 3}) > 0
        assert self.sight.behind({self.topic: 0}) > 0
        self.topics.send([Growth(topic=self.topic, partitions=3, now=2)], 30)
        self.seen(3)
        self.topics.send([Deletion(topic=self.topic, partitions=3)], 30)
        self.seen(0)
