"""kquota's stores of ZooKeeper on the tree in memory: versions, fences, notifications and sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo import exceptions as kazoo_errors

from kquota.errors import Busy, Conflict, Unknown
from kquota.measure import ByteRate
from kquota.reassign.moves import PartitionReplicas
from kquota.settings.change import Change
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.znodes import LOCK, ZnodeRecord
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper import znodes
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.topics import SUBMITTED
from kquota.stores.zookeeper.znode import Check, Create
from kquota.terms import BrokerId, TopicPartition
from tests.hosts.tree import MemoryClient, MemoryZnodes, TreeCluster
from tests.stores.record.hosts import RATE, RUN

THROTTLED = Change(setting=RATE, before=None, after="5")
T0 = TopicPartition("t", 0)
MOVE = {T0: (BrokerId(2),)}


class Host:
    def __init__(self, cluster: TreeCluster, folder: Path) -> None:
        self.znodes = MemoryZnodes(cluster.tree)
        self.record = ZnodeRecord(self.znodes, "c")
        self.runs = RecordedRuns(RunFiles(folder, "c"), self.record)
        self.cluster = ZooKeeperMoves(self.znodes, lambda problem: pytest.fail(str(problem)), self.record)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> TreeCluster:
    monkeypatch.setattr(znodes, "time", SimpleNamespace(sleep=lambda _: None))
    return TreeCluster(
        alive={BrokerId(1), BrokerId(2)},
        partitions={T0: PartitionReplicas(replicas=(BrokerId(1),), leader=BrokerId(1), isr=(BrokerId(1),))},
    )


@pytest.fixture
def host(cluster: TreeCluster, tmp_path: Path) -> Host:
    return Host(cluster, tmp_path / "one")


@pytest.fixture
def other(cluster: TreeCluster, tmp_path: Path) -> Host:
    return Host(cluster, tmp_path / "other")


def test_brokers_apply_every_change(cluster: TreeCluster, host: Host) -> None:
    assert host.cluster.change([THROTTLED]) == {}
    assert cluster.in_force == cluster.stored() == {"brokers/1": {RATE.key: "5"}}


def test_a_config_that_changed_after_it_was_read_is_read_again(cluster: TreeCluster, host: Host) -> None:
    cluster.write(replace(RATE, key="other"), "0")
    writes = ["1", "2"]

    def edit(before: Mapping[str, str]) -> Mapping[str, str]:
        if writes:
            cluster.write(replace(RATE, key="other"), writes.pop(0))
        return {**before, RATE.key: "5"}

    host.znodes.alter_configs({"brokers/1": edit})
    assert cluster.stored() == {"brokers/1": {"other": "2", RATE.key: "5"}}


def test_nothing_is_written_without_the_fence(cluster: TreeCluster, host: Host) -> None:
    with pytest.raises(Conflict):
        host.znodes.alter_configs({"brokers/1": lambda _: {RATE.key: "5"}}, also=lambda: [Check(path=LOCK, version=0)])
    assert cluster.stored() == {}


def test_a_transaction_that_failed_is_not_committed(cluster: TreeCluster, host: Host) -> None:
    cluster.tree.put("/admin/old", b"1")
    assert not host.znodes.committed([Create(path="/admin/new", data=b""), Create(path="/admin/old", data=b"2")])
    assert cluster.tree.nodes["/admin/old"].data == b"1"
    assert "/admin/new" not in cluster.tree.nodes


@pytest.mark.parametrize("arrives", [True, False])
def test_a_write_whose_session_was_lost_is_unknown_and_not_repeated(
    cluster: TreeCluster, host: Host, arrives: bool
) -> None:
    client = LosingClient(cluster, arrives)
    host.znodes._client = client
    errors = host.cluster.change([THROTTLED])
    assert isinstance(errors[RATE], Unknown)
    assert client.sent == 1


class LosingClient(MemoryClient):
    """A client whose session ends with the first transaction."""

    def __init__(self, cluster: TreeCluster, arrives: bool) -> None:
        super().__init__(cluster.tree)
        self._arrives = arrives
        self.sent = 0

    def commit(self, operations: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.sent += 1
        if self.sent == 1 and self._arrives:
            super().commit(operations)
        if self.sent == 1:
            raise kazoo_errors.SessionExpiredError
        return super().commit(operations)


def test_the_version_of_a_run_alone_stops_a_twin(cluster: TreeCluster, host: Host) -> None:
    path = f"/kquota/runs/{RUN.id}"
    with pytest.raises(Busy, match=f"run {RUN.id} was taken over"), host.runs.hold("execute"):
        host.runs.begin(RUN)
        assert host.cluster.change([THROTTLED]) == {}
        cluster.tree.put(path, cluster.tree.nodes[path].data)  # as a twin does, between two transactions of the host
        host.runs.update(replace(RUN, rate=ByteRate(6)))
        host.cluster.change([Change(setting=RATE, before="5", after="7")])
    assert cluster.stored() == {"brokers/1": {RATE.key: "5"}}


def test_an_open_run_that_was_deleted_from_zookeeper_is_named(cluster: TreeCluster, host: Host) -> None:
    deleted = f"run {RUN.id}: its znode /kquota/runs/{RUN.id} was deleted. Nothing more is written"
    with pytest.raises(Busy, match=deleted), host.runs.hold("execute"):
        host.runs.begin(RUN)
        assert host.cluster.change([THROTTLED]) == {}
        del cluster.tree.nodes[f"/kquota/runs/{RUN.id}"]
        host.cluster.change([Change(setting=RATE, before="5", after="7")])
    assert cluster.stored() == {"brokers/1": {RATE.key: "5"}}


def test_the_lock_ends_with_its_session(cluster: TreeCluster, host: Host, other: Host) -> None:
    with pytest.raises(Busy, match="now free"), host.runs.hold("execute"):
        host.runs.begin(RUN)
        assert host.cluster.change([THROTTLED]) == {}
        with pytest.raises(Busy, match="holds the lock"), other.runs.hold("verify"):
            pass
        cluster.tree.expire(host.znodes._client.session)
        with other.runs.hold("verify"):
            pass
        host.runs.must_hold()


def test_the_lock_of_a_later_holder_does_not_let_the_previous_one_write(
    cluster: TreeCluster, host: Host, other: Host
) -> None:
    """Both locks have the version 0, and there is no run whose version could differ.

    The previous holder was paused between its last look at the lock and its write.
    """
    with host.runs.hold("throttle doctor --fix"):
        fence = host.record.operations()
        cluster.tree.expire(host.znodes._client.session)
        with other.runs.hold("execute"), pytest.raises(Conflict):
            host.znodes.alter_configs({"brokers/1": lambda _: {RATE.key: "5"}}, also=lambda: fence)
    assert cluster.stored() == {}


class SlowClient(MemoryClient):
    """A client with another event in ZooKeeper just before its first transaction, and just after it."""

    def __init__(self, host: Host, before: Callable[[], object], after: Callable[[], object] = lambda: None) -> None:
        super().__init__(host.znodes._client.tree)
        self.session = host.znodes._client.session
        self._before, self._after = [before], [after]

    def commit(self, operations: Sequence[tuple[Any, ...]]) -> list[Any]:
        for happen in self._before[:1]:
            self._before.clear()
            happen()
        results = super().commit(operations)
        for happen in self._after[:1]:
            self._after.clear()
            happen()
        return results


def test_a_submission_after_a_lost_lock_names_the_lock(cluster: TreeCluster, host: Host, other: Host) -> None:
    def take_over() -> None:
        with other.runs.hold("verify", take_over=True):
            pass

    with pytest.raises(Busy, match="this kquota lost its lock in ZooKeeper"), host.runs.hold("execute"):
        host.znodes._client = SlowClient(host, take_over)
        host.cluster.submit(MOVE)
    assert SUBMITTED not in cluster.tree.nodes


def test_a_submission_that_met_the_end_of_another_can_be_repeated(cluster: TreeCluster, host: Host) -> None:
    def begin() -> None:
        cluster.tree.put(SUBMITTED, b"")

    def end() -> None:
        del cluster.tree.nodes[SUBMITTED]

    with host.runs.hold("execute"):
        host.znodes._client = SlowClient(host, begin, end)
        with pytest.raises(Conflict, match=f"{SUBMITTED} existed until now.* Try again"):
            host.cluster.submit(MOVE)
        assert host.cluster.submit(MOVE) == {}
