"""Properties of every plan, for all clusters and goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import assume, given
from hypothesis import strategies as st

from kquota.errors import Refused
from kquota.placement.cluster import ClusterLayout
from kquota.placement.goal import Goal
from kquota.placement.planned import Planned
from kquota.placement.planner import plan
from kquota.terms import BrokerId, TopicPartition
from tests.placement.clusters import after, clusters, goals

_K = TypeVar("_K")
_V = TypeVar("_V")


def made(cluster: ClusterLayout, goal: Goal) -> Planned:
    try:
        return plan(cluster, goal)
    except Refused as refused:
        # Few brokers cannot hold many replicas. Every refusal names the partition.
        assert any(str(name) in str(refused) for name in cluster.partitions)
        assume(False)
        raise


@st.composite
def tasks(draw: st.DrawFn, *, disks: bool = False) -> tuple[ClusterLayout, Goal]:
    cluster = draw(clusters(disks=disks).filter(lambda found: bool(found.alive)))
    return cluster, draw(goals(cluster))


def racks(cluster: ClusterLayout, replicas: tuple[BrokerId, ...]) -> int:
    known = cluster.racks()
    return len({known[broker] for broker in replicas if broker in known})


def stuck(planned: Planned) -> set[TopicPartition]:
    return {left.partition for left in planned.left}


@given(tasks())
def test_every_partition_has_the_wanted_replicas_on_distinct_allowed_brokers(
    task: tuple[ClusterLayout, Goal],
) -> None:
    cluster, goal = task
    planned = made(cluster, goal)
    for change in planned.changes:
        assert len(set(change.after)) == len(change.after)
        assert set(change.after) - set(change.before) <= set(goal.destinations)
        wanted = goal.replication_factor if change.partition.topic in goal.topics else None
        assert len(change.after) == (len(change.before) if wanted is None else wanted)
        assert change.before != change.after
    if goal.replication_factor is not None:
        then = after(cluster, planned).partitions
        for name in set(then) - stuck(planned):
            assert name.topic not in goal.topics or len(then[name].replicas) == goal.replication_factor


@given(tasks())
def test_a_drained_broker_holds_only_reported_partitions(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, goal)
    for name, now in after(cluster, planned).partitions.items():
        if name.topic in goal.drained_topics and name not in stuck(planned):
            assert goal.drain.isdisjoint(now.replicas)


@given(tasks())
def test_a_partition_without_a_goal_is_unchanged(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    for change in made(cluster, goal).changes:
        now = cluster.partitions[change.partition]
        drained = change.partition.topic in goal.drained_topics and not goal.drain.isdisjoint(now.replicas)
        assert change.partition.topic in goal.topics or drained
        assert not now.moving
        assert now.leader is not None


@given(tasks())
def test_no_partition_loses_a_rack_unless_reported(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, goal)
    for change in planned.changes:
        if change.partition not in stuck(planned):
            before = min(racks(cluster, change.before), len(change.after))
            assert racks(cluster, change.after) >= before


@given(tasks())
def test_repaired_partitions_use_as_many_racks_as_possible(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, replace(goal, repair_racks=True))
    known = cluster.racks()
    reachable = {known[broker] for broker in goal.destinations if broker in known}
    for name, now in after(cluster, planned).partitions.items():
        if name.topic in goal.topics and name not in stuck(planned):
            counted = [broker for broker in now.replicas if broker in known]
            at_least = min(len(counted), len(reachable | {known[broker] for broker in counted}))
            assert racks(cluster, now.replicas) == at_least


@given(tasks())
def test_a_second_plan_after_the_first_is_empty(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, goal)
    assert plan(after(cluster, planned), goal).changes == ()


@given(tasks(disks=True))
def test_no_disk_exceeds_its_limit_at_the_worst_moment(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    for share in made(cluster, goal).brokers.values():
        assert share.disk is not None
        used = share.disk.used + share.disk.pending + share.incoming
        assert share.incoming == 0 or used <= share.disk.total * goal.disk_limit


@given(tasks())
def test_drain_and_replication_factor_copy_exactly_the_minimum(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, replace(goal, repair_racks=False, balance=False, add=frozenset()))
    assert planned.bytes == planned.least.bytes
    by_hand = sum(
        cluster.sizes[change.partition] * len(set(change.after) - set(change.before)) for change in planned.changes
    )
    assert planned.bytes == by_hand


@given(tasks())
def test_a_balanced_plan_copies_at_least_the_lower_bound(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, goal)
    band = planned.band
    fed = goal.destinations if goal.balance else goal.add
    reached = band is None or all(
        band.low <= planned.brokers[broker].after.bytes
        and (planned.brokers[broker].after.bytes <= band.high or not goal.balance)
        for broker in fed
    )
    assert not reached or planned.bytes >= planned.least.bytes


@given(tasks())
def test_balance_never_increases_the_imbalance(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    goal = replace(goal, drain=frozenset(), replication_factor=None, repair_racks=False)
    planned = made(cluster, goal)
    if planned.band is not None:
        off = [
            (planned.band.off(share.before.bytes), planned.band.off(share.after.bytes))
            for broker, share in planned.brokers.items()
            if broker in goal.destinations
        ]
        assert sum(then for _, then in off) <= sum(now for now, _ in off)
        assert not planned.changes or sum(then for _, then in off) < sum(now for now, _ in off)


@given(tasks())
def test_leaders_and_preferred_leaders_stay_unless_drained(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    planned = made(cluster, replace(goal, balance=False, add=frozenset()))
    for change in planned.changes:
        assert change.leader_before is not None
        if change.leader_before not in goal.drain:
            assert change.leader_after == change.leader_before
        if change.before[0] in change.after:
            assert change.after[0] == change.before[0]
        elif change.leader_before in change.after:
            assert change.after[0] == change.leader_before


@given(tasks(), st.randoms())
def test_the_order_of_the_input_does_not_matter(task: tuple[ClusterLayout, Goal], shuffled: Random) -> None:
    cluster, goal = task

    def mixed(found: Mapping[_K, _V]) -> dict[_K, _V]:
        items = list(found.items())
        shuffled.shuffle(items)
        return dict(items)

    other = ClusterLayout(
        brokers=mixed(cluster.brokers), partitions=mixed(cluster.partitions), sizes=mixed(cluster.sizes)
    )
    one, two = made(cluster, goal), plan(other, goal)
    assert one == two
    assert one.plan.text() == two.plan.text()


@given(tasks())
def test_every_copy_is_explained(task: tuple[ClusterLayout, Goal]) -> None:
    cluster, goal = task
    for change in made(cluster, goal).changes:
        came, went = set(change.after) - set(change.before), set(change.before) - set(change.after)
        assert {copy.destination for copy in change.copies} == came
        sources = [copy.source for copy in change.copies if copy.source is not None]
        assert sorted([*sources, *change.drops]) == sorted(went)
