"""Reads the quota metrics of brokers from a Prometheus server that scrapes their exporters (its HTTP API, v1)."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from kquota import bounded
from kquota.errors import Invalid, Unreachable
from kquota.stores.metrics import answers
from kquota.stores.metrics.broker_metrics import BrokerMetrics, Sample, metrics_of

_NAMES: Final = (
    "(?i).*_(byte_rate|request_time|mutation_rate|throttle_time|tokens)"
    "|kafka_server_app_info_.*|kafka_controller_controllereventmanager_.*"
)
"""A PromQL regular expression for the metrics that `broker_metrics` knows, except the produce times. Prometheus matches
the whole name.
"""
_EXAMPLE: Final = "http://prometheus:9090?job=kafka"
_MOST_BYTES: Final = 64 * 2**20
_LONGEST: Final = 500
_LAST_SECOND: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_SECONDS: Final = 30.0
_MOST_TIMES: Final = 11_000
"""The maximum number of timestamps in an answer. A Prometheus server returns at most this many values of one series."""
_KEPT: Final = object()
_AT_ONCE: Final = timedelta(hours=1)
"""The maximum period of one range query. A longer period could need too much memory, because samples are text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusServer:
    """The address of a Prometheus server, and the labels that select the series of a cluster's brokers."""

    address: str
    labels: Mapping[str, str]

    @property
    def selector(self) -> str:
        """The PromQL selector of all series to read."""
        found = [
            f"__name__=~{json.dumps(_NAMES)}",
            *(f"{name}={json.dumps(value)}" for name, value in self.labels.items()),
        ]
        return f"{{{','.join(found)}}}"


def server(text: str, named: str) -> PrometheusServer:
    """Parse the URL of a Prometheus server. The query of the URL has the labels that select the series.

    Raises Invalid if the text is not an http or https URL, if it contains a login, or if a label name is not valid or
    is given twice. The message begins with `named`, the name of the option.
    """
    answers.must_be_url(text, named, _EXAMPLE)
    parts = urlsplit(text)
    given = parse_qsl(parts.query, keep_blank_values=True)
    labels = dict(given)
    if len(labels) < len(given):
        raise Invalid(f"{named} {text!r}: a label is given twice. Give each label once, for example {_EXAMPLE}")
    for name in labels:
        if not (name.isascii() and name.isidentifier()):
            raise Invalid(f"{named} {text!r}: {name!r} is not a valid label name. Give a URL like {_EXAMPLE}")
    address = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return PrometheusServer(address=address, labels=labels)


def read(of: PrometheusServer) -> list[BrokerMetrics | Unreachable]:
    """Return the newest metrics of all brokers.

    If the server gives no valid answer or has no metrics, the list has only one Unreachable. Raises Invalid if a broker
    is listed twice.
    """
    newest: list[BrokerMetrics] = []
    try:
        for _, brokers in _asked(of, "query", {}):
            newest = brokers or newest
    except Unreachable as error:
        return [error]
    if not newest:
        wrong = "Prometheus has no quota metrics of brokers. Check its scrape targets, and the labels in the URL"
        return [Unreachable(f"{of.address}: {wrong}")]
    return [*_of_one_cluster(newest, of)]


def history(
    of: PrometheusServer, begin: datetime, end: datetime, step: timedelta
) -> Iterator[tuple[datetime, list[BrokerMetrics]]]:
    """Yield the time (UTC) and the metrics of all brokers for every step from `begin` to `end` that has samples, the
    earliest first.

    Each request covers at most one hour, or one step if the step is longer, and is sent when its values are needed.
    Raises Unreachable if there is no valid answer, and Invalid if a broker is listed twice.
    """
    while begin <= end:
        last = min(end, begin + max(_AT_ONCE - step, timedelta()))
        times = {"start": begin.timestamp(), "end": last.timestamp(), "step": step.total_seconds()}
        for second, brokers in _asked(of, "query_range", times):
            yield datetime.fromtimestamp(second, UTC), _of_one_cluster(brokers, of)
        begin += max(_AT_ONCE // step, 1) * step


def _asked(
    of: PrometheusServer, query: str, parameters: Mapping[str, float]
) -> Iterator[tuple[float, list[BrokerMetrics]]]:
    url = f"{of.address}/api/v1/{query}?{urlencode({'query': of.selector, **parameters})}"
    try:
        return parsed(b"".join(answers.pieces(url, _MOST_BYTES, _SECONDS)))
    except answers.NoAnswer as error:
        words = f"kquota could not read the metrics from Prometheus ({_why(error)}). Check the URL"
        raise Unreachable(f"{of.address}: {words}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreachable(f"{of.address}: the answer is not from Prometheus. Check the URL") from error


def _why(error: answers.NoAnswer) -> str:
    try:
        return str(bounded.json_object(error.body)["error"])[:_LONGEST]
    except (ValueError, KeyError):
        return str(error)


class _ReadSeries:
    """The series of an answer. Each series is packed as soon as it is decoded, because JSON objects take ten times the
    memory.
    """

    def __init__(self) -> None:
        self.labels: list[dict[str, str]] = []
        self._at: defaultdict[float, tuple[array[int], array[float]]] = defaultdict(lambda: (array("I"), array("d")))

    def keep(self, found: dict[str, Any]) -> object:
        """Keep a series and return `_KEPT`, or return any other object unchanged."""
        labels = found.get("metric")
        if not isinstance(labels, dict):
            return found
        if not all(isinstance(text, str) for text in labels.values()):
            raise ValueError("a label is not text")
        for second, value in found["values"] if "values" in found else [found["value"]]:
            if not 0 <= (time := _float(second)) < _LAST_SECOND:
                raise ValueError("a time is out of range")
            numbers, values = self._at[time]
            numbers.append(len(self.labels))
            values.append(_float(value))
            if len(self._at) > _MOST_TIMES:
                raise ValueError(f"the answer has more than {_MOST_TIMES:,} timestamps")
        self.labels.append(labels)
        return _KEPT

    def brokers(self) -> Iterator[tuple[float, list[BrokerMetrics]]]:
        for second in sorted(self._at):
            found: defaultdict[str, list[Sample]] = defaultdict(list)
            for number, value in zip(*self._at.pop(second), strict=True):
                labels = self.labels[number]
                found[labels.get("instance", "")].append(Sample(labels.get("__name__", ""), labels, value))
            yield (
                second,
                [
                    broker
                    for instance, samples in sorted(found.items())
                    # Servers other than brokers can have metrics with such names.
                    if (broker := metrics_of(samples, instance)).has_readings or broker.broker != instance
                ],
            )


def parsed(body: bytes) -> Iterator[tuple[float, list[BrokerMetrics]]]:
    """Return the metrics of the brokers at each time of an answer, the earliest first.

    A broker that does not report its id has the name of its exporter. Raises ValueError, KeyError or TypeError for an
    invalid answer.
    """
    series = _ReadSeries()
    result = bounded.json_object(body, bounded.json_decoder(series.keep))["data"]["result"]
    if len(result) != len(series.labels) or any(one is not _KEPT for one in result):
        raise TypeError("a series has no labels")
    return series.brokers()


def _float(value: float | str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number is too large") from None


def _of_one_cluster(brokers: list[BrokerMetrics], of: PrometheusServer) -> list[BrokerMetrics]:
    twice = [name for name, count in Counter(one.broker for one in brokers).items() if count > 1]
    if twice:
        raise Invalid(
            f"{of.address}: broker {twice[0]} is listed twice, so the series are from several clusters or scrape jobs. "
            f"Add a label to the URL that selects one of them, for example {_EXAMPLE}"
        )
    return brokers
