"""The Sight contract over the Admin API of real brokers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.topics import WireTopics
from tests.probe.contract import SightContract


class TestOnBrokers(SightContract):
    @pytest.fixture(autouse=True)
    def stage(self, cluster: Sandbox) -> Iterator[None]:
        self.topic = f"sight-{uuid.uuid4().hex[:8]}"
        with Wire(cluster.bootstrap, {}) as wire:
            self.topics, self.sight = WireTopics(wire), WireSight(wire)
            yield
