"""Runs in ZooKeeper: seen from every host, one writer at a time, and a paused twin can write no more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.errors import Busy, KquotaError
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.run import Run
from kquota.reassign.throttle import Change, Setting, Taken
from kquota.sandbox.cluster import Cluster
from kquota.stores.runs import RunFiles
from kquota.stores.znodes import Znodes
from kquota.stores.zookeeper_moves import ZooKeeperMoves
from kquota.stores.zookeeper_runs import ZooKeeperRuns
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition

pytestmark = pytest.mark.zookeeper

T0 = TopicPartition("t", 0)
RATE = Setting.of_broker(BrokerId(1), LEADER_RATE)
RUN = Run(
    id="20260301T123000Z-0123456789ab",
    begun=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
    plan=Plan(targets={T0: (BrokerId(1),)}),
    rollback=Plan(targets={T0: (BrokerId(2),)}),
    rate=ByteRate(5),
    taken={RATE: Taken(setting=RATE, prior=None, ours=("5",))},
)
THROTTLED = Change(setting=RATE, before=None, after="5")


class Host:
    """A kquota on a machine with a state folder of its own."""

    def __init__(self, connect: str, folder: Path) -> None:
        self.znodes = Znodes(connect)
        self.runs = ZooKeeperRuns(self.znodes, RunFiles(folder, "c"))
        self.cluster = ZooKeeperMoves(self.znodes, self.runs)


@pytest.fixture
def tree(zookeeper: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A Kafka's ZooKeeper, as far as it matters here, under a chroot of this test's own."""
    client = KazooClient(hosts=zookeeper.zookeeper)
    client.start()
    root = f"/{request.node.name}"
    for path in ("/brokers/ids", "/brokers/topics", "/config/changes", "/admin"):
        client.create(root + path, b"", makepath=True)
    yield f"{zookeeper.zookeeper}{root}"
    client.delete(root, recursive=True)
    client.stop()


@pytest.fixture
def hosts(tree: str, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    one, other = (Host(tree, tmp_path / name) for name in ("one", "other"))
    yield one, other
    for host in (one, other):
        host.znodes.close()


def test_the_record_is_there_with_the_throttle_or_not_at_all(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    with one.runs.hold("execute"):
        one.runs.begin(RUN)
        assert other.runs.unfinished() == ()
        assert other.cluster.values([RATE]) == {RATE: None}
        assert one.cluster.change([THROTTLED]) == {}
        assert other.runs.unfinished() == (RUN,)
        assert other.cluster.values([RATE]) == {RATE: "5"}


def test_another_host_goes_on_and_ends_it_for_all(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    with one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        submitted = replace(RUN, handed_over=frozenset({T0}))
        one.runs.update(submitted)
    with other.runs.hold("verify"):
        assert other.runs.unfinished() == (submitted,)
        assert other.cluster.change([Change(setting=RATE, before="5", after=None)]) == {}
        other.runs.update(replace(submitted, finished=RUN.begun))
    assert other.znodes.children("/kquota/runs") == []
    assert Path(other.runs.place(RUN)).is_file(), "it keeps a journal of what it did"


def test_a_run_that_never_came_to_its_throttle_ends_without_a_word_of_others(hosts: tuple[Host, Host]) -> None:
    """Nothing is written for a value that stands already, and nothing counts as written then."""
    one, _ = hosts
    one.runs.begin(RUN)  # and died
    with one.runs.hold("abort"):
        one.runs.update(replace(RUN, aborting=True))
        assert one.cluster.change([Change(setting=RATE, before=None, after=None)]) == {}
        one.runs.update(replace(RUN, aborting=True, finished=RUN.begun))
    assert one.runs.unfinished() == ()


def test_two_at_once_and_the_second_is_told_who_is_first(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    told = rf"\(reassign-partitions --execute, pid {os.getpid()} on .*, since "
    with one.runs.hold("reassign-partitions --execute"), pytest.raises(Busy, match=told):
        other.runs.hold("verify").__enter__()
    with other.runs.hold("verify"):
        pass


def test_a_twin_that_was_paused_writes_no_more(hosts: tuple[Host, Host], tree: str) -> None:
    """Its session ended while it was stopped, and with it its lock; another kquota took the run over."""
    one, other = hosts
    with pytest.raises(Busy, match="nothing more is written"), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        lock = other.znodes.read("/kquota/lock")
        assert lock
        client = KazooClient(hosts=tree)
        client.start()
        client.delete("/kquota/lock")
        client.stop()
        with other.runs.hold("resume"):
            (run,) = other.runs.unfinished()
            other.runs.update(replace(run, rate=ByteRate(6)))
        errors = one.cluster.change([Change(setting=RATE, before="5", after="7")])
        raise errors.get(RATE, KquotaError("it wrote"))
    assert other.cluster.values([RATE]) == {RATE: "5"}


def test_the_version_of_the_record_alone_stops_a_twin(hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    with pytest.raises(Busy, match=f"run {RUN.id} was taken over by another kquota"), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        client = one.znodes._client  # another hand writes between two of our transactions
        client.set(f"/kquota/runs/{RUN.id}", client.get(f"/kquota/runs/{RUN.id}")[0])
        raise one.cluster.change([Change(setting=RATE, before="5", after="7")])[RATE]


def test_the_lock_of_a_process_of_this_host_that_is_dead_is_free(hosts: tuple[Host, Host], tree: str) -> None:
    dead = {**json.loads('{"doing": "execute", "since": "x"}'), "host": os.uname().nodename, "pid": 2**22 + 1}
    client = KazooClient(hosts=tree)
    client.start()
    client.create("/kquota/lock", json.dumps(dead).encode(), makepath=True, ephemeral=True)
    with hosts[0].runs.hold("verify"):
        pass
    client.create("/kquota/lock", json.dumps({**dead, "host": "elsewhere"}).encode(), ephemeral=True)
    with pytest.raises(Busy, match="on elsewhere"), hosts[0].runs.hold("verify"):
        pass
    client.stop()


def test_a_plan_too_large_for_a_znode_stays_on_its_host_and_fences_all_the_same(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    targets = {TopicPartition(f"{n:064x}", n * 7919 % 100_003): (BrokerId(n % 977),) for n in range(40_000)}
    large = replace(RUN, plan=Plan(targets=targets), rollback=Plan(targets=targets))
    with one.runs.hold("execute"):
        one.runs.begin(large)
        assert one.cluster.change([THROTTLED]) == {}
        assert one.runs.unfinished() == (large,)
        assert other.runs.unfinished() == ()
        assert other.znodes.children("/kquota/runs") == [RUN.id]
