"""The sums of moves between log dirs on Spark, from snapshots and from the output of kafka-log-dirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kquota.pace.log_dir_copy import LogDirWork
from kquota.reassign.plan import Plan
from kquota.terms import BrokerId, TopicPartition
from tests.spark.rows import log_dirs, row
from tests.spark.test_estimate import Rates, of_log_dirs, of_rows

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


def of(rates: dict[int, float]) -> Rates:
    """The write rates of partitions of topic t."""
    return Rates(by_partition={TopicPartition("t", number): rate for number, rate in rates.items()})


CASES: dict[str, tuple[Plan, Rates, tuple[LogDirWork, ...]]] = {
    "one replica": (to((0, ONE, "/b")), of({0: 5.0}), (LogDirWork(broker=1, copies=1, bytes=100, writes=5.0),)),
    "the size of each broker's own replica": (
        to((0, ONE, "/b"), (0, TWO, "/b")),
        Rates(),
        (LogDirWork(broker=1, copies=1, bytes=100), LogDirWork(broker=2, copies=1, bytes=90)),
    ),
    "in its log dir already, also with a slash": (to((2, ONE, "/b/"), (0, ONE, "/a")), Rates(), ()),
    "on its way: only the rest": (
        to((1, ONE, "/b")),
        of({1: 1.0}),
        (LogDirWork(broker=1, copies=1, bytes=600, writes=1.0),),
    ),
    "on its way elsewhere: from the start": (
        to((1, ONE, "/c")),
        Rates(),
        (LogDirWork(broker=1, copies=1, bytes=1000),),
    ),
    "one unknown rate makes the sum unknown": (
        to((0, ONE, "/b"), (1, ONE, "/c")),
        of({0: 5.0}),
        (LogDirWork(broker=1, copies=2, bytes=1100),),
    ),
    "a given rate is divided by size among the partitions of the leader, also for its followers": (
        to((0, ONE, "/b"), (0, TWO, "/b")),
        Rates(by_broker={1: 1107.0}),
        (
            LogDirWork(broker=1, copies=1, bytes=100, writes=100.0),
            LogDirWork(broker=2, copies=1, bytes=90, writes=100.0),
        ),
    ),
    "a given rate is divided by the rates of all partitions": (
        to((0, ONE, "/b")),
        Rates(by_broker={1: 20.0}, by_partition=of({0: 5.0, 1: 4.0, 2: 1.0}).by_partition),
        (LogDirWork(broker=1, copies=1, bytes=100, writes=10.0),),
    ),
    "a given rate of another leader": (
        to((0, ONE, "/b")),
        Rates(by_broker={2: 20.0}),
        (LogDirWork(broker=1, copies=1, bytes=100),),
    ),
    "a replica that the broker does not have": (to((2, TWO, "/b")), Rates(), ()),
}


@pytest.mark.parametrize(("plan", "rates", "works"), CASES.values(), ids=CASES)
def test_the_moves_inside_brokers(spark: SparkSession, plan: Plan, rates: Rates, works: tuple[LogDirWork, ...]) -> None:
    assert of_rows(spark, HELD, plan, rates).within == works


def test_the_output_of_kafka_log_dirs_is_enough(spark: SparkSession) -> None:
    printed = log_dirs((1, {"t-0": 100, "t-1": 50}))
    found = of_log_dirs(spark, printed, to((0, ONE, "/b"), (1, ONE, "/d")), Rates())
    assert found.within == (LogDirWork(broker=1, copies=1, bytes=100),)
