"""Cordoned log dirs (KIP-1066) are never a destination of a plan, and their free space does not count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.placement.cluster import ClusterLayout, Disk, cluster
from kquota.placement.planner import plan
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.port import Snapshot
from kquota.sizes.replica import Cordon, LogDir, Replica, cordons
from kquota.terms import BrokerId, TopicPartition
from tests.placement.clusters import TOPIC, clusters, goal, goals, ids

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def log_dir(
    broker: BrokerId,
    path: str,
    *,
    cordoned: bool = False,
    error: str | None = None,
    volume: tuple[int, int] | None = None,
    replicas: int = 0,
) -> LogDir:
    return LogDir(
        broker=broker,
        rack=None,
        path=path,
        error=error,
        volume_total=volume[0] if volume else None,
        volume_usable=volume[1] if volume else None,
        replicas=tuple(
            Replica(partition=TopicPartition(TOPIC, n), size=100, offset_lag=0, future=False) for n in range(replicas)
        ),
        cordoned=cordoned,
    )


DIRS = {
    "none is cordoned": ([log_dir(ONE, "/a"), log_dir(ONE, "/b")], ()),
    "one of two": (
        [log_dir(ONE, "/a"), log_dir(ONE, "/b", cordoned=True)],
        (Cordon(broker=ONE, log_dirs=("/b",), whole=False),),
    ),
    "all of one broker": (
        [log_dir(ONE, "/a"), log_dir(TWO, "/b", cordoned=True), log_dir(TWO, "/a", cordoned=True)],
        (Cordon(broker=TWO, log_dirs=("/a", "/b"), whole=True),),
    ),
    "one, and the other is offline": (
        [log_dir(ONE, "/a", cordoned=True), log_dir(ONE, "/b", error="KafkaStorage (56)")],
        (Cordon(broker=ONE, log_dirs=("/a",), whole=True),),
    ),
}


@pytest.mark.parametrize(("dirs", "found"), DIRS.values(), ids=DIRS)
def test_the_cordons_of_brokers(dirs: list[LogDir], found: tuple[Cordon, ...]) -> None:
    assert cordons(dirs) == found


def layout(*dirs: LogDir, live: list[LogDir] | None = None) -> ClusterLayout:
    """Four partitions on broker 1. Brokers 2 and 3 are empty."""
    partitions = {
        TopicPartition(TOPIC, n): PartitionReplicas(replicas=(ONE,), leader=ONE, isr=(ONE,)) for n in range(4)
    }
    racks = dict.fromkeys((ONE, TWO, THREE))
    return cluster(Snapshot(racks=racks, partitions=partitions, running={}), dirs, live=live or ())


FULL = log_dir(ONE, "/a", replicas=4)


def test_a_broker_with_all_log_dirs_cordoned_gets_no_replica() -> None:
    now = layout(FULL, log_dir(TWO, "/a", cordoned=True), log_dir(THREE, "/a"))
    assert (now.alive, now.accepting) == ((1, 2, 3), (1, 3))
    found = plan(now, goal(now, brokers=frozenset(now.accepting), drain=ids(1)))
    assert {copy.destination for change in found.changes for copy in change.copies} == {THREE}


@pytest.mark.parametrize("wanted", [{"add": ids(2)}, {"brokers": ids(1, 2), "balance": True}], ids=["add", "brokers"])
def test_a_goal_that_names_such_a_broker_is_refused(wanted: dict[str, object]) -> None:
    now = layout(FULL, log_dir(TWO, "/a", cordoned=True), log_dir(THREE, "/a"))
    with pytest.raises(Refused, match=r"2: each log dir is cordoned or offline, .* accept replicas: 1,3$"):
        plan(now, goal(now, **wanted))


def test_such_a_broker_can_be_drained() -> None:
    now = layout(replace(FULL, cordoned=True), log_dir(TWO, "/a"), log_dir(THREE, "/a"))
    found = plan(now, goal(now, brokers=frozenset(now.accepting), drain=ids(1)))
    assert len(found.changes) == 4


def test_only_the_volumes_of_other_log_dirs_have_room() -> None:
    """Broker 2 has 250 bytes below 85% of its open volume. The large volume is cordoned."""
    two = [log_dir(TWO, "/a", volume=(1000, 400)), log_dir(TWO, "/b", cordoned=True, volume=(9000, 8999))]
    now = layout(FULL, *two, log_dir(THREE, "/a", cordoned=True))
    assert now.brokers[TWO].disk == Disk(total=10_000, used=601)
    assert now.brokers[TWO].open_disk == Disk(total=1000, used=600)
    with pytest.raises(Refused, match=r"Broker 2 has the most room, but only 50 B \(50 bytes\) is left"):
        plan(now, goal(now, brokers=frozenset(now.accepting), drain=ids(1)))


@pytest.mark.parametrize(("into", "pending"), [("/a", 70), ("/b", 0), (None, 100)])
def test_a_running_move_needs_room_where_it_has_begun(into: str | None, pending: int) -> None:
    """Broker 2 gets 100 bytes. If it has begun to copy, it has 30 bytes in one log dir. /b is cordoned."""
    name = TopicPartition(TOPIC, 0)
    copy = Replica(partition=name, size=30, offset_lag=70, future=False)
    two = [log_dir(TWO, "/a", volume=(1000, 400)), log_dir(TWO, "/b", cordoned=True, volume=(9000, 8999))]
    dirs = [replace(each, replicas=(copy,) if each.path == into else ()) for each in two]
    moving = {name: PartitionReplicas(replicas=(ONE, TWO), adding=(TWO,), leader=ONE, isr=(ONE,))}
    snapshot = Snapshot(racks={ONE: None, TWO: None}, partitions=moving, running={})
    found = cluster(snapshot, [log_dir(ONE, "/a", replicas=1), *dirs]).brokers[TWO]
    assert found.disk is not None
    assert found.disk.pending == (100 if into is None else 70)
    assert found.open_disk == Disk(total=1000, used=600, pending=pending)


def test_sizes_of_a_stored_snapshot_get_the_cordons_of_the_live_cluster() -> None:
    live = [log_dir(ONE, "/a"), log_dir(TWO, "/a"), log_dir(THREE, "/a", cordoned=True)]
    now = layout(FULL, live=live)
    assert now.accepting == (1, 2)
    assert now.cordons == (Cordon(broker=THREE, log_dirs=("/a",), whole=True),)


@given(st.data())
def test_no_plan_gives_a_cordoned_broker_a_replica(data: st.DataObject) -> None:
    now = data.draw(clusters().filter(lambda found: len(found.alive) > 1))
    closed = data.draw(st.frozensets(st.sampled_from(now.alive), max_size=len(now.alive) - 1))
    cordon = {broker: Cordon(broker=broker, log_dirs=("/a",), whole=True) for broker in closed}
    now = replace(now, brokers={b: replace(found, cordon=cordon.get(b)) for b, found in now.brokers.items()})
    wanted = data.draw(goals(now))
    try:
        found = plan(now, wanted)
    except Refused:
        return
    assert closed.isdisjoint(copy.destination for change in found.changes for copy in change.copies)
