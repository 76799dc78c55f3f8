"""The fake passes the port's contract, so tests on it are valid for a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, BrokerId, TopicPartition
from tests.reassign.contract import ClusterContract, DeadBrokerContract, DeadStage, Stage
from tests.reassign.fake import MemoryCluster


class MemoryStage:
    def __init__(self) -> None:
        self.brokers = (BrokerId(1), BrokerId(2), BrokerId(3))
        self.cluster = MemoryCluster(alive=set(self.brokers), stale_seconds=0.05, seconds=time.monotonic)

    def topic(self, replicas: Mapping[int, Replicas]) -> str:
        for number, where in replicas.items():
            self.cluster.partitions[TopicPartition("t", number)] = PartitionReplicas(
                replicas=where, leader=where[0], isr=where
            )
        return "t"

    def write(self, setting: Setting, value: str | None) -> None:
        self.cluster.write(setting, value)

    def heard(self) -> None:
        pass

    def finish(self, name: TopicPartition) -> None:
        self.cluster.finish(name)


class TestMemoryCluster(ClusterContract):
    @pytest.fixture
    def stage(self) -> Stage:
        return MemoryStage()


class MemoryDeadStage:
    def __init__(self) -> None:
        self.alive, self.dead = BrokerId(1), BrokerId(3)
        self.cluster = MemoryCluster(alive={self.alive}, controllers=True)
        self.cluster.configs[Setting.of_broker(self.dead, FOLLOWER_RATE)] = "7"

    def returns(self) -> None:
        self.cluster.alive.add(self.dead)


class TestMemoryClusterWithADeadBroker(DeadBrokerContract):
    @pytest.fixture
    def stage(self) -> DeadStage:
        return MemoryDeadStage()
