"""The settings that brokers report, and what follows for a cluster: null if one of the brokers does not answer."""

from __future__ import annotations

import pytest

from kquota.quota.capacity import Capacity, QuotaWindow, broker
from kquota.terms import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, BrokerId

TOLD: dict[str, str | None] = {
    "num.io.threads": "8",
    "num.network.threads": "3",
    "listeners": "PLAINTEXT://:9092,SSL://:9093,CONTROLLER://:9094",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@a:9094,2@b:9094",
    "process.roles": "broker,controller",
    "message.max.bytes": "1048588",
    "quota.window.num": "11",
    "quota.window.size.seconds": "2",
    "controller.quota.window.num": "100",
    "controller.quota.window.size.seconds": "1",
    "client.quota.callback.class": None,
}
ZOOKEEPER = {key: value for key, value in TOLD.items() if not key.startswith("controller.l") and key != "process.roles"}


def cluster(*settings: dict[str, str | None]) -> Capacity:
    return Capacity(brokers=tuple(broker(BrokerId(id_), told) for id_, told in enumerate(settings, 1)))


def test_a_broker_that_reports_its_settings() -> None:
    one = broker(BrokerId(1), TOLD)
    assert (one.request_capacity, one.listeners, one.request_most) == (1100, 2, 1400)
    assert one.window == QuotaWindow(samples=11, seconds=2)
    assert one.controllers == frozenset({1, 2})
    assert (one.callback, one.static) == (None, {})
    assert cluster(TOLD, TOLD).reported


def test_a_broker_that_does_not_answer() -> None:
    one = broker(BrokerId(1), {})
    assert (one.request_capacity, one.request_most, one.window, one.controllers) == (None, None, None, None)
    assert not cluster(TOLD, {}).reported
    assert not cluster().reported
    assert not Capacity(brokers=None).reported


def test_the_burst_of_windows_matches_kafka() -> None:
    """A rate is calculated over the whole samples, and a token bucket holds all of them (KIP-599)."""
    window = QuotaWindow(samples=11, seconds=2)
    assert (window.burst_seconds, window.bucket_seconds) == (20, 22)


OTHER = TOLD | {"controller.quota.window.num": "7", "quota.window.num": "7"}
MUTATIONS = {
    "all of the quorum are brokers": ([TOLD, TOLD], 100),
    "a broker beside the quorum says otherwise": ([TOLD, TOLD, OTHER], 100),
    "the quorum says different things": ([TOLD, OTHER], None),
    "a controller of the quorum is not a live broker": ([TOLD], None),
    "the quorum is unknown": ([TOLD | {"controller.quorum.voters": ""}] * 2, None),
    "ZooKeeper, where any broker may be the controller": ([ZOOKEEPER, ZOOKEEPER], 100),
    "ZooKeeper, and brokers say different things": (
        [ZOOKEEPER, ZOOKEEPER | {"controller.quota.window.num": "7"}],
        None,
    ),
    "one broker keeps silent": ([TOLD, {}], None),
}


@pytest.mark.parametrize(("settings", "samples"), MUTATIONS.values(), ids=MUTATIONS)
def test_the_controllers_windows_count(settings: list[dict[str, str | None]], samples: int | None) -> None:
    window = cluster(*settings).mutation_window
    assert (None if window is None else window.samples) == samples


def test_brokers_with_different_windows_have_no_common_one() -> None:
    assert cluster(TOLD, TOLD).window == QuotaWindow(samples=11, seconds=2)
    assert cluster(TOLD, OTHER).window is None


def test_static_defaults_are_those_of_kafka_2() -> None:
    """Long.MAX_VALUE means unlimited. A client can rely on the lowest value of all brokers."""
    old: dict[str, str | None] = {"quota.producer.default": "5000", "quota.consumer.default": str(2**63 - 1)}
    found = cluster(TOLD | old, TOLD | old | {"quota.producer.default": "4000"})
    assert (found.static(PRODUCER_BYTE_RATE), found.static(CONSUMER_BYTE_RATE)) == (4000.0, None)
    assert cluster(TOLD).static(PRODUCER_BYTE_RATE) is None


def test_a_quota_callback_on_any_broker_counts() -> None:
    assert cluster(TOLD, TOLD | {"client.quota.callback.class": "com.example.Q"}).callback == "com.example.Q"
    assert cluster(TOLD).callback is None
