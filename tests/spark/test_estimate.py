"""The Spark job against the same sums in plain Python, and its errors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from kquota.errors import Invalid, Refused
from kquota.pace.disk_space import Arrival, Volume
from kquota.pace.waves import Split
from kquota.pace.work import Link, Work
from kquota.reassign.moves import PartitionReplicas, carried, moves
from kquota.reassign.plan import Plan
from kquota.reassign.running_copies import RunningCopy
from kquota.spark import files
from kquota.spark.reader import Reader
from kquota.terms import BrokerId, TopicPartition
from tests.spark.rows import Row, log_dirs, row, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquota.spark.estimate import Measured, Writes

pytestmark = pytest.mark.spark

BROKERS = [1, 2, 3, 4]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The write rates of producers: by broker and by partition."""

    by_broker: dict[int, float] = field(default_factory=dict)
    by_partition: dict[TopicPartition, float] = field(default_factory=dict)


def writes_of(rates: Rates, reader: Reader) -> Writes:
    from kquota.spark.estimate import Writes

    rows = ({"topic": p.topic, "partition": p.partition, "w": w} for p, w in rates.by_partition.items())
    table = reader.table("rates", rows, "topic string, `partition` int, w double") if rates.by_partition else None
    return Writes(by_broker={BrokerId(b): rate for b, rate in rates.by_broker.items()}, by_partition=table)


def plan(targets: dict[TopicPartition, list[int]]) -> Plan:
    return Plan(targets={p: tuple(BrokerId(b) for b in brokers) for p, brokers in targets.items()})


def of_rows(spark: SparkSession, rows: list[Row], moves: Plan, rates: Rates, **more: Any) -> Measured:
    from kquota.spark.sizes import from_snapshots

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        found = files.laid_out([Path(written(scratch / "s.jsonl.gz", rows))], scratch / "history", ".jsonl")
        reader = Reader(spark=spark, scratch=scratch)
        return measured(from_snapshots(reader, found), found, moves, rates, reader, **more)


def of_log_dirs(spark: SparkSession, text: str, moves: Plan, rates: Rates, **more: Any) -> Measured:
    from kquota.spark.sizes import from_log_dirs

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "printed").write_text(text)
        found = files.log_dirs([str(scratch / "printed")], scratch)
        reader = Reader(spark=spark, scratch=scratch)
        return measured(from_log_dirs(reader, found), found, moves, rates, reader, **more)


def measured(
    replicas: DataFrame, found: files.Files, moves: Plan, rates: Rates, reader: Reader, **more: Any
) -> Measured:
    from kquota.spark.estimate import bytes_left, measure
    from kquota.spark.plans import planned

    missing = {(p, BrokerId(b)): RunningCopy(copied=None, left=n) for (p, b), n in more.pop("left", {}).items()}
    left = bytes_left(reader, missing)
    return measure(replicas, found, planned(reader, moves), writes_of(rates, reader), reader, left=left, **more)


def test_the_in_sync_follower_of_a_real_move(spark: SparkSession) -> None:
    printed = log_dirs((1, {"my-topic-0": 91}), (2, {"my-topic-0": 91}), (3, {}))
    moved = of_log_dirs(spark, printed, plan({TopicPartition("my-topic", 0): [1, 3]}), Rates(by_broker={1: 3.0}))
    copy = Link(leader=1, destination=3, copies=1, bytes=91, writes=3.0)
    assert moved.work == Work(links=(copy,), keep_up={1: 3.0})
    assert moved.health.brokers == (1, 2, 3)
    assert (moved.partitions, moved.moving, moved.log_size, moved.leaders_assumed) == (1, 1, 182, 1)


def test_omitted_rows_are_counted(spark: SparkSession) -> None:
    rows = [
        row(1, "t", 0, 10, leader=True),
        row(1, "t", 0, 7, log_dir="/e"),
        row(2, "t", 0, 10, future=True),
        row(None, "t", 0, 10),
        row(2, "t", 0, -1),
        row(2, "t", None, 3),
    ]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [2]}), Rates())
    assert (moved.health.bad, moved.health.duplicate, moved.health.future) == (3, 1, 1)
    assert (moved.log_size, moved.max_bytes_in, {link.bytes for link in moved.work.links}) == (10, None, {10})


def test_followers_out_of_sync_are_counted_also_if_nothing_moves(spark: SparkSession) -> None:
    """T-0 has all its replicas, t-1 moves, and t-2 is not in the plan. Broker 2 is behind everywhere."""
    rows = [row(b, "t", n, 10, leader=b == 1, in_sync=b == 1) for b in (1, 2) for n in range(3)]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [1, 2], TopicPartition("t", 1): [1, 3]}), Rates())
    assert (moved.behind, moved.lagging) == (1, 1)


def test_running_copies_count_with_what_they_still_miss(spark: SparkSession) -> None:
    """A copy of t-0 misses 4 of 10 bytes, that of t-1 everything, and that of u-0 is not in the plan."""
    names = [TopicPartition("t", 0), TopicPartition("t", 1)]
    rows = [row(1, name.topic, name.partition, 10, leader=True) for name in (*names, TopicPartition("u", 0))]
    left = {(names[0], 2): 4, (TopicPartition("u", 0), 2): 1}
    moved = of_rows(spark, rows, plan({name: [1, 2] for name in names}), Rates(by_broker={1: 30.0}), left=left)
    # The rate of broker 1 is still divided by the sizes of its partitions.
    assert moved.work == Work(links=(Link(leader=1, destination=2, copies=2, bytes=14, writes=20.0),), keep_up={1: 0.0})
    assert moved.arrivals[0].bytes == 14


def test_a_leader_whose_partitions_are_all_empty_writes_to_each_the_same(spark: SparkSession) -> None:
    rows = [row(1, "t", 0, 0), row(1, "t", 1, 0)]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [2]}), Rates(by_broker={1: 4.0, 9: 1.0}))
    assert {link.writes for link in moved.work.links} == {2.0}
    assert (moved.unallotted, moved.max_bytes_in) == ((9,), 4.0)


def all_partitions(*rates: float) -> dict[TopicPartition, float]:
    return dict(zip([TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)], rates, strict=False))


BUSIEST: dict[str, tuple[Rates, float | None]] = {
    # Broker 1 leads t-0 and t-1, broker 2 u-0.
    "no rates": (Rates(), None),
    "both by broker": (Rates(by_broker={1: 5.0, 2: 3.0}), 5.0),
    "one of two by broker": (Rates(by_broker={1: 5.0}), None),
    "a broker that leads nothing": (Rates(by_broker={1: 5.0, 2: 3.0, 9: 100.0}), 5.0),
    "by partition": (Rates(by_partition=all_partitions(3.0, 4.0, 5.0)), 7.0),
    "but one partition": (Rates(by_partition=all_partitions(3.0, 4.0)), None),
    "the missing partition is on a broker with a known rate": (
        Rates(by_broker={2: 1.0}, by_partition=all_partitions(3.0, 4.0)),
        7.0,
    ),
}


@pytest.mark.parametrize(("rates", "busiest"), BUSIEST.values(), ids=BUSIEST)
def test_the_maximum_write_rate_is_known_only_if_every_leaders_rate_is(
    spark: SparkSession, rates: Rates, busiest: float | None
) -> None:
    rows = [row(1, "t", 0, 10, leader=True), row(1, "t", 1, 10, leader=True), row(2, "u", 0, 10, leader=True)]
    moved = of_rows(spark, rows, plan({TopicPartition("t", 0): [2]}), rates)
    assert moved.max_bytes_in == busiest
    assert moved.any_rate_known is bool(rates.by_broker or rates.by_partition)


REFUSED = {
    "cut off": ('{"version":1,"brokers":[{"broker"', "printed: is not the expected JSON"),
    "unknown version": (log_dirs((1, {"t-0": 1}), version=2), "printed: unknown version 2"),
    "no brokers": ('{"version":1}', "printed: contains no brokers"),
    "a snapshot": (
        '{"version":1,"cluster":"c","broker":1,"log_dir":"/d","topic":"t","partition":0,"size":1}',
        "printed: is a snapshot of replica sizes. Give its folder with history",
    ),
    "empty": (log_dirs((1, {})), "printed: contains no usable replica"),
    "another cluster's": (
        log_dirs((1, {"u-0": 1})),
        "contain none of the plan's partitions \\(1\\). Give sizes of the same cluster",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(spark: SparkSession, text: str, complaint: str) -> None:
    with pytest.raises((Invalid, Refused), match=complaint):
        of_log_dirs(spark, text, plan({TopicPartition("t", 0): [1]}), Rates())


def test_partitions_without_sizes_are_refused_by_name_or_assumed(spark: SparkSession) -> None:
    """An assumed partition is on the plan's first replica, which leads it, and is copied to the others."""
    rows = [row(1, "t", 0, 10, leader=True)]
    moves = plan({TopicPartition("t", n): [2, 3] for n in range(8)})
    with pytest.raises(
        Refused, match=r"sizes do not contain: t-1, t-2, t-3, t-4, t-5 and 2 more. Give a size to assume"
    ):
        of_rows(spark, rows, moves, Rates())
    moved = of_rows(spark, rows, moves, Rates(by_broker={2: 14.0}), assumed_size=100)
    assert (moved.assumed.partitions, moved.assumed.named) == (7, ("t-1", "t-2", "t-3", "t-4", "t-5"))
    assert (moved.partitions, moved.log_size, moved.unseen, moved.least_replicas) == (8, 710, (2, 3), 2)
    assert moved.work.links[-1] == Link(leader=2, destination=3, copies=7, bytes=700, writes=14.0)


def test_a_brokers_rate_scales_the_known_rates_of_its_partitions(spark: SparkSession) -> None:
    """For broker 1 every rate is known: 3 and 1 become 30 and 10. For broker 2 one is not: its 9 are split by size."""
    names = [TopicPartition("t", n) for n in range(4)]
    rows = [row(1 + n // 2, "t", n, 1 + n % 2, leader=True) for n in range(4)]
    rates = Rates(by_broker={1: 40.0, 2: 9.0}, by_partition=dict(zip(names, [3.0, 1.0, 5.0], strict=False)))
    moved = of_rows(spark, rows, plan({names[0]: [3], names[3]: [3]}), rates)
    assert [link.writes for link in moved.work.links] == pytest.approx([30.0, 6.0])
    assert moved.max_bytes_in == 40.0


def test_volumes_and_the_bytes_that_arrive_at_each_broker(spark: SparkSession) -> None:
    disk = {"volume_total": 100, "volume_usable": 60}
    rows = [row(1, "t", 0, 10, leader=True, **disk), row(1, "t", 1, 7, leader=True, log_dir="/e"), row(2, "u", 0, 1)]
    names = [TopicPartition("t", 0), TopicPartition("t", 1)]
    moves = Plan(targets={name: (BrokerId(2),) for name in names}, log_dirs={(names[1], BrokerId(2)): "/f"})
    moved = of_rows(spark, rows, moves, Rates(by_broker={1: 17.0, 2: 2.0}))
    assert moved.health.volumes == (
        Volume(broker=1, log_dir="/d", total=100, usable=60),
        Volume(broker=1, log_dir="/e", total=None, usable=None),
        Volume(broker=2, log_dir="/d", total=None, usable=None),
    )
    assert moved.arrivals == (
        Arrival(broker=2, log_dir=None, copies=1, bytes=10, writes=10.0, grows=2.0),
        Arrival(broker=2, log_dir="/f", copies=1, bytes=7, writes=7.0, grows=2.0),
    )


def test_waves_follow_the_order_of_the_plan(spark: SparkSession) -> None:
    sizes = [4, 4, 9, 1, 1, 30, 2]
    rows = [row(1, "t", n, size, leader=True) for n, size in enumerate(sizes)] + [row(1, "u", 0, 50, leader=True)]
    moves = plan({TopicPartition("t", n): [1, 2] for n in range(len(sizes))} | {TopicPartition("u", 0): [1]})
    whole = of_rows(spark, rows, moves, Rates(by_broker={1: 101.0}), split=Split(in_flight=10))
    assert [(w.first, w.last, w.partitions, w.work.bytes) for w in whole.waves] == [
        ("t-0", "t-1", 2, 8),
        ("t-2", "t-3", 2, 10),
        ("t-4", "t-4", 1, 1),
        ("t-5", "t-5", 1, 30),
        ("t-6", "t-6", 1, 2),
    ]
    assert whole.work.bytes == sum(sizes)
    assert sum(w.work.links[0].writes or 0.0 for w in whole.waves) == pytest.approx(51.0)


Held = dict[int, tuple[int, bool | None]]
"""For each broker that holds a partition: its size, and whether it is reported as in sync."""
Cluster = dict[TopicPartition, tuple[Held, list[int], bool, bool]]
"""For each partition: its brokers, the wanted replicas, whether the plan names it, whether its leader is reported."""

brokers = st.sampled_from(BROKERS)
partitions = st.builds(TopicPartition, st.sampled_from(["t", "u-1"]), st.integers(0, 2))
held = st.dictionaries(
    brokers, st.tuples(st.integers(0, 10**6), st.sampled_from([None, True, False])), min_size=1, max_size=3
)
wanted = st.lists(brokers, min_size=1, max_size=3, unique=True)
clusters = st.dictionaries(partitions, st.tuples(held, wanted, st.booleans(), st.booleans()), min_size=1, max_size=5)
rate = st.integers(0, 10**6).map(float)
known = st.one_of(
    st.builds(Rates),
    st.builds(lambda by: Rates(by_broker=by), st.dictionaries(brokers, rate, min_size=1)),
    st.builds(lambda by: Rates(by_partition=by), st.dictionaries(partitions, rate, min_size=1)),
)


# Hypothesis would search a smaller example for minutes.
@settings(max_examples=12, deadline=None, phases=[Phase.generate])
@given(cluster=clusters, rates=known, left=st.dictionaries(st.tuples(partitions, brokers), st.integers(0, 10**6)))
def test_the_sums_equal_those_of_the_check_in_execute(
    spark: SparkSession, cluster: Cluster, rates: Rates, left: dict[tuple[TopicPartition, int], int]
) -> None:
    """`left` has running copies, and replicas that are not being copied. The latter must not change anything."""
    rows = [
        row(b, p.topic, p.partition, size, in_sync=in_sync, leader=b == max(held) if reported else None)
        for p, (held, _, _, reported) in cluster.items()
        for b, (size, in_sync) in held.items()
    ]
    wanted = plan({partition: wanted for partition, (_, wanted, planned, _) in cluster.items() if planned})
    assume(wanted.targets)
    split = Split(in_flight=10**6)
    found = of_rows(spark, rows, wanted, rates, split=split, left=left)
    now = {p: standing(cluster, p) for p in cluster}
    sizes = {p: held[leader_of(cluster, p)][0] for p, (held, *_) in cluster.items()}
    writes = {p: written_to(cluster, rates, p) for p in cluster}
    moving = [move for move in moves(wanted, now) if move.destinations]
    missing = {(p, BrokerId(b)): n for (p, b), n in left.items()}
    assert_equal(found.work, carried(moving, now, sizes, writes, missing))
    starts = split.starts([sizes[move.partition] * len(move.destinations) for move in moving])
    waves = [moving[a:b] for a, b in zip(starts, [*starts[1:], len(moving)], strict=False)]
    assert [(w.first, w.last, w.partitions) for w in found.waves] == [
        (str(wave[0].partition), str(wave[-1].partition), len(wave)) for wave in waves
    ]
    for wave, of_wave in zip(found.waves, waves, strict=True):
        assert_equal(wave.work, carried(of_wave, now, sizes, writes, missing))
    copies = [(m.partition, b) for m in moving for b in m.destinations]
    coming = {b: sum(left.get((p, to), sizes[p]) for p, to in copies if to == b) for _, b in copies}
    assert {arrival.broker: arrival.bytes for arrival in found.arrivals} == coming


def assert_equal(found: Work, expected: Work) -> None:
    """Integers to the byte; rates as close as floats allow."""
    assert [exact(link) for link in found.links] == [exact(link) for link in expected.links]
    assert [link.writes for link in found.links] == pytest.approx([link.writes for link in expected.links])
    assert found.keep_up == pytest.approx(dict(expected.keep_up))


def exact(link: Link) -> tuple[int, int, int, int]:
    """Integers: equal to the byte."""
    return link.leader, link.destination, link.copies, link.bytes


def standing(cluster: Cluster, partition: TopicPartition) -> PartitionReplicas:
    held, leader = cluster[partition][0], leader_of(cluster, partition)
    in_sync = [b for b, (_, reported) in held.items() if reported is not False or b == leader]
    return PartitionReplicas(
        replicas=tuple(map(BrokerId, held)), leader=BrokerId(leader), isr=tuple(map(BrokerId, sorted(in_sync)))
    )


def leader_of(cluster: Cluster, partition: TopicPartition) -> int:
    held, wanted, planned, reported = cluster[partition]
    return max(held) if reported else next((b for b in wanted if planned and b in held), min(held))


def written_to(cluster: Cluster, rates: Rates, partition: TopicPartition) -> float | None:
    if rates.by_partition:
        return rates.by_partition.get(partition)
    leader = leader_of(cluster, partition)
    sizes = {p: cluster[p][0][leader][0] for p in cluster if leader_of(cluster, p) == leader}
    part = sizes[partition] / sum(sizes.values()) if sum(sizes.values()) else 1 / len(sizes)
    rate = rates.by_broker.get(leader)
    return None if rate is None else rate * part
