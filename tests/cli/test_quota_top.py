"""`kquota quota top` on real brokers with the Prometheus JMX exporter: a throttled client is first, with its quota."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from tests.background import working
from tests.cli.run import Ran, kquota, kquota_here
from tests.stores.metrics.prometheus_server import Series, serving

pytestmark = pytest.mark.kafka

NAME = "with-metrics"
SLOW, FREE = "slow-one", "free-one"


@pytest.fixture(scope="module", params=["4.3.1", "3.9.1"])
def servers(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    found = sandbox.up(name=NAME, kafka=request.param, brokers=2, metrics=True, owner_pid=os.getpid())
    altered = ("--alter", "--entity-type", "clients", "--entity-name", SLOW, "--add-config", "producer_byte_rate=50000")
    assert kquota("configs", "--bootstrap-server", found.bootstrap, *altered).code == 0
    traffic.create(found.bootstrap, "t", [[1], [2]])
    yield found
    sandbox.down(NAME)


def top(servers: Sandbox, *more: str) -> Ran:
    return through(servers, "--metrics", servers.metrics, *more)


def through(servers: Sandbox, *more: str) -> Ran:
    return kquota("quota", "top", "--bootstrap-server", servers.bootstrap, *more)


def produce(servers: Sandbox, client: str, stop: threading.Event, batch: int = 1_000_000) -> None:
    """Write to the topic `t` until `stop`, in batches of at most this many bytes."""
    producer = Producer(
        {
            "bootstrap.servers": servers.bootstrap,
            "client.id": client,
            "queue.buffering.max.messages": 500,
            "batch.size": batch,
            "log_level": 2,
        }
    )
    while not stop.is_set():
        try:
            producer.produce("t", bytes(5_000))
        except BufferError:
            producer.poll(0.05)
        time.sleep(0.001)
    producer.purge()


@contextmanager
def producing(servers: Sandbox, *clients: str) -> Iterator[None]:
    stop = threading.Event()
    with working(stop, *(partial(produce, servers, name, stop) for name in clients)):
        yield


def throttled_on(found: Ran, brokers: int) -> bool:
    """True if a client is throttled, and so many brokers report the first client."""
    return (found.code, found.err) == (8, "") and len(json.loads(found.out)["clients"][0]["brokers"]) == brokers


def test_a_throttled_client_is_first_with_its_quota(servers: Sandbox) -> None:
    with producing(servers, SLOW, FREE):
        give_up = time.monotonic() + 150
        # A client that waits for a long time is not throttled again until it sends a request. The first requests may
        # reach only one of the brokers.
        while not throttled_on(found := top(servers, "--output", "json"), 2) and time.monotonic() < give_up:
            time.sleep(0.5)
        text, limited = top(servers), top(servers, "--limited", "--output", "tsv")
    assert (found.code, found.err) == (8, "")
    first, *others = json.loads(found.out)["clients"]
    assert (first["key"], first["client_id"], first["level"], first["limit"], first["throttled"]) == (
        "producer_byte_rate",
        SLOW,
        7,
        50_000,
        True,
    )
    assert first["entity"] == {"client": SLOW}
    assert [reading["broker"] for reading in first["brokers"]] == ["1", "2"]
    assert any(one["client_id"] == FREE and one["limit"] is None for one in others)
    assert text.out.splitlines()[1].startswith(f"client-id '{SLOW}'")
    assert {line.split("\t")[2] for line in limited.out.splitlines()[1:]} == {SLOW}


def scraped(urls: list[str]) -> Series:
    """The newest values of these exporters, as a Prometheus server has them."""
    found: list[tuple[Mapping[str, str], str]] = []
    for url in urls:
        with urllib.request.urlopen(url) as answer:
            samples = [one for every in text_string_to_metric_families(answer.read().decode()) for one in every.samples]
        found += [({"__name__": one.name, "instance": url, **one.labels}, str(one.value)) for one in samples]
    return found


def test_prometheus_shows_the_same_clients_and_readings_are_kept(servers: Sandbox, tmp_path: Path) -> None:
    with serving(lambda _: scraped(servers.metrics.split(",")), time.time) as url:
        ways = (top(servers, "--output", "json"), through(servers, "--prometheus", url, "--output", "json"))
        give_up = time.monotonic() + 150
        while len(files := sorted(tmp_path.glob("date=*/*.jsonl.gz"))) < 2 and time.monotonic() < give_up:
            # Two readings in one second are refused.
            kept = through(servers, "--prometheus", url, "--snapshot", str(tmp_path))
    assert [one.err for one in ways] == ["", ""]
    direct, found = (json.loads(one.out) for one in ways)
    assert found["brokers"] == direct["brokers"] == ["1", "2"]
    assert {(one["key"], one["client_id"]) for one in found["clients"]} == {
        (one["key"], one["client_id"]) for one in direct["clients"]
    }
    rows = [json.loads(line) for line in gzip.decompress(files[1].read_bytes()).splitlines()]
    assert kept.err == f"kquota: note: wrote {len(rows)} rows to {files[1]}\n"
    assert {row["client_id"] for row in rows} >= {SLOW, FREE}
    assert {(row["broker"], row["cluster"]) for row in rows} == {(broker, rows[0]["cluster"]) for broker in "12"}
    assert 1 <= rows[0]["seconds"] < 3_600


def test_a_broker_without_metrics_is_named(servers: Sandbox) -> None:
    first, _ = servers.metrics.split(",")
    with producing(servers, FREE):
        give_up = time.monotonic() + 150
        while not (chosen := through(servers, "--metrics", first)).out.startswith("client "):
            assert time.monotonic() < give_up, chosen
    assert chosen.err == (
        "kquota: note: --metrics has no exporter for broker 2, so kquota does not show the use of quotas there. Add "
        "the missing exporters to --metrics\n"
    )
    # A KRaft controller also reports its id.
    controller = {"__name__": "kafka_server_app_info_StartTimeMs", "instance": "controller:7071", "id": "3000"}
    with serving(lambda _: [*scraped([first]), (controller, "1.0")], time.time) as url:
        found = through(servers, "--prometheus", url)
    assert (
        found.err == "kquota: warning: Prometheus has no metrics of broker 2. Check the scrape targets of Prometheus\n"
    )
    assert (found.code, found.out.splitlines()[0].split()[0]) == (1, "client")


def test_an_exporter_that_does_not_answer_is_named(servers: Sandbox) -> None:
    found = top(servers, "--metrics", f"http://127.0.0.1:1/metrics,{servers.metrics}", "--output", "json")
    assert (found.code, len(json.loads(found.out)["brokers"])) == (1, 2)
    assert found.err.startswith("kquota: warning: http://127.0.0.1:1/metrics: kquota could not read the metrics (")
    none = top(servers, "--metrics", "http://127.0.0.1:1/metrics")
    assert (none.out, len(none.err.splitlines())) == ("", 1)
    assert none.code != 0


@pytest.mark.parametrize("given", ["broker:7071", "http://me:canary@h/"])
def test_a_wrong_address_is_refused_before_a_connection(given: str) -> None:
    found = kquota("quota", "top", "--bootstrap-server", "127.0.0.1:1", "--metrics", given)
    assert (found.code, found.out, len(found.err.splitlines())) == (2, "", 1)


def test_exporters_need_a_library_that_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client.parser", None)
    monkeypatch.delitem(sys.modules, "kquota.stores.metrics.exporters", raising=False)
    monkeypatch.delattr("kquota.stores.metrics.exporters", raising=False)
    found = kquota_here("quota", "top", "--bootstrap-server", "127.0.0.1:1", "--metrics", "http://h/metrics")
    assert (found.code, found.out, len(found.err.splitlines())) == (1, "", 1)
    assert "pip install 'kquota[metrics]'" in found.err
