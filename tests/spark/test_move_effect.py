"""The brokers and topics in a report, as Spark calculates them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kquota.reassign.plan import Plan
from kquota.sizes.replica import BrokerBytes, Moved, MovingTopic
from kquota.spark import files
from kquota.spark.reader import Reader
from kquota.terms import BrokerId, TopicPartition
from tests.spark.rows import row, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_brokers_before_and_after_and_the_topics_that_copy_most(spark: SparkSession, tmp_path: Path) -> None:
    """`many-n` swaps a broker, `one` grows by two, `stays` is not in the plan: 22 topics, 20 of which are listed."""
    from kquota.spark.estimate import Writes, measure
    from kquota.spark.plans import planned
    from kquota.spark.sizes import from_snapshots

    leads = {"leader": True}
    many = [f"many-{n:02d}" for n in range(21)]
    rows = [row(1, topic, 0, 10 + n, **leads) for n, topic in enumerate(many)]
    rows += [row(1, "one", 0, 1000, **leads), row(2, "one", 0, 900, leader=False), row(3, "stays", 0, 7, **leads)]
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {TopicPartition(t, 0): (BrokerId(2),) for t in many}
    targets[TopicPartition("one", 0)] = (BrokerId(1), BrokerId(3), BrokerId(4))
    found = files.laid_out([Path(written(tmp_path / "s.jsonl.gz", rows))], tmp_path / "history", ".jsonl")
    reader = Reader(spark=spark, scratch=tmp_path)
    plan = planned(reader, Plan(targets=targets))
    writes = Writes(by_broker={})

    moved = measure(from_snapshots(reader, found), found, plan, writes, reader, detailed=True).moved

    swapped = sum(10 + n for n in range(21))
    largest = [MovingTopic(topic="one", partitions=1, copies=2, bytes=2000)]
    largest += [MovingTopic(topic=many[n], partitions=1, copies=1, bytes=10 + n) for n in range(20, 1, -1)]
    assert moved == Moved(
        held=(
            BrokerBytes(broker=1, before=swapped + 1000, after=1000),
            BrokerBytes(broker=2, before=900, after=swapped),
            BrokerBytes(broker=3, before=7, after=1007),
            BrokerBytes(broker=4, before=0, after=1000),
        ),
        topics=tuple(largest),
        topics_in_all=22,
    )
