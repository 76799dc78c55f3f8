"""The metrics of brokers as exporters name them: by default, by the exporter's example rules, in lower case."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from kquota.errors import Invalid, Unreachable
from kquota.quota.usage import BucketUse, QuotaBucket, joined
from kquota.stores.metrics.exporters import parsed, read, sample_of, urls
from kquota.terms import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

DEFAULT_NAMES = b"""# HELP kafka_server_Produce_byte_rate Attribute
# TYPE kafka_server_Produce_byte_rate untyped
kafka_server_app_info_StartTimeMs{id="7"} 1.795526187041E12
kafka_server_Produce_byte_rate{client_id="both",user="ANONYMOUS"} 79857.5
kafka_server_Produce_throttle_time{client_id="both",user="ANONYMOUS"} 16195.0
kafka_server_Produce_throttle_time{client_id="free"} NaN
kafka_server_Fetch_byte_rate{user="ann%20b%2Ac"} 5.0
kafka_server_Request_request_time{client_id="\\"a:b\\""} 43.25
kafka_server_ControllerMutation_tokens{client_id="cl1"} -62.5
kafka_server_ControllerMutation_mutation_rate{client_id="cl1"} 1.5
kafka_server_socket_server_metrics_connection_accept_throttle_time{listener="CONTROLLER"} 3.0
kafka_controller_ControllerEventManager_99thPercentile{name="EventQueueTimeMs"} 69.0
kafka_controller_ControllerEventManager_99thPercentile{name="EventQueueProcessingTimeMs"} 900.0
kafka_network_RequestMetrics_99thPercentile{name="TotalTimeMs",request="Produce"} 12.5
kafka_network_RequestMetrics_99thPercentile{name="LocalTimeMs",request="Produce"} 800.0
kafka_network_RequestMetrics_99thPercentile{name="TotalTimeMs",request="FetchConsumer"} 500.0
"""
EXAMPLE_RULES = b"""kafka_server_quota_byte_rate{resource="Produce",user="ANONYMOUS",clientId="both"} 79857.5
kafka_server_quota_throttle_time{resource="Produce",user="ANONYMOUS",clientId="both"} 16195.0
kafka_server_quota_byte_rate{resource="Fetch",user="ann%20b%2Ac",clientId=""} 5.0
kafka_server_quota_request_time{resource="Request",clientId="a:b"} 43.25
kafka_server_quota_tokens{resource="ControllerMutation",clientId="cl1"} -62.5
kafka_server_quota_mutation_rate{resource="ControllerMutation",clientId="cl1"} 1.5
kafka_server_app_info_starttimems{id="7"} 1.0
kafka_controller_controllereventmanager_eventqueuetimems{quantile="0.99"} 69.0
kafka_controller_controllereventmanager_eventqueuetimems{quantile="0.5"} 1.0
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 12.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.999"} 800.0
kafka_network_requestmetrics_totaltimems{request="FetchConsumer",quantile="0.99"} 500.0
"""
FORMS = {
    "default names": DEFAULT_NAMES,
    "example rules": EXAMPLE_RULES,
    "lower case": DEFAULT_NAMES.replace(b"kafka_server_Produce", b"kafka_server_produce").replace(
        b"ControllerMutation_", b"controllermutation_"
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_same_metrics_under_other_names_are_the_same(text: bytes) -> None:
    found = parsed([text], "host:7071")
    assert (found.broker, found.queue_ms, found.produce_ms) == ("7", 69.0, 12.5)
    assert dict(found.readings()) == {
        QuotaBucket(key=PRODUCER_BYTE_RATE, user="ANONYMOUS", client_id="both"): BucketUse(
            broker="7", used=79857.5, throttle_ms=16195.0
        ),
        QuotaBucket(key=CONSUMER_BYTE_RATE, user="ann b*c", client_id=None): BucketUse(broker="7", used=5.0),
        QuotaBucket(key=REQUEST_PERCENTAGE, user=None, client_id="a:b"): BucketUse(broker="7", used=43.25),
        QuotaBucket(key=CONTROLLER_MUTATION_RATE, user=None, client_id="cl1"): BucketUse(
            broker="7", used=1.5, tokens=-62.5
        ),
    }


def test_a_bucket_can_have_only_one_of_its_values() -> None:
    lines = (
        b'kafka_server_Produce_byte_rate{user="a"} 1.0',
        b'kafka_server_Produce_throttle_time{user="b"} 2.0',
        b'kafka_server_ControllerMutation_tokens{client_id="c"} 3.0',
    )
    assert dict(parsed([b"\n".join(lines)], "h").readings()) == {
        QuotaBucket(key=PRODUCER_BYTE_RATE, user="a", client_id=None): BucketUse(broker="h", used=1.0),
        QuotaBucket(key=PRODUCER_BYTE_RATE, user="b", client_id=None): BucketUse(
            broker="h", used=None, throttle_ms=2.0
        ),
        QuotaBucket(key=CONTROLLER_MUTATION_RATE, user=None, client_id="c"): BucketUse(
            broker="h", used=None, tokens=3.0
        ),
    }


def test_an_empty_name_in_quotes_is_not_a_client() -> None:
    found = parsed([b'kafka_server_Produce_byte_rate{client_id="\\"\\""} 1.0\n'], "h")
    assert (list(found.readings()), found.has_readings, found.unread) == ([], False, 0)


def test_the_controllers_queue_is_read_without_labels() -> None:
    """An operator's rule can put the percentile into the name."""
    line = b"kafka_controller_controllereventmanager_eventqueuetimems_99thpercentile 12.5\n"
    assert parsed([line], "h").queue_ms == 12.5


def test_a_broker_without_its_id_is_named_by_its_exporter() -> None:
    assert parsed([b"up 1\n"], "host:7071").broker == "host:7071"


WRONG = {
    "no scheme": "broker1:7071",
    "a file": "file:///etc/passwd",
    "no host": "http:///metrics",
    "a port out of range": "http://h:99999/",
    "a blank": "http://h/a b",
    "a control character": "http://h/\x1b[2J",
    "nothing": ", ,",
    "a login": "http://me:secret@h/",
    "a login before an invalid port": "http://me:secret@h:bad",
    "a login without a scheme": "me:secret@h:7071",
    "a login with a slash": "http://me:secret/7@h",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="--metrics") as refused:
        urls(text, "--metrics")
    assert "secret" not in str(refused.value)


@pytest.fixture
def server() -> Iterator[str]:
    """A server with metrics at /metrics and another text at /text. All other paths are missing."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = {"/metrics": DEFAULT_NAMES, "/text": b'kafka_server_Produce_byte_rate{client_id="a"} x y z\n'}
            path = self.path.partition("?")[0]
            self.send_response(200 if path in body else 404)
            self.end_headers()
            self.wfile.write(body.get(path, b""))

        def log_message(self, *given: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_each_exporter_answers_or_says_why_not(server: str) -> None:
    good, missing, wrong, closed = read(
        [f"{server}/metrics", f"{server}/absent", f"{server}/text", "http://127.0.0.1:1/metrics"]
    )
    assert not isinstance(good, Unreachable)
    assert good.broker == "7"
    for failed, why in ((missing, "Not Found"), (wrong, "not in the text format"), (closed, "Connection refused")):
        assert isinstance(failed, Unreachable)
        assert why in str(failed)


NAMES = ("a\rb", "a\x00\x1b[2J\x85\u2028b", 'q"q\\q', "a } # {b=,", " NaN", "é" * 10_000, "b" * 30_000)
"""Client-ids that clients can choose. JMX quotes some of them, and the exporter escapes that once more."""


@pytest.mark.parametrize("size", [1, 7, 10**6], ids=str)
def test_a_client_cannot_choose_a_name_that_hides_the_others(size: int) -> None:
    def escaped(name: str) -> str:
        return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    lines = [f'kafka_server_Produce_byte_rate{{client_id="{escaped(name)}"}} 1.0' for name in NAMES]
    broken = ['kafka_server_Fetch_byte_rate{client_id="a} 1.0', 'kafka_server_Fetch_byte_rate{client_id="b"} 1_0']
    body = "\n".join([*lines, *broken]).encode() + b'\nkafka_server_Fetch_byte_rate{client_id="\xff"} 1.0\n'
    found = parsed([body[n : n + size] for n in range(0, len(body), size)], "h")
    assert [bucket.client_id for bucket, _ in found.readings()] == list(NAMES)
    assert found.unread == 3


INVALID_LINES = {
    "a value before the labels": 'a_tokens 5{user="a"} 1',
    "an exemplar": 'a_tokens{user="a"} 5 # {trace="x"} 1',
    "a label without a value": "a_tokens{user} 1",
    "a label that is repeated": 'a_tokens{user="a",user="b"} 1',
    "a name with a dash": 'a-tokens{user="a"} 1',
    "no value": 'a_tokens{user="a"}',
    "three numbers": 'a_tokens{user="a"} 1 2 3',
    "a comment": '# a_tokens{user="a"} 1',
    "a number that is too large for a float": "a_tokens " + "9" * 400,
    "too many labels": "a_tokens{" + "".join(f'l{n}="",' for n in range(101)) + "} 1",
    "nothing": "",
}


@pytest.mark.parametrize("line", INVALID_LINES.values(), ids=INVALID_LINES)
def test_a_line_that_is_not_in_the_text_format_is_invalid(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        sample_of(line)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
label_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: name[:2] != "__")


@given(
    st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True),
    st.dictionaries(label_names, texts | texts.map(lambda text: text * 20), max_size=4),
    st.floats(allow_nan=False),
)
def test_a_line_in_parts_has_the_values_of_the_whole_line(name: str, labels: dict[str, str], value: float) -> None:
    metric = GaugeMetricFamily(name, "help", labels=list(labels))
    metric.add_metric(list(labels.values()), value)
    registry = CollectorRegistry()
    registry.register(Fixed(metric))
    text = generate_latest(registry).decode()
    (official,) = [one for family in text_string_to_metric_families(text) for one in family.samples]
    (line,) = [one for one in text.split("\n") if one and one[0] != "#"]
    assert sample_of(line) == (official.name, official.labels, official.value) == (name, labels, value)


plain_names = texts.filter(lambda name: not (len(name) > 1 and name[0] == name[-1] == '"'))


@given(plain_names, plain_names)
def test_every_pair_of_names_is_one_bucket(user: str, client_id: str) -> None:
    metric = GaugeMetricFamily("kafka_server_Fetch_byte_rate", "help", labels=["client_id", "user"])
    metric.add_metric([client_id, quote(user)], 5.0)
    registry = CollectorRegistry()
    registry.register(Fixed(metric))
    bucket = QuotaBucket(key=CONSUMER_BYTE_RATE, user=user or None, client_id=client_id or None)
    found = parsed([generate_latest(registry)], "h")
    assert dict(found.readings()) == ({bucket: BucketUse(broker="h", used=5.0)} if user or client_id else {})


class Fixed(Collector):
    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def collect(self) -> list[Metric]:
        return [self.metric]


UNBOUNDED = {
    "escaped quotes": b'kafka_server_Produce_byte_rate{client_id="' + b'\\"' * 45_000 + b'"} 1\n',
    "labels": b"kafka_server_Produce_byte_rate{"
    + b",".join(b'a%d="1"' % n for n in range(10_000))
    + b'} 1\nkafka_server_Produce_byte_rate{user="a"} 1\n',
    "blank lines": b"\n" * 90_000,
    "clients": b"".join(b'ControllerMutation_tokens{client_id="%d"} 1\n' % n for n in range(2_000)),
}


@pytest.mark.parametrize("text", UNBOUNDED.values(), ids=UNBOUNDED)
def test_an_answer_takes_at_most_eight_times_its_size(text: bytes) -> None:
    parsed([text], "h")
    gc.collect()
    tracemalloc.start()
    parsed([text] * 10, "h")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * len(text) * 10


def test_a_line_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="a line of the answer has more than 100,000 bytes"):
        parsed([b"a" * 60_000] * 2, "h")


ABSURD = ("NaN", "+Inf", "-Inf", "1e999", "1e300", "9" * 400, "-1e300")


@pytest.mark.parametrize("value", ABSURD, ids=lambda text: text[:5])
def test_a_value_that_is_no_amount_is_unknown(value: str) -> None:
    text = f'kafka_server_Produce_byte_rate{{client_id="a"}} {value}\nkafka_server_Fetch_byte_rate{{client_id="a"}} 1\n'
    assert [use.used for _, use in parsed([text.encode()], "h").readings()] == [1.0]


def test_two_exporters_of_one_broker_are_refused(server: str) -> None:
    with pytest.raises(Invalid, match="both have the metrics of broker '7'"):
        read([f"{server}/metrics", f"{server}/metrics?again"])


def test_ten_thousand_clients_are_read_and_joined() -> None:
    lines = [
        f'kafka_server_{kind}{{client_id="client-{n}",user="user-{n % 97}"}} {value}'
        for n in range(10_000)
        for kind, value in (
            ("Produce_byte_rate", "79857.5"),
            ("Produce_throttle_time", "NaN"),
            ("Request_request_time", "0.5"),
            ("Request_throttle_time", "NaN"),
        )
    ]
    found = joined({}, parsed(["\n".join(lines).encode()], "h").readings())
    assert len(found) == 20_000
