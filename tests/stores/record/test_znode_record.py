"""Runs in ZooKeeper: every host sees them, one host writes at a time, and a paused twin writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kquota.errors import Busy, KquotaError, Refused, Unreachable
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan
from kquota.reassign.run import Run, Taken
from kquota.sandbox.cluster import Sandbox
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state.process import holder
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.znode import Create, SetData
from kquota.stores.zookeeper.znodes import LARGEST_TRANSACTION, Znodes
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
    """A kquota on a machine with its own state folder."""

    def __init__(self, connect: str, folder: Path) -> None:
        self.znodes = Znodes(connect)
        self.warnings: list[str] = []
        record = ZnodeRecord(self.znodes, "c")
        self.runs = RecordedRuns(RunFiles(folder, "c"), record, self.warnings.append)
        self.cluster = ZooKeeperMoves(self.znodes, lambda problem: pytest.fail(str(problem)), record)


@pytest.fixture
def tree(zookeeper: Sandbox, request: pytest.FixtureRequest) -> Iterator[str]:
    """The parts of a Kafka's ZooKeeper that these tests need, in a chroot of this test."""
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


def test_the_record_and_the_throttle_are_written_together(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    with one.runs.hold("execute"):
        one.runs.begin(RUN)
        assert other.runs.unfinished() == ()
        assert other.cluster.values([RATE]) == {RATE: None}
        assert one.cluster.change([THROTTLED]) == {}
        assert other.runs.unfinished() == (RUN,)
        assert other.cluster.values([RATE]) == {RATE: "5"}


def test_another_host_continues_a_run_and_ends_it_for_all(hosts: tuple[Host, Host]) -> None:
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
    assert one.runs.unfinished() == ()
    assert [run.finished for run in one.runs.every()] == [RUN.begun], "the host that started the run sees its end"
    assert Path(other.runs.place(RUN)).is_file(), "it keeps a journal of its own run"


def test_a_run_that_ended_elsewhere_cannot_be_begun_again_by_a_stale_host(hosts: tuple[Host, Host]) -> None:
    """B3: killed before it submitted, aborted by another host, resumed on the first."""
    one, other = hosts
    with pytest.raises(KeyboardInterrupt), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        raise KeyboardInterrupt
    with other.runs.hold("abort"):
        (run,) = other.runs.unfinished()
        other.runs.update(replace(run, aborting=True, finished=RUN.begun))
    with one.runs.hold("resume"):
        assert one.runs.unfinished() == ()
    with one.runs.hold("resume"):
        assert [run.aborting for run in one.runs.every()] == [True]


def test_versions_count_instead_of_the_lines_of_journals(hosts: tuple[Host, Host]) -> None:
    """B2: each host has a journal of another length, and the last write counts, whichever host made it."""
    one, other = hosts
    for n, host in enumerate((one, other, one, other, other, one), 1):
        with host.runs.hold("set"):
            if n == 1:
                host.runs.begin(RUN)
            else:
                (run,) = host.runs.unfinished()
                host.runs.update(replace(run, rate=ByteRate(n)))
        for reader in hosts:
            (run,) = reader.runs.unfinished()
            assert run.rate == (RUN.rate if n == 1 else n)
            assert run.stamp and run.stamp.version == n


def test_the_error_of_a_concurrent_command_names_the_first(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    told = rf"\(reassign-partitions --execute, pid {os.getpid()} on .*, since "
    with one.runs.hold("reassign-partitions --execute"), pytest.raises(Busy, match=told):
        other.runs.hold("verify").__enter__()
    with other.runs.hold("verify"):
        pass


def test_a_paused_twin_writes_nothing_after_a_takeover(hosts: tuple[Host, Host], tree: str) -> None:
    """Its session and its lock ended during the pause, and another kquota took over the run."""
    one, other = hosts
    with pytest.raises(Busy, match="Nothing more is written"), one.runs.hold("execute"):
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


def test_an_owner_whose_session_ended_names_the_new_owner(hosts: tuple[Host, Host], tree: str) -> None:
    one, other = hosts
    with pytest.raises(Busy, match=f"run {RUN.id} was taken over by .*Nothing more"), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        twin = KazooClient(hosts=tree, client_id=one.znodes._client.client_id)
        twin.start()
        twin.stop()  # which ends the session of both
        with other.runs.hold("resume"):
            (run,) = other.runs.unfinished()
            other.runs.update(replace(run, rate=ByteRate(6)))
        raise Unreachable("the session was lost")
    assert other.cluster.values([RATE]) == {RATE: "5"}


def test_a_paused_twin_does_not_continue_from_the_values_of_the_other(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    with pytest.raises(Busy, match="Nothing more is written"), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        with other.runs.hold("abort", take_over=True):
            (run,) = other.runs.unfinished()
            other.runs.update(replace(run, rate=ByteRate(6)))
        assert one.runs.unfinished()
        one.runs.update(replace(RUN, rate=ByteRate(9)))
    with one.runs.hold("verify"):
        assert [run.rate for run in other.runs.unfinished()] == [6]


@pytest.mark.parametrize("change", [{"rate": ByteRate(9)}, {"finished": RUN.begun}], ids=["a rate", "an end"])
def test_a_host_does_not_send_later_what_the_takeover_stopped(
    hosts: tuple[Host, Host], change: Mapping[str, Any]
) -> None:
    """The new owner changes nothing, so the version in the record is still the one of the previous owner."""
    one, other = hosts
    with pytest.raises(Busy, match="Nothing more is written"), one.runs.hold("throttle set"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        with other.runs.hold("resume", take_over=True):
            pass
        one.runs.update(replace(RUN, **change))
    with one.runs.hold("verify"):
        assert one.runs.unfinished() == (RUN,)
    assert other.runs.unfinished() == (RUN,)


def test_the_version_of_the_record_alone_stops_a_twin(hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    with pytest.raises(Busy, match=f"run {RUN.id} was taken over by another kquota"), one.runs.hold("execute"):
        one.runs.begin(RUN)
        one.cluster.change([THROTTLED])
        client = one.znodes._client  # another client writes between two of kquota's transactions
        client.set(f"/kquota/runs/{RUN.id}", client.get(f"/kquota/runs/{RUN.id}")[0])
        raise one.cluster.change([Change(setting=RATE, before="5", after="7")])[RATE]


def test_the_lock_of_a_dead_process_of_this_machine_is_free(hosts: tuple[Host, Host], tree: str) -> None:
    dead = holder("execute").written() | {"pid": 2**22 + 1}
    client = KazooClient(hosts=tree)
    client.start()
    client.create("/kquota/lock", json.dumps(dead).encode(), makepath=True, ephemeral=True)
    with hosts[0].runs.hold("verify"):
        pass
    elsewhere = {**dead, "host": "elsewhere", "machine": "another"}
    client.create("/kquota/lock", json.dumps(elsewhere).encode(), ephemeral=True)
    with pytest.raises(Busy, match="on elsewhere"), hosts[0].runs.hold("verify"):
        pass
    with hosts[0].runs.hold("abort", take_over=True):
        pass
    client.stop()


def test_every_host_sees_a_large_plan_and_only_its_end_remains(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    targets = {TopicPartition(f"{n:064x}", n * 7919 % 100_003): (BrokerId(n % 977),) for n in range(40_000)}
    large = replace(RUN, plan=Plan(targets=targets), rollback=Plan(targets=targets))
    with one.runs.hold("execute"):
        one.runs.begin(large)
        assert one.runs.unfinished() == (), "it is written with the first change"
        assert one.cluster.change([THROTTLED]) == {}
        assert other.runs.unfinished() == (large,)
    with other.runs.hold("abort"):
        (run,) = other.runs.unfinished()
        other.runs.update(replace(run, finished=RUN.begun))
    with one.runs.hold("status"):
        assert one.runs.unfinished() == ()
    assert one.znodes.children("/kquota/parts") == []


def taken_from(brokers: range) -> Mapping[Setting, Taken]:
    """Throttle rates of many brokers, which the record stores as a part."""
    rates = [Setting.of_broker(BrokerId(n), LEADER_RATE) for n in brokers]
    return {rate: Taken(setting=rate, prior=None, ours=("5",)) for rate in rates}


def test_many_runs_are_written_in_several_transactions(hosts: tuple[Host, Host]) -> None:
    """ZooKeeper closes the connection after a transaction of more than 1 MiB."""
    one, other = hosts
    ids = [f"{RUN.id[:-3]}{number:03x}" for number in range(100)]
    with one.runs.hold("throttle set"):
        for run_id in ids:
            one.runs.begin(replace(RUN, id=run_id, taken=taken_from(range(100))))
        assert one.cluster.change([THROTTLED]) == {}
    assert [run.id for run in other.runs.unfinished()] == ids
    size = sum(
        len(node.data) for node in one.znodes.read_all(f"/kquota/runs/{run_id}" for run_id in ids).values() if node
    )
    assert size > LARGEST_TRANSACTION


def test_a_transaction_that_zookeeper_would_not_read_is_not_sent(hosts: tuple[Host, Host]) -> None:
    one, _ = hosts
    why = (
        r"^/kquota: the change is too large for one ZooKeeper transaction \(about 1,100,107 bytes, at most 1,040,000\)"
    )
    with pytest.raises(Refused, match=why):
        one.znodes.commit([Create(path="/kquota", data=bytes(1_100_000))])
    assert one.znodes.read("/kquota") is None


def test_a_host_that_keeps_reading_finds_the_parts_of_a_new_version(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    first = replace(RUN, taken=taken_from(range(500)))
    second = replace(RUN, taken=taken_from(range(501)))
    third = replace(RUN, taken=taken_from(range(502)))
    with one.runs.hold("throttle set"):
        one.runs.begin(first)
    assert other.runs.unfinished() == (first,)
    with one.runs.hold("throttle set"):
        one.runs.update(second)
    assert other.runs.unfinished() == (second,)
    with other.runs.hold("throttle set"):
        other.runs.update(third)
    assert one.runs.unfinished() == (third,)
    assert (one.warnings, other.warnings) == ([], [])


def test_a_host_sends_a_run_again_with_parts_that_were_deleted(hosts: tuple[Host, Host], tree: str) -> None:
    one, other = hosts
    large = replace(RUN, taken=taken_from(range(500)))
    with one.runs.hold("throttle set"):
        one.runs.begin(replace(large, rate=ByteRate(4)))
        one.cluster.change([THROTTLED])
        one.runs.update(large)
    client = KazooClient(hosts=tree)
    client.start()
    client.delete("/kquota", recursive=True)
    client.stop()
    with one.runs.hold("verify"):
        pass
    assert other.runs.unfinished() == (large,)


def test_a_run_that_a_newer_kquota_has_continued_is_not_overwritten(hosts: tuple[Host, Host]) -> None:
    one, other = hosts
    with one.runs.hold("throttle set"):
        one.runs.begin(RUN)
    (run,) = other.runs.unfinished()
    path = f"/kquota/runs/{RUN.id}"
    node = one.znodes.read(path)
    assert node is not None
    newer = json.dumps({**json.loads(node.data), "format": 3}).encode()
    assert one.znodes.committed([SetData(path=path, data=newer, version=node.version)])
    why = rf"run {RUN.id}: the record in ZooKeeper .*\(it has format 3.*kquota does not overwrite it"
    with other.runs.hold("throttle set"), pytest.raises(Refused, match=why):
        other.runs.update(replace(run, rate=ByteRate(9)))
    after = one.znodes.read(path)
    assert after is not None
    assert after.data == newer


# Content of a run's znode that kquota did not write, and the reported reasons.
FORGED = {
    "a config that is not a throttle": ({"kind": "topic", "name": "t", "key": "retention.ms"}, "is not a throttle key"),
    "a planet": ({"kind": "planet", "name": "t", "key": LEADER_RATE}, "is neither a topic nor a broker"),
    "a broker's key on a topic": ({"kind": "topic", "name": "t", "key": LEADER_RATE}, "is not a throttle key"),
    "a topic with a slash": ({"kind": "topic", "name": "../x", "key": "x"}, "is not a valid topic name"),
}


@pytest.mark.parametrize(("setting", "why"), FORGED.values(), ids=FORGED)
def test_a_forged_record_is_reported_and_left_unchanged(
    hosts: tuple[Host, Host], tree: str, setting: dict[str, str], why: str
) -> None:
    """B7: the other run is still visible."""
    one, other = hosts
    with one.runs.hold("execute"):
        one.runs.begin(RUN)
    path = f"/kquota/runs/{RUN.id}"
    node = one.znodes.read(path)
    assert node is not None
    document = json.loads(node.data)
    document["run"]["taken"] = [{**setting, "prior": "1", "ours": ["5"]}]
    document["run"]["id"] = "forged"
    client = KazooClient(hosts=tree)
    client.start()
    client.create("/kquota/runs/forged", json.dumps(document).encode())
    client.create("/kquota/runs/..x", b"{}")
    client.stop()
    assert other.runs.unfinished() == (RUN,)
    assert other.runs.unreadable == ("..x", "forged")
    assert len(other.warnings) == 2
    assert why in other.warnings[1]
