"""The metrics of a broker about its clients, by the names that JMX exporters give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, NewType
from urllib.parse import unquote

from kquota import terms
from kquota.quota.usage import BucketUse, QuotaBucket

_KEYS: Final = {
    "produce": terms.PRODUCER_BYTE_RATE,
    "fetch": terms.CONSUMER_BYTE_RATE,
    "request": terms.REQUEST_PERCENTAGE,
    "controllermutation": terms.CONTROLLER_MUTATION_RATE,
}
"""The quota key for each metric type (ClientQuotaManager)."""
_KEY_OF: Final = {kind[0]: key for kind, key in _KEYS.items()}
"""The quota key for the first letter of each metric type. A packed bucket begins with this letter."""
_NAME: Final = re.compile(
    r"(?:^|_)(?:quota|(produce|fetch|request|controllermutation))_(byte_rate|request_time|mutation_rate|throttle_time|tokens)$"
)
_LABELS: Final = frozenset({"user", "clientid", "resource", "type"})
_BROKER: Final = re.compile(r"kafka_server_app_info_\w+$")
_QUEUE: Final = "eventqueuetime"
_TOTAL: Final = "totaltimems"
_MOST: Final = 1e18
_ESCAPED: Final = re.compile(r"\\(.)")

PackedBucket = NewType("PackedBucket", str)
"""The key and the names of a bucket in one string. A `QuotaBucket` with two strings takes three times the memory."""


class Sample(NamedTuple):
    """One value of a metric."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetrics:
    """The metrics of one broker. The values of quota buckets are in the units of `BucketUse`.

    A bucket is missing, or a time is None, if the broker does not report its value.
    """

    broker: str
    """The broker's id or, if the broker does not report it, the name of its exporter."""
    used: Mapping[PackedBucket, float]
    throttle_ms: Mapping[PackedBucket, float]
    tokens: Mapping[PackedBucket, float]
    queue_ms: float | None
    """The 99th percentile of the time in the controller's event queue, in milliseconds."""
    produce_ms: float | None = None
    """The 99th percentile of the total time of produce requests, in milliseconds."""
    unread: int = 0
    """The number of lines with a relevant metric that are not in the text format."""

    @property
    def has_readings(self) -> bool:
        """True if the broker reports a value of a bucket."""
        return bool(self.used or self.throttle_ms or self.tokens)

    def readings(self) -> Iterator[tuple[QuotaBucket, BucketUse]]:
        """Yield each bucket once, with its use. The result is not a list, because a list of all uses would take too
        much memory.
        """
        used, throttle_ms, tokens = self.used, self.throttle_ms, self.tokens
        throttled = (packed for packed in throttle_ms if packed not in used)
        rejected = (packed for packed in tokens if packed not in used and packed not in throttle_ms)
        for packed in chain(used, throttled, rejected):
            use = BucketUse(
                broker=self.broker,
                used=used.get(packed),
                throttle_ms=throttle_ms.get(packed),
                tokens=tokens.get(packed),
            )
            yield _unpacked(packed), use


def metrics_of(samples: Iterable[Sample], where: str) -> BrokerMetrics:
    """Return the metrics of one broker. `where` is the name of a broker that does not report its id.

    Ignores samples of other metrics, and values that are NaN or too large. If a percentile has several samples, the
    highest value counts.
    """
    broker, queue, produce = where, None, None
    used: dict[PackedBucket, float] = {}
    throttle_ms: dict[PackedBucket, float] = {}
    tokens: dict[PackedBucket, float] = {}
    fields = {"throttle_time": throttle_ms, "tokens": tokens}
    for sample in samples:
        name, match = _metric(sample.name)
        if match:
            packed = _packed(match[1], sample.labels)
            if packed is not None and (value := _reported(sample.value)) is not None:
                fields.get(match[2], used)[packed] = value
        elif _BROKER.match(name):
            broker = sample.labels.get("id", broker)
        elif (value := _queue(name, sample)) is not None:
            queue = max(value, queue or 0.0)
        elif (value := _produce(name, sample)) is not None:
            produce = max(value, produce or 0.0)
    return BrokerMetrics(
        broker=broker, used=used, throttle_ms=throttle_ms, tokens=tokens, queue_ms=queue, produce_ms=produce
    )


# Cached, because the metrics of thousands of clients have the same name.
@lru_cache(maxsize=128)
def _metric(name: str) -> tuple[str, re.Match[str] | None]:
    return name.lower(), _NAME.search(name.lower())


@lru_cache(maxsize=128)
def _label(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _packed(kind: str | None, labels: Mapping[str, str]) -> PackedBucket | None:
    labels = {known: value for name, value in labels.items() if (known := _label(name)) in _LABELS}
    kind = kind or labels.get("resource", labels.get("type", "")).lower()
    # Decode the names, because brokers percent-encode the user, and JMX quotes names with special characters.
    user, client_id = unquote(_plain(labels.get("user", ""))), _plain(labels.get("clientid", ""))
    if kind not in _KEYS or not (user or client_id):
        return None
    return PackedBucket(f"{kind[0]}{len(user)} {user}{client_id}")


def _unpacked(packed: PackedBucket) -> QuotaBucket:
    length, _, names = packed.partition(" ")
    end = int(length[1:])
    return QuotaBucket(key=_KEY_OF[packed[0]], user=names[:end] or None, client_id=names[end:] or None)


def _plain(name: str) -> str:
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return unescaped(name[1:-1]) if quoted else name


def unescaped(text: str) -> str:
    """Resolve the backslash escapes in a quoted name of JMX: a newline for `n`, otherwise the escaped character."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _queue(name: str, sample: Sample) -> float | None:
    """Return the 99th percentile of EventQueueTimeMs, or None for another metric or an unusable value.

    The exporter gives the metric a default name, or the name from the exporter's example configuration.
    """
    labels = sample.labels
    by_label = name.endswith("_99thpercentile") and labels.get("name", "").lower().startswith(_QUEUE)
    by_name = _QUEUE in name and (name.endswith("_99thpercentile") or labels.get("quantile") == "0.99")
    return _reported(sample.value) if by_label or by_name else None


def _produce(name: str, sample: Sample) -> float | None:
    """Return the 99th percentile of TotalTimeMs of produce requests, or None for another metric or an unusable value.

    The exporter gives the metric the same two kinds of names as in `_queue`.
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
