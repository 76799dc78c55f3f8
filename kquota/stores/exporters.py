"""Reads the quota metrics of brokers from Prometheus JMX exporters. Their rules decide how the metrics are named."""

from __future__ import annotations

import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final
from urllib.parse import unquote, urlsplit

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from kquota import terms
from kquota.errors import Invalid, Unreachable
from kquota.quota.usage import BucketUse, QuotaBucket

_KEYS: Final = {
    "produce": terms.PRODUCER_BYTE_RATE,
    "fetch": terms.CONSUMER_BYTE_RATE,
    "request": terms.REQUEST_PERCENTAGE,
    "controllermutation": terms.CONTROLLER_MUTATION_RATE,
}
"""The quota of each type of metric (ClientQuotaManager)."""
_USED: Final = ("byte_rate", "request_time", "mutation_rate")
_WANTED: Final = re.compile(
    rb"_(?:byte_rate|request_time|mutation_rate|throttle_time|tokens)\{|eventqueuetime|app_info_", re.I
)
"""What a line of the text format contains if this module reads it. The others are not parsed: a broker has 12,000."""
_NAME: Final = re.compile(
    r"(?:^|_)(?:quota|(produce|fetch|request|controllermutation))_(byte_rate|request_time|mutation_rate|throttle_time|tokens)$"
)
_BROKER: Final = re.compile(r"kafka_server_app_info_\w+$")
_ESCAPED: Final = re.compile(r"\\(.)")
_QUEUE: Final = "eventqueuetime"
_EXAMPLE: Final = "http://broker1:7071/metrics"
_MOST_BYTES: Final = 256 * 2**20
_SECONDS: Final = 10.0
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetrics:
    """The metrics of one broker. `queue_ms` is the 99th percentile of its wait in the queue of the controller, or None
    if it does not report it.
    """

    broker: str
    readings: tuple[tuple[QuotaBucket, BucketUse], ...]
    queue_ms: float | None


def urls(text: str, named: str) -> tuple[str, ...]:
    """Parse the addresses of exporters, separated by commas. Raises Invalid, naming the option `named`."""
    found = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    for one in found:
        must_be_url(one, named, _EXAMPLE)
    if not found:
        raise Invalid(f"{named}: no URL is given. Write it like {_EXAMPLE}")
    return found


def must_be_url(text: str, named: str, example: str) -> None:
    """Raise Invalid, naming the option `named`, for a text that is not an http or https URL, or has a login."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not text.isprintable() or " " in text:
        raise Invalid(f"{named} {text!r}: not a URL. Write it like {example}")
    if parts.username is not None or parts.password is not None:
        raise Invalid(f"{named}: a URL with a login is refused, because others can read the command line")


def read(addresses: Sequence[str]) -> list[BrokerMetrics | Unreachable]:
    """Read all exporters at the same time. The result is in their order, with the error of each that failed."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as pool:
        return list(pool.map(_read, addresses))


def _read(url: str) -> BrokerMetrics | Unreachable:
    try:
        # `urls` accepts only http and https.
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310
            body = answer.read(_MOST_BYTES + 1)
    except (OSError, HTTPException, ValueError) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        return Unreachable(f"{url}: no metrics ({why}). Check that the exporter runs")
    if len(body) > _MOST_BYTES:
        return Unreachable(f"{url}: no metrics (the answer has more than {_MOST_BYTES >> 20} MiB)")
    try:
        return parsed(body, urlsplit(url).netloc)
    except (ValueError, KeyError, IndexError) as error:
        return Unreachable(f"{url}: no metrics (not the text format of Prometheus: {error})")


def parsed(body: bytes, where: str) -> BrokerMetrics:
    """Parse the answer of an exporter. `where` names a broker that does not report its id. Raises ValueError."""
    return metrics_of(_samples(body), where)


def metrics_of(samples: Iterable[Sample], where: str) -> BrokerMetrics:
    """Return the metrics of one broker from its samples, whatever rules have named them."""
    broker, queue = where, None
    used: dict[QuotaBucket, dict[str, float]] = {}
    for sample in samples:
        name = sample.name.lower()
        if match := _NAME.search(name):
            bucket = _bucket(match[1], sample)
            if bucket is not None and (value := _reported(sample.value)) is not None:
                what = "used" if match[2] in _USED else match[2]
                used.setdefault(bucket, {})[what] = value
        elif _BROKER.match(name):
            broker = sample.labels.get("id", broker)
        elif (value := _queue(name, sample)) is not None:
            queue = max(value, queue or 0.0)
    readings = tuple(
        (
            bucket,
            BucketUse(
                broker=broker,
                used=values.get("used"),
                throttle_ms=values.get("throttle_time"),
                tokens=values.get("tokens"),
            ),
        )
        for bucket, values in used.items()
    )
    return BrokerMetrics(broker=broker, readings=readings, queue_ms=queue)


def _samples(body: bytes) -> Iterator[Sample]:
    wanted = [line for line in body.splitlines() if _WANTED.search(line) and line[:1] != b"#" and line[-4:] != b" NaN"]
    for family in text_string_to_metric_families(b"\n".join([*wanted, b""]).decode()):
        yield from family.samples


def _bucket(kind: str | None, sample: Sample) -> QuotaBucket | None:
    """Return the bucket of a sample, or None for a metric that counts no client."""
    labels = {name.lower().replace("_", "").replace("-", ""): value for name, value in sample.labels.items()}
    kind = kind or labels.get("resource", labels.get("type", "")).lower()
    user, client_id = labels.get("user", ""), labels.get("clientid", "")
    if kind not in _KEYS or not (user or client_id):
        return None
    # Brokers encode the user with percent codes, and JMX quotes names with special characters.
    return QuotaBucket(key=_KEYS[kind], user=unquote(_plain(user)) or None, client_id=_plain(client_id) or None)


def _plain(name: str) -> str:
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], name[1:-1]) if quoted else name


def _queue(name: str, sample: Sample) -> float | None:
    """Return the 99th percentile of EventQueueTimeMs, by the default names and by those of the exporter's example."""
    labels = sample.labels
    by_label = name.endswith("_99thpercentile") and labels.get("name", "").lower().startswith(_QUEUE)
    by_name = _QUEUE in name and (name.endswith("_99thpercentile") or labels.get("quantile") == "0.99")
    return _reported(sample.value) if by_label or by_name else None


def _reported(value: float) -> float | None:
    """Return a value of a metric as a float. NaN, which brokers report for a metric without a sample, becomes None, and
    so does a number that is too large.
    """
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
