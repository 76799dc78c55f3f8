"""The contract of a LogReader. The fake and the Admin API of each real Kafka pass it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, Protocol

import pytest

from kquota.terms import BrokerId, TopicPartition
from kquota.watch.port import LogReader

ONE, TWO, THREE, NOBODY = BrokerId(1), BrokerId(2), BrokerId(3), BrokerId(99)
BYTES = 50_000


class LogStage(Protocol):
    """The port, and the direct access that the contract needs."""

    @property
    def reader(self) -> LogReader: ...

    def filled(self, name: str, replicas: Collection[int], size: int) -> TopicPartition:
        """A partition with about `size` bytes in each of these replicas."""


class LogReaderContract:
    """Subclass it with a `stage` fixture of brokers 1 to 3."""

    @pytest.fixture
    def stage(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def partition(self, stage: LogStage) -> TopicPartition:
        return stage.filled(f"watch-{uuid.uuid4().hex[:8]}", (1, 2), BYTES)

    def test_a_follower_reports_its_own_log(self, stage: LogStage, partition: TopicPartition) -> None:
        replicas = [(partition, ONE), (partition, TWO)]
        found = stage.reader.read(replicas, replicas)
        leader, follower = found.logs[partition, ONE], found.logs[partition, TWO]
        assert leader.size == follower.size >= BYTES
        assert leader.end == follower.end
        assert leader.end is not None and leader.end > 0
        assert (found.futures, found.silent) == ({}, {})

    def test_offsets_are_read_only_where_they_are_asked_for(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([(partition, ONE), (partition, TWO)], [(partition, TWO)])
        assert found.logs[partition, ONE].end is None
        assert found.logs[partition, TWO].end is not None

    def test_a_broker_without_the_replica_has_no_log_of_it(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([(partition, THREE)], [(partition, THREE)])
        assert (found.logs, found.silent) == ({}, {})
        assert {broker for broker, _ in found.dirs} == {THREE}

    def test_the_log_dir_of_a_replica_is_one_of_its_broker(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([(partition, ONE)], [])
        space = found.dirs[ONE, found.logs[partition, ONE].log_dir]
        assert space.error is None
        assert space.usable is None or space.usable > 0

    def test_a_broker_that_does_not_answer_is_silent(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([(partition, ONE), (partition, NOBODY)], [(partition, ONE), (partition, NOBODY)])
        assert found.silent.keys() == {NOBODY}
        assert found.silent[NOBODY]
        assert found.logs.keys() == {(partition, ONE)}
