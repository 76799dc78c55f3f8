"""Throughput from two readings: where it is counted, and when it is unknown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kquota.sizes.replica import LogDir, Replica
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle.cluster_throttles import ClusterThrottles
from kquota.throttle.throughput import FlowReading, measured, reading, starved
from tests.throttle.stage import FOLLOWER, LEADER, partition, rate, throttles

T0, ONE, TWO, THREE = TopicPartition("t", 0), BrokerId(1), BrokerId(2), BrokerId(3)
LISTS = {("t", LEADER): "0:1", ("t", FOLLOWER): "0:3"}
SECONDS = 2.0


def flow_reading(
    at: float,
    ends: Mapping[int, int],
    *,
    sizes: int | None = None,
    start: int = 0,
    starts: Mapping[int, int] | None = None,
) -> FlowReading:
    """A reading of `t-0`, led by 1. A record has 10 bytes, unless `sizes` gives the size of every replica.

    The local logs start at `start`, or at `starts` of each broker. The first 500 offsets can be in remote storage.
    """
    dirs = [
        LogDir(
            broker=BrokerId(broker),
            rack=None,
            path="/d",
            error=None,
            volume_total=None,
            volume_usable=None,
            replicas=(
                Replica(
                    partition=T0,
                    size=end * 10 if sizes is None else sizes,
                    offset_lag=0,
                    future=False,
                    end_offset=end,
                    start_offset=0 if broker == 1 else None,
                    local_start_offset=start if starts is None else starts.get(broker),
                ),
            ),
        )
        for broker, end in ends.items()
    ]
    return reading(at, dirs)


def catching_up(isr: tuple[int, ...] = (1, 2)) -> ClusterThrottles:
    return throttles({"t": [partition(1, 2, 3, isr=isr)]}, LISTS)


def test_where_throughput_is_counted() -> None:
    first, second = flow_reading(5, {1: 1000, 2: 1000, 3: 0}), flow_reading(5 + SECONDS, {1: 1200, 2: 1200, 3: 400})
    flow = measured(catching_up(), first, second)
    assert flow.seconds == SECONDS
    assert flow.bytes_in == {T0: 1000.0}
    assert flow.leader == {ONE: 1000.0 + 2000.0, TWO: 0.0, THREE: 0.0}
    assert flow.follower == {ONE: 0.0, TWO: 0.0, THREE: 2000.0}
    assert (flow.keep_up[ONE], flow.behind[ONE]) == (1000.0, 1000.0)
    assert flow.lag == {ONE: 0, TWO: 0, THREE: 800}
    assert flow.lags == {T0: 800}


UNKNOWN: dict[str, tuple[dict[int, int], dict[int, int], set[str]]] = {
    "all brokers report": ({1: 9, 2: 9, 3: 0}, {1: 9, 2: 9, 3: 5}, set()),
    "a follower does not report": ({1: 9, 2: 9}, {1: 10, 2: 10}, {"follower", "lag", "leader"}),
    "the leader does not report": ({2: 9, 3: 0}, {2: 10, 3: 5}, {"bytes_in", "lag", "keep_up"}),
    "no broker reports": ({}, {}, {"bytes_in", "follower", "lag", "leader", "keep_up"}),
}


@pytest.mark.parametrize(("first", "second", "unknown"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_is_never_0(first: dict[int, int], second: dict[int, int], unknown: set[str]) -> None:
    flow = measured(catching_up(), flow_reading(0, first), flow_reading(SECONDS, second))
    seen = {
        "bytes_in": flow.bytes_in[T0],
        "leader": flow.leader[ONE],
        "keep_up": flow.keep_up[ONE],
        "follower": flow.follower[THREE],
        "lag": flow.lag[THREE],
    }
    assert {name for name, value in seen.items() if value is None} == unknown


def test_without_a_leader_throughput_is_unknown() -> None:
    now = throttles({"t": [partition(1, 2, isr=())]}, LISTS)
    flow = measured(now, flow_reading(0, {1: 1}), flow_reading(1, {1: 5}))
    assert (flow.bytes_in, flow.lags) == ({T0: None}, {T0: None})


def test_after_retention_the_mean_of_the_whole_log_counts() -> None:
    first, second = flow_reading(0, {1: 1000}, sizes=9000), flow_reading(1, {1: 1100}, sizes=6000, start=500)
    assert measured(catching_up(), first, second).bytes_in == {T0: 100 * 6000 / 600}


def test_a_new_replica_of_a_tiered_topic_skips_what_is_only_in_remote_storage() -> None:
    """Its log end jumps from 0 to the leader's local start. These offsets are not copied."""
    first = flow_reading(0, {1: 1000, 3: 0}, sizes=4000, starts={1: 600, 3: 0})
    second = flow_reading(1, {1: 1000, 3: 700}, sizes=4000, starts={1: 600, 3: 600})
    assert measured(catching_up(isr=(1,)), first, second).follower[THREE] == 100 * 10.0


def test_a_follower_that_deletes_local_segments_grows_by_its_new_offsets() -> None:
    """Each replica of a tiered topic deletes its local segments on its own, so the leader's start shows nothing."""
    first = flow_reading(0, {1: 1000, 3: 900}, sizes=4000, starts={1: 600, 3: 500})
    second = flow_reading(1, {1: 1000, 3: 1000}, sizes=4001, starts={1: 600, 3: 600})
    assert measured(catching_up(isr=(1,)), first, second).follower[THREE] == 100 * 4001 / 400


def test_a_log_that_did_not_grow_has_no_throughput() -> None:
    flow = measured(catching_up(), flow_reading(0, {1: 9, 2: 9, 3: 5}), flow_reading(1, {1: 9, 2: 9, 3: 3}))
    assert (flow.bytes_in[T0], flow.follower[THREE], flow.lag[THREE]) == (0.0, 0.0, 6)


STARVED = {
    "enough is left": (2001, None),
    "just what is written twice": (2000, (1000.0, 1000.0, True)),
    "less": (1500, (1000.0, 1000.0, True)),
}


@pytest.mark.parametrize(("limit", "expected"), STARVED.values(), ids=STARVED)
def test_a_leader_whose_throttle_is_used_up(limit: int, expected: tuple[float, float, bool] | None) -> None:
    now = throttles({"t": [partition(1, 2, 3, isr=(1, 2))]}, LISTS, {ONE: {LEADER_RATE: rate(str(limit))}})
    flow = measured(now, flow_reading(0, {1: 1000, 2: 1000, 3: 0}), flow_reading(1, {1: 1100, 2: 1100, 3: 10}))
    found = [(one.keep_up, one.behind, one.hopeless) for one in starved(now, flow)]
    assert found == ([] if expected is None else [expected])


def test_followers_in_sync_that_take_most_of_it() -> None:
    now = throttles({"t": [partition(1, 2)]}, {("t", LEADER): "*"}, {ONE: {LEADER_RATE: rate("1500")}})
    flow = measured(now, flow_reading(0, {1: 1000, 2: 1000}), flow_reading(1, {1: 1100, 2: 1100}))
    (one,) = starved(now, flow)
    assert (one.broker, one.keep_up, one.behind, one.hopeless) == (ONE, 1000.0, 0.0, False)
