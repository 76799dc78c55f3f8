"""The contract of a LogDirs port. The fake and the Admin API of each real Kafka pass it."""

from __future__ import annotations

import uuid
from typing import Any, Protocol

import pytest

from kquota.sizes.port import LogDirs
from kquota.sizes.replica import LogDir, Replica, without_remote
from kquota.terms import BrokerId, TopicPartition

ONE, TWO = BrokerId(1), BrokerId(2)
MESSAGES, BYTES = 50, 1_000
TIERED_MESSAGES, TIERED_BYTES = 60, 100_000


class Stage(Protocol):
    """The port, and the direct access that a contract needs."""

    log_dirs: LogDirs

    def topic(self, name: str, assignment: list[list[int]]) -> None:
        """Creates a topic with these replicas."""

    def write(self, partition: TopicPartition, messages: int, size: int) -> None:
        """Appends messages of random bytes to a partition, and waits until every replica has them."""


class LogDirsContract:
    """Subclass it with a `stage` fixture of three brokers, each with two log dirs and a rack."""

    @pytest.fixture
    def stage(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def topic(self, stage: Stage) -> str:
        name = f"sizes-{uuid.uuid4().hex[:8]}"
        stage.topic(name, [[1, 2], [2, 1], [3, 1]])
        stage.write(TopicPartition(name, 0), MESSAGES, BYTES)
        return name

    def test_each_replica_is_reported_once_with_its_bytes(self, stage: Stage, topic: str) -> None:
        found = stage.log_dirs.describe(sorted(stage.log_dirs.brokers()), [topic])
        replicas = [(log_dir.broker, replica.partition.partition) for log_dir in found for replica in log_dir.replicas]
        assert sorted(replicas) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 2)]
        sizes = {replica.size for _, replica in _of(found, TopicPartition(topic, 0))}
        assert len(sizes) == 1
        assert MESSAGES * BYTES <= sizes.pop() <= 2 * MESSAGES * BYTES
        assert {replica.size for _, replica in _of(found, TopicPartition(topic, 1))} == {0}
        assert not any(replica.future for log_dir in found for replica in log_dir.replicas)

    def test_empty_log_dirs_are_reported(self, stage: Stage, topic: str) -> None:
        found = stage.log_dirs.describe([ONE, TWO], [topic])
        assert [log_dir.broker for log_dir in found] == [1, 1, 2, 2]
        assert len({(log_dir.broker, log_dir.path) for log_dir in found}) == 4
        assert all(log_dir.error is None for log_dir in found)
        assert {log_dir.rack for log_dir in found} == {"rack-1", "rack-2"}
        for log_dir in found:
            told = (log_dir.volume_total, log_dir.volume_usable)
            assert told == (None, None) or 0 <= (told[1] or 0) <= (told[0] or 0)

    def test_without_topics_everything_is_reported(self, stage: Stage, topic: str) -> None:
        found = stage.log_dirs.describe([ONE], None)
        assert {replica.partition for log_dir in found for replica in log_dir.replicas} >= {TopicPartition(topic, 0)}

    def test_without_any_topic_only_log_dirs_are_reported(self, stage: Stage, topic: str) -> None:
        every = stage.log_dirs.describe([ONE, TWO], None)
        found = stage.log_dirs.describe([ONE, TWO], [])
        assert [(log_dir.broker, log_dir.path) for log_dir in found] == [(each.broker, each.path) for each in every]
        assert not any(log_dir.replicas or log_dir.cordoned for log_dir in found)

    def test_details(self, stage: Stage, topic: str) -> None:
        found = stage.log_dirs.detailed(stage.log_dirs.describe(sorted(stage.log_dirs.brokers()), [topic]))
        details = {
            (broker, replica.partition.partition): (
                replica.start_offset,
                replica.local_start_offset,
                replica.end_offset,
                replica.leader,
                replica.in_sync,
            )
            for number in range(3)
            for broker, replica in _of(found, TopicPartition(topic, number))
        }
        assert details == {
            (1, 0): (0, 0, MESSAGES, True, True),
            (2, 0): (None, 0, MESSAGES, False, True),
            (2, 1): (0, 0, 0, True, True),
            (1, 1): (None, 0, 0, False, True),
            (3, 2): (0, 0, 0, True, True),
            (1, 2): (None, 0, 0, False, True),
        }

    def test_the_cluster_has_an_id_and_racks(self, stage: Stage) -> None:
        assert stage.log_dirs.cluster_id
        assert stage.log_dirs.brokers() == {1: "rack-1", 2: "rack-2", 3: "rack-3"}


class TieredStage(Stage, Protocol):
    """A stage whose cluster has remote storage."""

    def offload(self, partition: TopicPartition, messages: int) -> None:
        """Deletes at least this many of the oldest messages on the brokers, which remote storage has then."""

    def upload(self, partition: TopicPartition, messages: int) -> None:
        """Copies at least this many of the oldest messages to remote storage. Brokers keep them."""


class TieredContract:
    """The log dirs of a tiered topic (KIP-405). Subclass it with a `stage` fixture of two brokers or more."""

    @pytest.fixture
    def stage(self) -> Any:
        raise NotImplementedError

    def test_sizes_belong_to_the_local_starts(self, stage: TieredStage) -> None:
        name = f"tiered-{uuid.uuid4().hex[:8]}"
        partition = TopicPartition(name, 0)
        stage.topic(name, [[1, 2]])
        stage.write(partition, TIERED_MESSAGES, TIERED_BYTES)
        stage.offload(partition, TIERED_MESSAGES // 2)
        found = stage.log_dirs.detailed(stage.log_dirs.describe([ONE, TWO], [name]))
        replicas = dict(_of(found, partition))
        assert [(replicas[b].start_offset, replicas[b].end_offset) for b in (ONE, TWO)] == [
            (0, TIERED_MESSAGES),
            (None, TIERED_MESSAGES),
        ]
        for replica in replicas.values():
            assert replica.local_start_offset is not None
            assert TIERED_MESSAGES // 2 <= replica.local_start_offset <= TIERED_MESSAGES
            local = (TIERED_MESSAGES - replica.local_start_offset) * TIERED_BYTES
            assert local <= replica.size <= local * 1.1

    def test_a_new_replica_may_copy_only_what_remote_storage_lacks(self, stage: TieredStage) -> None:
        """KIP-1023. The first offset that is not uploaded is known for tiered topics only."""
        partition = TopicPartition(f"tiered-{uuid.uuid4().hex[:8]}", 0)
        stage.topic(partition.topic, [[1, 2]])
        stage.write(partition, TIERED_MESSAGES, TIERED_BYTES)
        stage.upload(partition, TIERED_MESSAGES // 2)
        found = stage.log_dirs.detailed(stage.log_dirs.describe([ONE, TWO], None))
        pending = stage.log_dirs.pending(found)
        assert TIERED_MESSAGES // 2 <= pending[partition] <= TIERED_MESSAGES
        lacking = (TIERED_MESSAGES - pending[partition]) * TIERED_BYTES
        for _, replica in _of(without_remote(found, pending), partition):
            assert lacking <= replica.size <= lacking * 1.1
        assert without_remote(found, {}) == found


def _of(found: list[LogDir], partition: TopicPartition) -> list[tuple[BrokerId, Replica]]:
    return [
        (log_dir.broker, replica) for log_dir in found for replica in log_dir.replicas if replica.partition == partition
    ]
