"""The Spark job against the same sums in plain Python, and what it refuses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.pace.work import Link, Work
from kquota.reassign.feasible import carried
from kquota.reassign.moves import Partition, moves
from kquota.reassign.plan import Plan
from kquota.spark import files
from kquota.spark.reader import Reader
from kquota.terms import BrokerId, TopicPartition
from tests.spark.rows import Row, log_dirs, row, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kquota.spark.estimate import Measured, Writes

pytestmark = pytest.mark.spark

BROKERS = [1, 2, 3, 4]


def writes(
    by_broker: dict[int, float] | None = None, by_partition: dict[TopicPartition, float] | None = None
) -> Writes:
    from kquota.spark.estimate import Writes

    return Writes(
        by_broker={BrokerId(b): rate for b, rate in (by_broker or {}).items()}, by_partition=by_partition or {}
    )


def plan(targets: dict[TopicPartition, list[int]]) -> Plan:
    return Plan(targets={p: tuple(BrokerId(b) for b in brokers) for p, brokers in targets.items()})


def of_rows(spark: SparkSession, rows: list[Row], moves: Plan, rates: Writes) -> Measured:
    from kquota.spark.estimate import measure, planned
    from kquota.spark.sizes import from_snapshots

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        found = files.snapshots([written(scratch / "s.jsonl.gz", rows)], scratch)
        reader = Reader(spark=spark, scratch=scratch)
        return measure(from_snapshots(reader, found), found, planned(reader, moves), rates, reader)


def of_log_dirs(spark: SparkSession, text: str, moves: Plan, rates: Writes) -> Measured:
    from kquota.spark.estimate import measure, planned
    from kquota.spark.sizes import from_log_dirs

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "printed").write_text(text)
        found = files.log_dirs([str(scratch / "printed")], scratch)
        reader = Reader(spark=spark, scratch=scratch)
        return measure(from_log_dirs(reader, found), found, planned(reader, moves), rates, reader)


def test_the_in_sync_follower_of_a_real_move(spark: SparkSession) -> None:
    printed = log_dirs((1, {"my-topic-0": 91}), (2, {"my-topic-0": 91}), (3, {}))
    moved = of_log_dirs(spark, printed, plan({TopicPartition("my-topic", 0): [1, 3]}), writes({1: 3.0}))
    copy = Link(leader=1, destination=3, copies=1, bytes=91, writes=3.0)
    assert moved.work == Work(links=(copy,), keep_up={1: 3.0})
    assert moved.health.brokers == (1, 2, 3)
    assert (moved.partitions, moved.moving, moved.log_size, moved.leaders_assumed) == (1, 1, 182, 1)


def test_rows_that_are_left_out_are_counted(spark: SparkSession) -> None:
    rows = [
        row(1, "t", 0, 10, leader=True),
        row(1, "t", 0, 7, log_dir="/e"),
        row(2, "t", 0, 10, future=True),
        row(None, "t", 0, 10),
        row(2, "t", 0, -1),
        row(2, "t", None, 3),
    ]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [2]}), writes())
    assert (moved.health.bad, moved.health.duplicate, moved.health.future) == (3, 1, 1)
    assert (moved.log_size, moved.max_bytes_in, {link.bytes for link in moved.work.links}) == (10, None, {10})


def test_a_leader_whose_partitions_are_all_empty_writes_to_each_the_same(spark: SparkSession) -> None:
    rows = [row(1, "t", 0, 0), row(1, "t", 1, 0)]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [2]}), writes({1: 4.0, 9: 1.0}))
    assert {link.writes for link in moved.work.links} == {2.0}
    assert moved.unallotted == (9,)


REFUSED = {
    "cut off": ('{"version":1,"brokers":[{"broker"', "printed: is not the JSON that was expected"),
    "unknown version": (log_dirs((1, {"t-0": 1}), version=2), "printed: unknown version 2"),
    "no brokers": ('{"version":1}', "printed: names no brokers"),
    "empty": (log_dirs((1, {})), "printed: holds no replica"),
    "an unknown partition": (log_dirs((1, {"u-0": 1})), "sizes do not hold: t-0"),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(spark: SparkSession, text: str, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        of_log_dirs(spark, text, plan({TopicPartition("t", 0): [1]}), writes())


Held = dict[int, tuple[int, bool | None]]
"""Of each broker that holds a partition: its size, and whether it is told to be in sync."""
Cluster = dict[TopicPartition, tuple[Held, list[int], bool, bool]]
"""Of each partition: who holds it, the wanted replicas, whether the plan names it, whether its leader is told."""

brokers = st.sampled_from(BROKERS)
partitions = st.builds(TopicPartition, st.sampled_from(["t", "u-1"]), st.integers(0, 2))
held = st.dictionaries(
    brokers, st.tuples(st.integers(0, 10**6), st.sampled_from([None, True, False])), min_size=1, max_size=3
)
wanted = st.lists(brokers, min_size=1, max_size=3, unique=True)
clusters = st.dictionaries(partitions, st.tuples(held, wanted, st.booleans(), st.booleans()), min_size=1, max_size=5)
rate = st.integers(0, 10**6).map(float)
known = st.one_of(
    st.builds(writes),
    st.builds(lambda by: writes(by_broker=by), st.dictionaries(brokers, rate, min_size=1)),
    st.builds(lambda by: writes(by_partition=by), st.dictionaries(partitions, rate, min_size=1)),
)


@settings(max_examples=15, deadline=None)
@given(cluster=clusters, rates=known)
def test_the_same_sums_as_the_gate_of_execute(spark: SparkSession, cluster: Cluster, rates: Writes) -> None:
    rows = [
        row(b, p.topic, p.partition, size, in_sync=in_sync, leader=b == max(held) if told else None)
        for p, (held, _, _, told) in cluster.items()
        for b, (size, in_sync) in held.items()
    ]
    wanted = plan({partition: wanted for partition, (_, wanted, planned, _) in cluster.items() if planned})
    found = of_rows(spark, rows, wanted, rates).work
    now = {p: standing(cluster, p) for p in cluster}
    sizes = {p: held[leader_of(cluster, p)][0] for p, (held, *_) in cluster.items()}
    expected = carried(moves(wanted, now), now, sizes, {p: written_to(cluster, rates, p) for p in cluster})
    assert [exact(link) for link in found.links] == [exact(link) for link in expected.links]
    assert [link.writes for link in found.links] == pytest.approx([link.writes for link in expected.links])
    assert found.keep_up == pytest.approx(dict(expected.keep_up))


def exact(link: Link) -> tuple[int, int, int, int]:
    """Integers: equal to the byte."""
    return link.leader, link.destination, link.copies, link.bytes


def standing(cluster: Cluster, partition: TopicPartition) -> Partition:
    held, leader = cluster[partition][0], leader_of(cluster, partition)
    in_sync = [b for b, (_, told) in held.items() if told is not False or b == leader]
    return Partition(
        replicas=tuple(map(BrokerId, held)), leader=BrokerId(leader), isr=tuple(map(BrokerId, sorted(in_sync)))
    )


def leader_of(cluster: Cluster, partition: TopicPartition) -> int:
    held, wanted, planned, told = cluster[partition]
    return max(held) if told else next((b for b in wanted if planned and b in held), min(held))


def written_to(cluster: Cluster, rates: Writes, partition: TopicPartition) -> float | None:
    if rates.by_partition:
        return rates.by_partition.get(partition)
    leader = leader_of(cluster, partition)
    sizes = {p: cluster[p][0][leader][0] for p in cluster if leader_of(cluster, p) == leader}
    part = sizes[partition] / sum(sizes.values()) if sum(sizes.values()) else 1 / len(sizes)
    rate = rates.by_broker.get(BrokerId(leader))
    return None if rate is None else rate * part
