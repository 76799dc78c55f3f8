"""Reads the quota metrics of brokers from Prometheus JMX exporters, whose rules determine the metric names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from kquota import bounded, terms
from kquota.errors import Invalid, Unreachable
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.stores import answers

_KEYS: Final = {
    "produce": terms.PRODUCER_BYTE_RATE,
    "fetch": terms.CONSUMER_BYTE_RATE,
    "request": terms.REQUEST_PERCENTAGE,
    "controllermutation": terms.CONTROLLER_MUTATION_RATE,
}
"""The quota key for each metric type (ClientQuotaManager)."""
_WANTED: Final = re.compile(
    rb"(?!#).*(?:_(?:byte_rate|request_time|mutation_rate|throttle_time|tokens|99thpercentile)$"
    rb"|eventqueuetime|app_info_|requestmetrics_totaltimems$)",
    re.I | re.S,
)
"""This module parses only lines whose metric has such a name, because a broker reports 12,000 lines."""
_NAME: Final = re.compile(
    r"(?:^|_)(?:quota|(produce|fetch|request|controllermutation))_(byte_rate|request_time|mutation_rate|throttle_time|tokens)$"
)
_FIELD: Final = {"throttle_time": 1, "tokens": 2}
"""The index of these metrics in the values of a bucket. All other metrics are the use of the bucket, at index 0."""
_BROKER: Final = re.compile(r"kafka_server_app_info_\w+$")
_ESCAPED: Final = re.compile(r"\\(.)")
_QUEUE: Final = "eventqueuetime"
_TOTAL: Final = "totaltimems"
_EXAMPLE: Final = "http://broker1:7071/metrics"
_LABELED: Final = re.compile(r"[ \t]*([a-zA-Z_:][\w:]*)[ \t]*(\{)?", re.ASCII)
_LABEL: Final = re.compile(r'[ \t,]*([a-zA-Z_]\w*)[ \t]*=[ \t]*"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.ASCII | re.DOTALL)
_END: Final = re.compile(r"[ \t,]*\}")
_MOST: Final = 1e18
_MOST_BYTES: Final = 64 * 2**20
"""The maximum size of an exporter's answer, in bytes. A broker with 10,000 clients has 10 MB of metrics."""
_SECONDS: Final = 10.0
_AT_ONCE: Final = 16


class Sample(NamedTuple):
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetrics:
    """The metrics of one broker. `readings` has the use of each quota bucket.

    `queue_ms` is the 99th percentile of the time in the controller's event queue, and `produce_ms` the 99th percentile
    of the total time of produce requests. None means that the broker does not report the value. `unread` is the number
    of lines with a relevant metric that are not in the text format.
    """

    broker: str
    readings: tuple[tuple[QuotaBucket, BucketUse], ...]
    queue_ms: float | None
    produce_ms: float | None = None
    unread: int = 0


def urls(text: str, named: str) -> tuple[str, ...]:
    """Parse exporter URLs, separated by commas, and drop duplicates.

    Raises Invalid, naming the option `named`, for an invalid URL, or if there is no URL.
    """
    found = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    for one in found:
        must_be_url(one, named, _EXAMPLE)
    if not found:
        raise Invalid(f"{named}: no URL is given. Write it like {_EXAMPLE}")
    return found


def must_be_url(text: str, named: str, example: str) -> None:
    """Raise Invalid, naming the option `named`, for a text that is not an http or https URL, or contains a login."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not text.isprintable() or " " in text:
        raise Invalid(f"{named} {text!r} is not an http or https URL. Write it like {example}")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"{named}: the URL contains a login, which other users can read on the command line. Remove it")


def read(addresses: Sequence[str]) -> list[BrokerMetrics | Unreachable]:
    """Read the exporters in parallel, at most 16 at a time. Return the metrics or the error of each, in order.

    Raises Invalid if two exporters report the same broker.
    """
    with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as pool:
        found = list(pool.map(_read, addresses))
    seen: dict[str, str] = {}
    for address, one in zip(addresses, found, strict=True):
        if not isinstance(one, Unreachable) and (first := seen.setdefault(one.broker, address)) != address:
            raise Invalid(
                f"{first} and {address} both have the metrics of broker {one.broker!r}. Give one exporter for each "
                "broker, and brokers of only one cluster"
            )
    return found


def _read(url: str) -> BrokerMetrics | Unreachable:
    try:
        return parsed(answers.pieces(url, _MOST_BYTES, _SECONDS), urlsplit(url).netloc)
    except answers.NoAnswer as error:
        return Unreachable(f"{url}: no metrics ({error}). Check that the exporter is running")
    except ValueError as error:
        return Unreachable(f"{url}: no metrics ({error}). Check the URL")


def parsed(body: Iterable[bytes], where: str) -> BrokerMetrics:
    """Parse the answer of an exporter, piece by piece. `where` is the name of a broker that does not report its id.

    A line that is not in the text format is counted and left out, because it can contain a name that a client has
    chosen. Raises ValueError for a line that is too long, or if there are invalid lines and no quota metrics.
    """
    unread = 0

    def samples() -> Iterator[Sample]:
        nonlocal unread
        for line in _wanted(body):
            try:
                yield sample_of(line.decode())
            except ValueError:
                unread += 1

    found = metrics_of(samples(), where)
    if unread and not found.readings:
        raise ValueError("the answer is not in the text format of Prometheus")
    return replace(found, unread=unread)


def metrics_of(samples: Iterable[Sample], where: str) -> BrokerMetrics:
    """Return the metrics of one broker. `where` is the name of a broker that does not report its id."""
    broker, queue, produce = where, None, None
    found: dict[QuotaBucket, list[float | None]] = {}
    for sample in samples:
        name, match = _metric(sample.name)
        if match:
            bucket = _bucket(match[1], sample)
            if bucket is not None and (value := _reported(sample.value)) is not None:
                found.setdefault(bucket, [None, None, None])[_FIELD.get(match[2], 0)] = value
        elif _BROKER.match(name):
            broker = sample.labels.get("id", broker)
        elif (value := _queue(name, sample)) is not None:
            queue = max(value, queue or 0.0)
        elif (value := _produce(name, sample)) is not None:
            produce = max(value, produce or 0.0)
    readings = tuple(
        (bucket, BucketUse(broker=broker, used=used, throttle_ms=throttle_ms, tokens=tokens))
        for bucket, (used, throttle_ms, tokens) in found.items()
    )
    return BrokerMetrics(broker=broker, readings=readings, queue_ms=queue, produce_ms=produce)


@lru_cache(maxsize=128)
def _metric(name: str) -> tuple[str, re.Match[str] | None]:
    """Return the name in lower case, and its match. The match is None if the name is not that of a quota metric.

    The result is cached, because the metrics of thousands of clients have the same name.
    """
    return name.lower(), _NAME.search(name.lower())


@lru_cache(maxsize=128)
def _label(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _wanted(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines to parse. Raises ValueError for a line that is too long.

    Only a line feed ends a line, because a client's name can contain other control characters.
    """
    rest = b""
    for piece in body:
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > bounded.LINE:
            raise ValueError(f"a line of the answer has more than {bounded.LINE:,} bytes")
        yield from _to_parse(lines)
    yield from _to_parse([rest])


def _to_parse(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        name, labels, _ = line.partition(b"{")
        if labels and line[-4:] != b" NaN" and _is_wanted(name):
            yield line


@lru_cache(maxsize=128)
def _is_wanted(name: bytes) -> bool:
    return _WANTED.match(name) is not None


def sample_of(line: str) -> Sample:
    """Parse one line of the text format. Raises ValueError for an invalid line.

    The parser of prometheus_client needs 6 times as long, and quadratic time for a line with many labels.
    """
    begin = _LABELED.match(line)
    if begin is None:
        raise ValueError("the line has no metric name")
    labels, place = {}, begin.end()
    if begin[2]:
        while found := _LABEL.match(line, place):
            labels[found[1]] = _unescaped(found[2])
            place = found.end()
        if (end := _END.match(line, place)) is None:
            raise ValueError("the list of labels does not end")
        place = end.end()
    values = line[place:].split()
    if not 1 <= len(values) <= 2 or "_" in values[0]:  # a timestamp can follow the value
        raise ValueError("the line has no value")
    return Sample(begin[1], labels, float(values[0]))


def _bucket(kind: str | None, sample: Sample) -> QuotaBucket | None:
    """Return the bucket of a sample, or None for another metric or a sample with neither user nor client id."""
    labels = {_label(name): value for name, value in sample.labels.items()}
    kind = kind or labels.get("resource", labels.get("type", "")).lower()
    user, client_id = labels.get("user", ""), labels.get("clientid", "")
    if kind not in _KEYS or not (user or client_id):
        return None
    # Decode the names, because brokers percent-encode the user, and JMX quotes names with special characters.
    return QuotaBucket(key=_KEYS[kind], user=unquote(_plain(user)) or None, client_id=_plain(client_id) or None)


def _plain(name: str) -> str:
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return _unescaped(name[1:-1]) if quoted else name


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _queue(name: str, sample: Sample) -> float | None:
    """Return the 99th percentile of EventQueueTimeMs, or None for another metric and for NaN.

    The metric has its default names, or those of the exporter's example configuration.
    """
    labels = sample.labels
    by_label = name.endswith("_99thpercentile") and labels.get("name", "").lower().startswith(_QUEUE)
    by_name = _QUEUE in name and (name.endswith("_99thpercentile") or labels.get("quantile") == "0.99")
    return _reported(sample.value) if by_label or by_name else None


def _produce(name: str, sample: Sample) -> float | None:
    """Return the 99th percentile of TotalTimeMs of produce requests, or None for another metric and for NaN.

    The metric has the same two kinds of names as in `_queue`.
    """
    labels = sample.labels
    if labels.get("request", "").lower() != "produce":
        return None
    by_label = name.endswith("requestmetrics_99thpercentile") and labels.get("name", "").lower() == _TOTAL
    by_name = name.endswith(f"requestmetrics_{_TOTAL}") and labels.get("quantile") == "0.99"
    return _reported(sample.value) if by_label or by_name else None


def _reported(value: float) -> float | None:
    """Return the value, or None for NaN (a metric without a sample) and for a number that is too large for a metric."""
    return value if abs(value) < _MOST else None
