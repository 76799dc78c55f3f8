"""Small plans that a person can check. The default size is 100 bytes; brokers are 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest

from kquota.errors import Invalid, KquotaError, Refused
from kquota.placement.cluster import ClusterLayout, Disk, cluster
from kquota.placement.draft import MoveReason
from kquota.placement.goal import Goal
from kquota.placement.planned import Planned
from kquota.placement.planner import plan
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.port import Snapshot
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import BrokerId, TopicPartition
from tests.placement.clusters import TOPIC, goal, ids, small


@dataclass(frozen=True, kw_only=True)
class Case:
    """Partitions 0, 1, … as they are `now`. `then` are the partitions of the plan, and `copied` the copied bytes."""

    now: Sequence[Sequence[int]]
    wanted: dict[str, object]
    then: Mapping[int, tuple[int, ...]]
    copied: int
    given: dict[str, object] = field(default_factory=dict)


TWO_RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
FOUR = (1, 2, 3, 4)

CASES = {
    "drain a follower: its place in the order stays": Case(
        now=[[1, 3], [1, 2]], wanted={"drain": ids(3)}, then={0: (1, 2)}, copied=100
    ),
    "drain a leader: of two that could lead, the broker that leads less": Case(
        now=[[3, 1], [1, 2]], wanted={"drain": ids(3)}, then={0: (2, 1)}, copied=100
    ),
    "drain the preferred leader while another broker leads: that broker stays leader and becomes first": Case(
        now=[[3, 1], [2, 1]], wanted={"drain": ids(3)}, then={0: (1, 2)}, copied=100, given={"dead": [3]}
    ),
    "drain the only replica": Case(now=[[3], [1]], wanted={"drain": ids(3)}, then={0: (2,)}, copied=100),
    "drain: the largest first, each to the emptiest": Case(
        now=[[3], [3], [3], [1]],
        given={"sizes": [50, 300, 100, 100]},
        wanted={"drain": ids(3)},
        then={0: (1,), 1: (2,), 2: (1,)},
        copied=450,
    ),
    "drain: empty partitions do not all come to one broker": Case(
        now=[[3], [3], [3], [3]],
        given={"sizes": [0, 0, 0, 0]},
        wanted={"drain": ids(3)},
        then={0: (1,), 1: (2,), 2: (1,), 3: (2,)},
        copied=0,
    ),
    "drain into the same rack though another broker is emptier": Case(
        now=[[1, 4], [3]],
        given={"brokers": FOUR, "racks": TWO_RACKS},
        wanted={"drain": ids(4)},
        then={0: (1, 3)},
        copied=100,
    ),
    "drain to --brokers only": Case(
        now=[[1, 4]],
        given={"brokers": FOUR},
        wanted={"drain": ids(4), "brokers": ids(1, 3)},
        then={0: (1, 3)},
        copied=100,
    ),
    "drain past a disk that is full": Case(
        now=[[1, 4]],
        given={"brokers": FOUR, "disks": {2: (1000, 800), 3: (1000, 750)}},
        wanted={"drain": ids(4)},
        then={0: (1, 3)},
        copied=100,
    ),
    "more replicas: leaders stay, new ones last": Case(
        now=[[2], [1]], wanted={"replication_factor": 2}, then={0: (2, 3), 1: (1, 2)}, copied=200
    ),
    "more replicas: a rack without one first": Case(
        now=[[1], [3]],
        given={"brokers": FOUR, "racks": TWO_RACKS},
        wanted={"replication_factor": 2},
        then={0: (1, 4), 1: (3, 2)},
        copied=200,
    ),
    "fewer replicas: not the leader, from the fullest, nothing copied": Case(
        now=[[1, 2, 3], [3]], wanted={"replication_factor": 2}, then={0: (1, 2), 1: (3, 1)}, copied=100
    ),
    "fewer replicas: of two in a rack": Case(
        now=[[3, 2, 1]],
        given={"brokers": FOUR, "racks": TWO_RACKS},
        wanted={"replication_factor": 2},
        then={0: (3, 2)},
        copied=0,
    ),
    "fewer replicas: the dead one, though it is preferred": Case(
        now=[[3, 1, 2]], given={"dead": [3]}, wanted={"replication_factor": 2}, then={0: (1, 2)}, copied=0
    ),
    "drain and fewer replicas: the drained one goes, nothing is copied": Case(
        now=[[1, 2, 3]], wanted={"drain": ids(2), "replication_factor": 2}, then={0: (1, 3)}, copied=0
    ),
    "racks: the follower moves": Case(
        now=[[1, 2]],
        given={"brokers": FOUR, "racks": TWO_RACKS},
        wanted={"repair_racks": True},
        then={0: (1, 3)},
        copied=100,
    ),
    "racks: three replicas on two racks are as good as it gets": Case(
        now=[[1, 2, 3]],
        given={"brokers": FOUR, "racks": TWO_RACKS},
        wanted={"repair_racks": True},
        then={},
        copied=0,
    ),
    # Band 600 to 733: 2 can give four followers and is at 600; 1 has only leaders to give, and gives two.
    "add: the new broker comes to the band, from followers first, and no further": Case(
        now=[[1, 2]] * 10,
        wanted={"add": ids(3), "tolerance": Fraction(10, 100)},
        then={4: (2, 3), 5: (3, 2)} | dict.fromkeys(range(6, 10), (1, 3)),
        copied=600,
    ),
    "balance: nothing within the tolerance": Case(
        now=[[1], [2], [3]],
        given={"sizes": [100, 110, 105]},
        wanted={"balance": True},
        then={},
        copied=0,
    ),
    "balance: followers before leaders": Case(
        now=[[1, 2], [2, 1], [1], [3, 1]],
        given={"sizes": [100, 100, 100, 100]},
        wanted={"balance": True, "tolerance": Fraction(30, 100)},
        then={1: (2, 3)},
        copied=100,
    ),
    "balance: two change places where no single one can move": Case(
        now=[[1], [1], [2], [2]],
        given={"sizes": [60, 60, 50, 30], "brokers": (1, 2)},
        wanted={"balance": True},
        then={0: (2,), 3: (1,)},
        copied=90,
    ),
    "balance: a single partition larger than the mean stays": Case(
        now=[[1], [2]], given={"sizes": [900, 30]}, wanted={"balance": True}, then={}, copied=0
    ),
    "a partition that is moving is left alone": Case(
        now=[[1, 3], [2, 3]], given={"moving": [1]}, wanted={"drain": ids(3)}, then={0: (1, 2)}, copied=100
    ),
    "a partition without a leader is left alone": Case(
        now=[[1, 3], [3]], given={"dead": [3]}, wanted={"drain": ids(3)}, then={0: (1, 2)}, copied=100
    ),
}


def stage(case: Case) -> ClusterLayout:
    given = dict(case.given)
    moving = given.pop("moving", [])
    found = small(case.now, **given)  # type: ignore[arg-type]
    partitions = dict(found.partitions)
    for number in moving:  # type: ignore[attr-defined]
        name = TopicPartition(TOPIC, number)
        partitions[name] = replace(partitions[name], adding=partitions[name].replicas[-1:])
    return replace(found, partitions=partitions)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_plan(case: Case) -> None:
    cluster = stage(case)
    found = plan(cluster, goal(cluster, **case.wanted))
    assert {change.partition.partition: change.after for change in found.changes} == case.then
    assert found.bytes == case.copied


REFUSED = {
    "too few brokers": ([[1, 2, 3]], {}, {"drain": ids(3)}, Refused, "t-0 needs 3 replicas, but only 2 of the brokers"),
    "too few brokers for the replication factor": (
        [[1, 2]],
        {},
        {"replication_factor": 4},
        Refused,
        "t-0 needs 4 replicas, but only 3 of the brokers may hold one (1,2,3). No plan is possible. Give more brokers, "
        "drain fewer brokers, or give a lower replication_factor",
    ),
    "too few brokers for a topic without a replication factor": (
        [[1, 2, 3]],
        {},
        {"drain": ids(3), "replication_factor": 2, "topics": frozenset()},
        Refused,
        "t-0 needs 3 replicas, but only 2 of the brokers may hold one (1,2). No plan is possible. Give more brokers, "
        "or drain fewer brokers",
    ),
    "no room below a limit of almost 100%": (
        [[1, 3]],
        {"disks": {2: (100_000, 99_600)}},
        {"drain": ids(3), "disk_limit": Fraction("0.996")},
        Refused,
        "nothing is left below 99.6% of its disk",
    ),
    "no room": (
        [[1, 3]],
        {"disks": {2: (1000, 800)}},
        {"drain": ids(3)},
        Refused,
        "no broker has room for a replica of t-0, 100 B (100 bytes). Broker 2 has the most room, but only",
    ),
    "an unknown broker": (
        [[1]],
        {},
        {"drain": ids(9)},
        Refused,
        "broker 9 does not exist, and no partition has a replica there (known brokers: 1,2,3). Correct drain",
    ),
    "add a dead broker": (
        [[1]],
        {"dead": [3]},
        {"add": ids(3)},
        Refused,
        "add: broker 3 is dead. Give only live brokers: 1,2",
    ),
    "in and out": ([[1]], {}, {"add": ids(3), "drain": ids(3)}, Invalid, "broker 3: listed in drain and in add"),
    "all out": (
        [[1]],
        {},
        {"drain": ids(1, 2, 3)},
        Invalid,
        "because drain names every broker that may get replicas (1,2,3). Leave at least one of them out of drain",
    ),
    "all given brokers out": (
        [[1]],
        {},
        {"drain": ids(1, 2), "brokers": ids(1, 2)},
        Invalid,
        "(1,2). Leave at least one of them out of drain, or also list broker 3 in brokers",
    ),
    "no broker accepts replicas": ([[1]], {}, {"brokers": ids()}, Invalid, "because no live broker accepts new"),
    "add outside": ([[1]], {}, {"add": ids(3), "brokers": ids(1)}, Invalid, "add 3: not among brokers 1"),
}


@pytest.mark.parametrize(("now", "given", "wanted", "error", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(
    now: list[list[int]], given: dict[str, object], wanted: dict[str, object], error: type[KquotaError], reason: str
) -> None:
    cluster = small(now, **given)  # type: ignore[arg-type]
    with pytest.raises(error) as refused:
        plan(cluster, goal(cluster, **wanted))
    assert reason in str(refused.value)


def test_an_unreachable_goal_is_reported_with_the_reason() -> None:
    """Broker 4 is the last of its rack; the only broker of rack b is full; 1 already moves; 2 has no leader."""
    now = small([[1, 4], [1, 4], [4]], brokers=(1, 2, 4), dead=[4], racks={1: "a", 2: "b"})
    found = plan(now, goal(now, drain=ids(4)))
    assert [(left.partition.partition, left.why) for left in found.left] == [
        (2, "has no leader, so nothing can be copied. First start a broker that has one of its replicas")
    ]
    racks = small([[1, 4]], brokers=(1, 2, 4), racks={1: "a", 2: "a", 4: "b"})
    found = plan(racks, goal(racks, drain=ids(4)))
    assert [left.why for left in found.left] == [
        "is reduced from 2 racks to 1, because no broker in another rack can get a replica"
    ]
    full = small([[1, 2]], brokers=(1, 2, 4), racks={1: "a", 2: "a", 4: "b"}, disks={4: (1000, 849)})
    found = plan(full, goal(full, repair_racks=True))
    assert [left.why for left in found.left] == ["keeps its number of racks (1), because no broker in rack b has room"]
    assert not found.changes


def test_a_replica_that_two_goals_move_moves_once() -> None:
    """Broker 3 is drained.

    A replica that the balance would move again goes directly to its final broker, and counts once.
    """
    now = small([[1, 3]] * 8, brokers=(1, 2, 3))
    found = plan(now, goal(now, drain=ids(3), balance=True))
    assert {copy.why for change in found.changes for copy in change.copies} == {MoveReason.DRAIN}
    assert found.bytes == found.least.bytes == 800


def test_a_balance_reaches_its_lower_bound() -> None:
    """1 holds 600, 2 and 3 hold 300 each: mean 400, band 360 to 440; 1 must give 160, and 2 and 3 lack 60 each."""
    now = small([[1]] * 30 + [[2]] * 15 + [[3]] * 15, sizes=[20] * 60)
    found = plan(now, goal(now, balance=True))
    assert (found.least.excess, found.least.lack, found.bytes) == (160, 120, 160)
    assert [found.brokers[broker].after.bytes for broker in sorted(ids(1, 2, 3))] == [440, 380, 380]


def log_dir(broker: int, path: str, replicas: dict[int, int], volume: tuple[int, int] | None) -> LogDir:
    return LogDir(
        broker=BrokerId(broker),
        rack=None,
        path=path,
        error=None,
        volume_total=None if volume is None else volume[0],
        volume_usable=None if volume is None else volume[1],
        replicas=tuple(
            Replica(partition=TopicPartition(TOPIC, number), size=size, offset_lag=0, future=False)
            for number, size in replicas.items()
        ),
    )


def read(*log_dirs: LogDir, disk: int | None = None) -> ClusterLayout:
    one = (BrokerId(1), BrokerId(2))
    partitions = {
        TopicPartition(TOPIC, n): PartitionReplicas(replicas=one, leader=BrokerId(1), isr=one) for n in (0, 1)
    }
    partitions[TopicPartition(TOPIC, 2)] = PartitionReplicas(replicas=(BrokerId(3),), leader=None)
    snapshot = Snapshot(racks={BrokerId(1): None, BrokerId(2): None}, partitions=partitions, running={})
    return cluster(snapshot, log_dirs, disk)


def test_a_size_is_that_of_the_leader_else_the_largest_else_unknown() -> None:
    """A log on a broker that is not a replica may be a remainder, so it counts last."""
    moved = log_dir(3, "/a", {0: 99, 1: 99}, None)
    found = read(log_dir(1, "/a", {0: 90}, None), log_dir(2, "/a", {0: 95, 1: 40}, None), moved)
    assert read(moved).sizes == {TopicPartition(TOPIC, 0): 99, TopicPartition(TOPIC, 1): 99}
    assert found.sizes == {TopicPartition(TOPIC, 0): 90, TopicPartition(TOPIC, 1): 40}
    assert found.alive == (1, 2)
    assert not found.brokers[BrokerId(3)].alive


DISKS = {
    "two volumes count together": ([(1000, 400), (2000, 500)], Disk(total=3000, used=2100)),
    "two log dirs on one volume count once": ([(1000, 400), (1000, 400)], Disk(total=1000, used=600)),
    "one unknown volume makes the disk unknown": ([(1000, 400), None], None),
    "no volume": ([], None),
}


@pytest.mark.parametrize(("volumes", "disk"), DISKS.values(), ids=DISKS)
def test_the_disk_of_a_broker(volumes: list[tuple[int, int] | None], disk: Disk | None) -> None:
    found = read(*(log_dir(1, f"/{number}", {}, volume) for number, volume in enumerate(volumes)))
    assert found.brokers[BrokerId(1)].disk == disk


@pytest.mark.parametrize(("total", "grown", "share"), [(100, 30, 0.8), (100, -60, 0.0), (0, 5, None)])
def test_the_used_fraction_of_a_disk(total: int, grown: int, share: float | None) -> None:
    """Replica sizes and volume sizes are read one after the other, so more bytes may leave than the disk has."""
    assert Disk(total=total, used=50).share(grown) == share


def test_a_given_disk_size_is_for_brokers_that_do_not_report_it() -> None:
    """Only the replicas of these brokers count as used."""
    found = read(log_dir(1, "/a", {0: 90, 1: 10}, (500, 50)), disk=1000)
    assert {broker: of.disk for broker, of in found.brokers.items()} == {
        BrokerId(1): Disk(total=500, used=450),
        BrokerId(2): Disk(total=1000, used=100),
        BrokerId(3): Disk(total=1000, used=0),
    }


def under_way(volume: tuple[int, int] | None, *more: LogDir, disk: int | None = None) -> ClusterLayout:
    """Partition 0, 500 bytes, is moving to broker 3, which already has 5 bytes of it. Partition 1, 400 bytes, is on
    broker 1. `volume` is the volume of broker 3.
    """
    one, three = BrokerId(1), BrokerId(3)
    partitions = {
        TopicPartition(TOPIC, 0): PartitionReplicas(replicas=(BrokerId(2), three), adding=(three,), leader=BrokerId(2)),
        TopicPartition(TOPIC, 1): PartitionReplicas(replicas=(one,), leader=one, isr=(one,)),
    }
    snapshot = Snapshot(racks={one: None, BrokerId(2): None, three: None}, partitions=partitions, running={})
    held = [log_dir(1, "/a", {1: 400}, None), log_dir(2, "/a", {0: 500}, None), log_dir(3, "/a", {0: 5}, volume)]
    return cluster(snapshot, [*held, *more], disk)


def drained_to_three(now: ClusterLayout) -> Planned:
    return plan(now, goal(now, drain=ids(1), brokers=ids(1, 3)))


def test_a_disk_keeps_room_for_a_running_move() -> None:
    """85% of 1,000 bytes hold the 105 bytes now and the copy of 400 bytes, but not also the 495 bytes under way."""
    with pytest.raises(
        Refused, match=r"no broker has room.*only 250 B .*disk\. The 495 B that running moves still copy to it count"
    ):
        drained_to_three(under_way((1000, 895)))
    found = drained_to_three(under_way((2000, 1895)))
    assert (found.brokers[BrokerId(3)].disk_worst, found.brokers[BrokerId(3)].incoming) == (0.5, 400)
    assert found.brokers[BrokerId(3)].disk_after == 0.5


def test_a_running_move_counts_once_with_a_given_disk_size() -> None:
    """85% of 1,060 bytes is 901: enough for both partitions, 900 bytes."""
    found = drained_to_three(under_way(None, disk=1060))
    assert found.brokers[BrokerId(3)].disk == Disk(total=1060, used=500)
    with pytest.raises(Refused, match="no broker has room"):
        drained_to_three(under_way(None, disk=1050))


def test_a_copy_between_log_dirs_that_is_under_way_also_needs_room() -> None:
    """The broker deletes the old replica only after the copy."""
    copy = Replica(partition=TopicPartition(TOPIC, 1), size=100, offset_lag=300, future=True)
    dirs = [log_dir(1, "/a", {1: 400}, (2000, 1000)), replace(log_dir(1, "/b", {}, (3000, 500)), replicas=(copy,))]
    assert read(*dirs).brokers[BrokerId(1)].disk == Disk(total=5000, used=3500, pending=300)
    unreported = [replace(each, volume_total=None, volume_usable=None) for each in dirs]
    assert read(*unreported, disk=9000).brokers[BrokerId(1)].disk == Disk(total=9000, used=800)


def test_only_the_topics_of_a_goal_move() -> None:
    now = small([[1, 3]])
    nothing: Goal = goal(now, drain=ids(3), drained_topics=frozenset({"other"}))
    assert plan(now, nothing).changes == ()
