"""The contract of a LogReader. The fake and the Admin API of each real Kafka pass it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, Protocol

import pytest

from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.port import LogReader
from kquota.watch.reading import ReplicaLogs, WantedLogs

ONE, TWO, THREE, DEAD = BrokerId(1), BrokerId(2), BrokerId(3), BrokerId(99)
BROKERS = (ONE, TWO, THREE)
BYTES = 50_000


class LogStage(Protocol):
    """The port, and the direct access that the contract needs."""

    @property
    def reader(self) -> LogReader: ...

    def filled(self, name: str, replicas: Collection[int], size: int) -> TopicPartition:
        """Create a partition with about `size` bytes in each of these replicas."""


class LogReaderContract:
    """Subclass it with a `stage` fixture of brokers 1 to 3."""

    @pytest.fixture
    def stage(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def partition(self, stage: LogStage) -> TopicPartition:
        return stage.filled(f"watch-{uuid.uuid4().hex[:8]}", (1, 2), BYTES)

    def test_a_follower_reports_its_own_log(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (ONE, TWO), (ONE, TWO))], BROKERS)
        leader, follower = (partition, ONE), (partition, TWO)
        size, end = size_of(found, leader), found.end(leader)
        assert size is not None and size >= BYTES
        assert end is not None and end > 0
        assert (size_of(found, follower), found.end(follower)) == (size, end)
        assert (found.futures, found.silent) == ({}, {})

    def test_offsets_are_read_only_where_they_are_asked_for(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (ONE, TWO), (TWO,))], BROKERS)
        assert found.end((partition, ONE)) is None
        assert found.end((partition, TWO)) is not None

    def test_a_broker_without_the_replica_has_no_log_of_it(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (THREE,), (THREE,))], BROKERS)
        assert (size_of(found, (partition, THREE)), found.end((partition, THREE)), found.silent) == (None, None, {})
        assert {broker for broker, _ in found.dirs} == {THREE}

    def test_the_log_dir_of_a_replica_is_one_of_its_broker(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (ONE,), ())], BROKERS)
        [place] = [place for place, topics in found.by_dir.items() if partition.topic in topics]
        space = found.dirs[place]
        assert (place[0], space.error) == (ONE, None)
        assert space.usable is None or space.usable > 0

    def test_the_first_offset_of_a_leader_is_read_only_for_these_partitions(
        self, stage: LogStage, partition: TopicPartition
    ) -> None:
        assert stage.reader.starts({ONE: {partition}}) == {ONE: {partition.topic: {0: 0}}}

    def test_the_first_offset_is_known_only_where_the_replica_is(
        self, stage: LogStage, partition: TopicPartition
    ) -> None:
        found = stage.reader.starts({ONE: {partition}, THREE: {partition}, DEAD: {partition}})
        assert found.get(ONE) == {partition.topic: {0: 0}}
        assert not found.get(THREE, {}).get(partition.topic)
        assert DEAD not in found

    def test_only_the_given_brokers_are_asked(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (ONE, TWO), (ONE, TWO))], [TWO])
        assert set(found.sizes) == set(found.ends) == {TWO}
        assert found.silent == {}

    def test_a_request_changes_with_its_partitions(self, stage: LogStage, partition: TopicPartition) -> None:
        reader = stage.reader
        first = wanted(partition, (ONE,), (ONE,))
        one, again = reader.read([first], BROKERS), reader.read([first], BROKERS)
        assert (one.by_dir, one.ends, one.silent) == (again.by_dir, again.ends, again.silent)
        found = reader.read([wanted(partition, (TWO,), ())], BROKERS)
        assert set(found.sizes) == {TWO}
        assert found.end((partition, TWO)) is None

    def test_a_broker_that_does_not_answer_is_silent(self, stage: LogStage, partition: TopicPartition) -> None:
        found = stage.reader.read([wanted(partition, (ONE, DEAD), (ONE, DEAD))], [*BROKERS, DEAD])
        assert found.silent.keys() == {DEAD}
        assert found.silent[DEAD]
        assert found.sizes.keys() == {ONE}


def wanted(partition: TopicPartition, sizes: Collection[BrokerId], ends: Collection[BrokerId]) -> WantedLogs:
    """Return the request for the logs of one partition: the sizes on some brokers, and the end offsets on others."""
    numbers = (partition.partition,)
    return WantedLogs(partition.topic, dict.fromkeys(sizes, numbers), dict.fromkeys(ends, numbers))


def size_of(logs: ReplicaLogs, replica: ReplicaId) -> int | None:
    """Return the bytes of a log, or None if they are unknown."""
    (topic, number), broker = replica
    return logs.sizes.get(broker, {}).get(topic, {}).get(number)
