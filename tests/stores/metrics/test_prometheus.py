"""The metrics of brokers from a server that answers as Prometheus documents it: now, and over a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from kquota.errors import Invalid, Unreachable
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.stores.metrics.broker_metrics import BrokerMetrics
from kquota.stores.metrics.prometheus import history, parsed, read, server
from kquota.terms import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from tests.stores.metrics.prometheus_server import Series, serving

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
CLIENT = QuotaBucket(key=PRODUCER_BYTE_RATE, user="ann b", client_id="both")


def series_at(time: float) -> Series:
    """Two clusters: `kafka` has brokers 1 and 2, `other` has another broker 1. A node exporter has a similar name."""

    def of(job: str, broker: str, **used: str) -> Series:
        at = {"job": job, "instance": f"{job}-{broker}:7071"}
        names = [
            ({"__name__": name, "client_id": "both", "user": "ann%20b", **at}, value) for name, value in used.items()
        ]
        return [*names, ({"__name__": "kafka_server_app_info_StartTimeMs", "id": broker, **at}, "1.7E12")]

    hour = str((time - NOW.timestamp()) // 3600)
    return [
        *of("kafka", "1", kafka_server_Produce_byte_rate=hour, kafka_server_Produce_throttle_time="NaN"),
        *of("kafka", "2", kafka_server_produce_byte_rate="7.5", kafka_server_ControllerMutation_tokens="-3"),
        *of("other", "1", kafka_server_Produce_byte_rate="9"),
        ({"__name__": "node_tokens", "job": "kafka", "instance": "node:9100"}, "1"),
    ]


@pytest.fixture
def url() -> Iterator[str]:
    with serving(series_at, NOW.timestamp) as found:
        yield found


def used(broker: BrokerMetrics | Unreachable) -> dict[QuotaBucket, BucketUse]:
    assert not isinstance(broker, Unreachable)
    return dict(broker.readings())


def test_the_newest_values_of_each_broker_of_the_cluster(url: str) -> None:
    first, second = read(server(f"{url}?job=kafka", "--prometheus"))
    assert used(first) == {CLIENT: BucketUse(broker="1", used=0.0)}
    mutations = QuotaBucket(key=CONTROLLER_MUTATION_RATE, user="ann b", client_id="both")
    assert used(second) == {
        CLIENT: BucketUse(broker="2", used=7.5),
        mutations: BucketUse(broker="2", used=None, tokens=-3.0),
    }


def test_two_clusters_are_refused(url: str) -> None:
    with pytest.raises(Invalid, match=r"broker 1 is listed twice.*\?job=kafka"):
        read(server(url, "--prometheus"))


def test_labels_that_no_series_has_are_named(url: str) -> None:
    [failed] = read(server(f"{url}?job=absent", "--prometheus"))
    assert "Prometheus has no quota metrics of brokers. Check its scrape targets" in str(failed)


@pytest.mark.parametrize("minutes", [7, 30, 60, 90])
def test_a_time_is_read_step_by_step(url: str, minutes: int) -> None:
    step = timedelta(minutes=minutes)
    found = list(history(server(f"{url}?job=kafka", "--prometheus"), NOW, NOW + timedelta(hours=5), step))
    assert [time for time, _ in found] == [NOW + n * step for n in range(int(timedelta(hours=5) / step) + 1)]
    hours = [used(brokers[0])[CLIENT].used for _, brokers in found]
    assert hours == [(time - NOW) // timedelta(hours=1) for time, _ in found]


def test_the_reason_of_the_server_is_shown(url: str) -> None:
    [missing] = read(server(f"{url}/prefix", "--prometheus"))
    [closed] = read(server("http://127.0.0.1:1", "--prometheus"))
    assert "(no such path)" in str(missing)
    assert "Connection refused" in str(closed)


WRONG = {
    "no JSON": b"<html>",
    "an error": b'{"status": "error"}',
    "a label that is not text": b'{"data": {"result": [{"metric": {"id": 1}, "value": [1, "1"]}]}}',
    "a time that is too large": b'{"data": {"result": [{"metric": {}, "value": [1%s, "1"]}]}}' % (b"0" * 400),
    "a value that is too large": b'{"data": {"result": [{"metric": {}, "value": [1, 1%s]}]}}' % (b"0" * 400),
    "a time after the calendar": b'{"data": {"result": [{"metric": {}, "value": [1e300, "1"]}]}}',
    "no value": b'{"data": {"result": [{"metric": {}}]}}',
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_another_answer_is_an_error(body: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parsed(body)


def test_the_labels_of_the_url_are_quoted() -> None:
    found = server("https://p/prefix/?job=a%22b&env=prod", "--prometheus")
    assert found.address == "https://p/prefix"
    assert found.selector.endswith(',job="a\\"b",env="prod"}')
    assert json.loads(found.selector[11 : found.selector.index(",job")]).startswith("(?i)")


@pytest.mark.parametrize(
    "text",
    ["prometheus:9090", "http://me:secret@p", "http://p?a b=c", "http://p?1a=c", "http://p?é=c", "http://p?a=1&a=2"],
)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="--prometheus") as refused:
        server(text, "--prometheus")
    assert "secret" not in str(refused.value)
