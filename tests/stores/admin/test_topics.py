"""The Topics contract on real brokers of three generations, and a real mutation quota."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka.admin import AdminClient

from kquota.errors import Refused
from kquota.mutation.topic import Creation, Deletion
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topics import WireTopics
from tests.mutation.contract import TopicsContract
from tests.waiting import until


class TestOnRealBrokers(TopicsContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox) -> Iterator[None]:
        self.prefix = f"m{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
        with Wire(cluster.bootstrap, {}) as wire:
            self.topics, self.sight = WireTopics(wire), WireSight(wire)
            yield

    def seen(self, **wanted: int) -> None:
        """Waits for every broker, including the controller, which deletes only topics that it has as a broker."""
        super().seen(**wanted)
        expected = {self.name(name): count for name, count in wanted.items()}
        until(lambda: self.sight.behind(expected) == 0, f"every broker shows {expected}")

    def partitions(self) -> Mapping[str, int]:
        return {name: len(topic.partitions) for name, topic in self.admin.list_topics(timeout=10).topics.items()}


def test_a_topic_that_an_answer_omits_is_not_reported_as_done() -> None:
    class Wordless:
        controller = None

        def ask(self, _request: object, _broker: object, _seconds: object) -> SimpleNamespace:
            return SimpleNamespace(throttle_time_ms=0, topics=[SimpleNamespace(name="b", error_code=0)])

    asked = [Creation(topic=name, partitions=1) for name in "ab"]
    failures = WireTopics(cast(Wire, Wordless())).send(asked, 30).outcomes
    assert failures["b"] is None
    assert (told := failures["a"]) is not None
    assert "does not mention the topic" in told.reason


def test_a_dry_run_deletes_no_topic() -> None:
    with pytest.raises(Refused, match="topic a: Kafka cannot validate a deletion without deleting the topic"):
        WireTopics(cast(Wire, object()), validate_only=True).send([Deletion(topic="a", partitions=1)], 30)
