"""The Topics contract on real brokers of three generations, and a real mutation quota."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient

from kquota.sandbox.cluster import Cluster
from kquota.stores.wire.connection import Wire
from kquota.stores.wire.topics import WireTopics
from tests.mutation.contract import TopicsContract


class TestOnRealBrokers(TopicsContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Cluster) -> Iterator[None]:
        self.prefix = f"m{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        with Wire(cluster.bootstrap, {}) as wire:
            self.topics = WireTopics(wire)
            yield

    def partitions(self) -> Mapping[str, int]:
        return {name: len(topic.partitions) for name, topic in self.admin.list_topics(timeout=10).topics.items()}
