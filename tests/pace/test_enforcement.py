"""The part of a throttle that is used: the formula against moves of real brokers, and the settings behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.measure import ByteRate
from kquota.pace.enforcement import AS_SHIPPED, Enforcement, enforcement
from kquota.pace.share import Side, pace
from kquota.pace.work import Link, Work, work
from kquota.terms import FOLLOWER_RATE, LEADER_RATE

MB = 10**6


def moved(links: dict[tuple[int, int], tuple[float, int]], writes: float = 0.0, keep_up: float = 0.0) -> Work:
    """By leader and destination: megabytes and copies.

    Rates are in MB/s, and `writes` is spread evenly over all copies.
    """
    copies = sum(count for _, count in links.values())
    return work(
        (
            Link(
                leader=leader,
                destination=destination,
                copies=count,
                bytes=int(size * MB),
                writes=writes * MB * count / copies,
            )
            for (leader, destination), (size, count) in links.items()
        ),
        {leader: keep_up * MB for leader, _ in links},
    )


# Kafka 4.3.1 as shipped, three or four brokers, `reassign-partitions --execute`; seconds from its return until the last
# partition was seen where it goes. Each began with windows that remembered nothing.
SEEN: dict[str, tuple[Work, int, float, int, Side]] = {
    # The work, the throttle in MB/s, the seconds, and the bottleneck: a broker and a side.
    "one link": (moved({(1, 3): (400.5, 4)}), 10, 46.0, 3, Side.DESTINATION),
    "one link, a small throttle": (moved({(1, 3): (200.2, 4)}), 5, 43.7, 3, Side.DESTINATION),
    "one link, a follower stays": (moved({(1, 3): (801.0, 8)}), 20, 45.5, 3, Side.DESTINATION),
    "one link, a larger throttle": (moved({(1, 3): (1802.2, 8)}), 40, 51.7, 3, Side.DESTINATION),
    "two leaders, one destination": (
        moved({(1, 3): (150.2, 4), (2, 3): (300.4, 8)}),
        10,
        51.9,
        3,
        Side.DESTINATION,
    ),
    "one leader, three destinations": (
        moved({(1, 2): (200.2, 4), (1, 3): (200.2, 4), (1, 4): (200.3, 4)}),
        15,
        43.9,
        1,
        Side.LEADER,
    ),
    "two busy brokers": (
        moved({(1, 3): (400.6, 8), (2, 3): (200.2, 4), (1, 4): (200.3, 4)}),
        15,
        45.0,
        3,
        Side.DESTINATION,
    ),
    "producers, no replica stays": (
        moved({(1, 3): (146.7, 4), (2, 3): (146.7, 4), (4, 3): (146.8, 4)}, writes=3),
        12,
        56.2,
        3,
        Side.DESTINATION,
    ),
    "producers, a follower stays": (moved({(1, 3): (296.6, 4)}, writes=2, keep_up=2), 10, 50.1, 1, Side.LEADER),
    "producers, a follower stays, 24 MB/s": (
        moved({(1, 3): (840.4, 8)}, writes=3, keep_up=3),
        24,
        49.3,
        1,
        Side.LEADER,
    ),
    "the same again": (moved({(1, 3): (840.3, 8)}, writes=3, keep_up=3), 24, 49.6, 1, Side.LEADER),
    "producers, a follower stays, 16 MB/s": (
        moved({(1, 3): (540.3, 8)}, writes=3, keep_up=3),
        16,
        53.0,
        1,
        Side.LEADER,
    ),
    "producers, two followers stay": (moved({(1, 3): (376.7, 6)}, writes=2, keep_up=4), 16, 38.1, 1, Side.LEADER),
    "close to what it needs": (moved({(1, 3): (99.4, 4)}, writes=3, keep_up=3), 8, 40.5, 1, Side.LEADER),
    "close to what it needs, more": (moved({(1, 3): (130.5, 4)}, writes=3, keep_up=3), 8, 53.5, 1, Side.LEADER),
}


@pytest.mark.parametrize(("carried", "throttle", "actual", "broker", "side"), SEEN.values(), ids=SEEN)
def test_the_formula_is_within_10_percent_of_real_moves(
    carried: Work, throttle: int, actual: float, broker: int, side: Side
) -> None:
    answer = pace(carried, ByteRate(throttle * MB))
    assert answer.seconds == pytest.approx(actual, rel=0.1)
    assert answer.bottleneck is not None
    assert (broker, side) in {
        (share.broker, share.side) for share in answer.shares if share.seconds == answer.bottleneck.seconds
    }


def test_kafkas_default_settings() -> None:
    assert AS_SHIPPED.window == 11
    assert AS_SHIPPED.into_destination == pytest.approx(11 / 12)
    assert AS_SHIPPED.out_of_quiet_leader == pytest.approx(22 / 23)


SETTINGS = {
    "replica.fetch.backoff.ms": "500",
    "replica.fetch.wait.max.ms": "250",
    "replica.fetch.max.bytes": "2000000",
    "replica.fetch.response.max.bytes": "1000000",
    "replication.quota.window.num": "21",
    "replication.quota.window.size.seconds": "2",
}
READ = Enforcement(
    window_num=21,
    window_seconds=2,
    fetch_backoff=0.5,
    fetch_wait=0.25,
    fetch_bytes=2_000_000,
    response_bytes=1_000_000,
    of_brokers=True,
)

TOLD: dict[str, tuple[list[dict[str, str | None]], Enforcement]] = {
    "alike": ([{**SETTINGS}, {**SETTINGS}], READ),
    "the slower of two counts": ([{**SETTINGS}, {**SETTINGS, "replica.fetch.backoff.ms": "100"}], READ),
    "one broker does not report a setting": (
        [{**SETTINGS}, {**SETTINGS, "replica.fetch.backoff.ms": None}],
        AS_SHIPPED,
    ),
    "one broker reports nothing": ([{**SETTINGS}, {}], AS_SHIPPED),
    "not a number": ([{**SETTINGS, "replication.quota.window.num": "many"}], AS_SHIPPED),
    "no broker": ([], AS_SHIPPED),
    "one has a throttle": ([{**SETTINGS}, {**SETTINGS, LEADER_RATE: "1"}], replace(READ, throttled=True)),
    "one broker reports only a throttle": ([{**SETTINGS}, {FOLLOWER_RATE: "1"}], replace(AS_SHIPPED, throttled=True)),
    "no throttle": ([{**SETTINGS, LEADER_RATE: None}], READ),
}


@pytest.mark.parametrize(("brokers", "found"), TOLD.values(), ids=TOLD)
def test_the_settings_of_brokers(brokers: list[dict[str, str | None]], found: Enforcement) -> None:
    assert enforcement(brokers) == found
