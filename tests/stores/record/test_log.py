"""The Log contract on the fake and on real brokers of three generations."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topic_log import find
from kquota.stores.state.log import Log
from tests.stores.record.contract import LogContract
from tests.stores.record.fake import MemoryTopic


class TestFake(LogContract):
    @pytest.fixture(autouse=True)
    def stage(self) -> None:
        self.topic = MemoryTopic()

    def handle(self) -> Log:
        return self.topic.handle()


class TestOnRealBrokers(LogContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox) -> Iterator[None]:
        self.name = f"record-{uuid.uuid4().hex[:8]}"
        with Wire(cluster.bootstrap, {}) as wire:
            self.wire = wire
            topic_setup.create(wire, self.name)
            yield
            topic_setup.delete(wire, self.name)

    def handle(self) -> Log:
        log = find(self.wire, self.name)
        assert log is not None
        return log
