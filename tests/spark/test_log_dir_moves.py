"""The sums of moves between log dirs on Spark, from snapshots and from the output of kafka-log-dirs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kquota.pace.log_dir_copy import LogDirWork
from kquota.reassign.plan import Plan
from kquota.spark import files
from kquota.spark.reader import Reader
from kquota.terms import BrokerId, TopicPartition
from tests.spark.rows import log_dirs, row, written
from tests.spark.test_estimate import Rates, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ONE, TWO = BrokerId(1), BrokerId(2)


def to(*moves: tuple[int, BrokerId, str]) -> Plan:
    """A plan of topic t: partition, broker and log dir."""
    names = {TopicPartition("t", number): (ONE, TWO) for number, _, _ in moves}
    return Plan(targets=names, log_dirs={(TopicPartition("t", n), broker): path for n, broker, path in moves})


HELD = [
    row(1, "t", 0, 100, log_dir="/a"),
    row(2, "t", 0, 90, log_dir="/a"),
    row(1, "t", 1, 1000, log_dir="/a"),
    row(1, "t", 1, 400, log_dir="/b", future=True),
    row(1, "t", 2, 7, log_dir="/b"),
    row(2, "other", 0, 5000, log_dir="/a"),
]
CASES: dict[str, tuple[Plan, dict[int, float], tuple[LogDirWork, ...]]] = {
    "one replica": (to((0, ONE, "/b")), {0: 5.0}, (LogDirWork(broker=1, copies=1, bytes=100, writes=5.0),)),
    "the size of each broker's own replica": (
        to((0, ONE, "/b"), (0, TWO, "/b")),
        {},
        (LogDirWork(broker=1, copies=1, bytes=100), LogDirWork(broker=2, copies=1, bytes=90)),
    ),
    "in its log dir already, also with a slash": (to((2, ONE, "/b/"), (0, ONE, "/a")), {}, ()),
    "on its way: only the rest": (
        to((1, ONE, "/b")),
        {1: 1.0},
        (LogDirWork(broker=1, copies=1, bytes=600, writes=1.0),),
    ),
    "on its way elsewhere: from the start": (to((1, ONE, "/c")), {}, (LogDirWork(broker=1, copies=1, bytes=1000),)),
    "one unknown rate makes the sum unknown": (
        to((0, ONE, "/b"), (1, ONE, "/c")),
        {0: 5.0},
        (LogDirWork(broker=1, copies=2, bytes=1100),),
    ),
    "a replica that the broker does not have": (to((2, TWO, "/b")), {}, ()),
}


@pytest.mark.parametrize(("plan", "rates", "works"), CASES.values(), ids=CASES)
def test_the_moves_inside_brokers(
    spark: SparkSession, tmp_path: Path, plan: Plan, rates: dict[int, float], works: tuple[LogDirWork, ...]
) -> None:
    from kquota.spark.flows import log_dir_moves
    from kquota.spark.plans import planned
    from kquota.spark.sizes import from_snapshots

    found = files.laid_out([Path(written(tmp_path / "s.jsonl.gz", HELD))], tmp_path / "history", ".jsonl")
    reader = Reader(spark=spark, scratch=tmp_path)
    writes = told(Rates(by_partition={TopicPartition("t", n): rate for n, rate in rates.items()}), reader)
    places = planned(reader, plan).places
    assert places is not None
    assert log_dir_moves(from_snapshots(reader, found), places, writes.by_partition) == works


def test_the_output_of_kafka_log_dirs_is_enough(spark: SparkSession, tmp_path: Path) -> None:
    from kquota.spark.flows import log_dir_moves
    from kquota.spark.plans import planned
    from kquota.spark.sizes import from_log_dirs

    (tmp_path / "printed").write_text(log_dirs((1, {"t-0": 100, "t-1": 50})))
    found = files.log_dirs([str(tmp_path / "printed")], tmp_path)
    reader = Reader(spark=spark, scratch=tmp_path)
    places = planned(reader, to((0, ONE, "/b"), (1, ONE, "/d"))).places
    assert places is not None
    works = log_dir_moves(from_log_dirs(reader, found), places, None)
    assert works == (LogDirWork(broker=1, copies=1, bytes=100),)
