"""Reads `BrokerMetrics` from Prometheus JMX exporters, whose rules determine the names of the metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from kquota import bounded
from kquota.errors import Invalid, Unreachable
from kquota.stores.metrics import answers
from kquota.stores.metrics.broker_metrics import BrokerMetrics, Sample, metrics_of

_WANTED: Final = re.compile(
    rb"_(?:byte_rate|request_time|mutation_rate|throttle_time|tokens|99thpercentile)\{|eventqueuetime|app_info_"
    rb"|requestmetrics_totaltimems\{",
    re.I,
)
"""This module parses only lines whose metric name matches, because a broker reports 12,000 lines. The `{` is part of
the match, because quota metrics have labels.
"""
_EXAMPLE: Final = "http://broker1:7071/metrics"
_MOST_BYTES: Final = 64 * 2**20
"""The maximum size of an exporter's answer, in bytes. A broker with 10,000 clients has 10 MB of metrics."""
_SECONDS: Final = 10.0
_AT_ONCE: Final = 16
_MOST_LABELS: Final = 100
"""The maximum number of labels in a line. Many short labels take more than eight times their length in memory."""
_LONGEST_KEPT: Final = 100
"""The cache keeps the labels of a line only if they have at most this many characters. It therefore takes at most about
20 MB.
"""


def urls(text: str, named: str) -> tuple[str, ...]:
    """Parse exporter URLs, separated by commas, and drop duplicates.

    Raises Invalid for an invalid URL, or if there is no URL. The message begins with `named`, the name of the option.
    """
    found = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    for one in found:
        answers.must_be_url(one, named, _EXAMPLE)
    if not found:
        raise Invalid(f"{named}: no URL is given. Write it like {_EXAMPLE}")
    return found


def read(addresses: Sequence[str]) -> list[BrokerMetrics | Unreachable]:
    """Read the exporters in parallel, at most 16 at a time. Return the metrics or the error of each exporter, in the
    order of `addresses`.

    Raises Invalid if two exporters report the same broker. `addresses` must not be empty.
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
        return Unreachable(
            f"{url}: kquota could not read the metrics ({error}). Check the URL, and that the exporter is running"
        )
    except ValueError as error:
        return Unreachable(f"{url}: kquota could not read the metrics ({error}). Check the URL")


def parsed(body: Iterable[bytes], where: str) -> BrokerMetrics:
    """Parse the answer of an exporter, piece by piece. `where` is the name of a broker that does not report its id.

    A line that is not in the text format is counted and left out, because a client can choose a name that makes its
    line invalid. Raises ValueError for a line that is too long, or if there are invalid lines and no quota metrics.
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
    if unread and not found.has_readings:
        raise ValueError("the answer is not in the text format of Prometheus")
    return replace(found, unread=unread)


def _wanted(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines to parse. Only a line feed ends a line, because a client's name can contain other control
    characters.
    """
    rest = b""
    for piece in body:
        text = rest + piece
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        if len(rest) > bounded.LINE:
            raise ValueError(f"a line of the answer has more than {bounded.LINE:,} bytes")
        yield from _to_parse(BytesIO(text[:end]))
    yield from _to_parse([rest + b"\n"])


def _to_parse(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        name, bracket, _ = line.partition(b"{")
        begin = name + bracket if bracket else line.partition(b" ")[0]
        if line[-5:] != b" NaN\n" and _is_wanted(begin):
            yield line


@lru_cache(maxsize=128)
def _is_wanted(begin: bytes) -> bool:
    """`begin` is the name of the metric, followed by `{` if the line has labels."""
    return begin[:1] != b"#" and _WANTED.search(begin) is not None


def sample_of(line: str) -> Sample:
    """Parse one line of the text format. Raises ValueError for an invalid line."""
    series, has_labels, rest = line.rpartition("}")
    if not has_labels:
        return _whole(line)
    name, _, labels = series.partition("{")
    if labels.count('="') > _MOST_LABELS:
        raise ValueError("the line has too many labels")
    values = rest.split()
    if not 1 <= len(values) <= 2 or "_" in values[0]:  # a timestamp can follow the value
        raise ValueError("the line has no value, or its labels are not valid")
    parse = _kept_labels if len(labels) <= _LONGEST_KEPT else _labels
    return Sample(_name(name), parse(labels), float(values[0]))


@lru_cache(maxsize=128)
def _name(text: str) -> str:
    found = _whole(f"{text} 0").name
    if found != text.strip():
        raise ValueError("the name of the metric is not valid")
    return found


def _labels(text: str) -> Mapping[str, str]:
    found = _whole(f"labels{{{text}}} 0")
    if found.name != "labels" or found.value:
        raise ValueError("the labels are not valid")
    return found.labels


_kept_labels: Final = lru_cache(maxsize=2**14)(_labels)
"""`_labels` with a cache, because a client has the same labels in several metrics and on several brokers."""


def _whole(line: str) -> Sample:
    """Parse one line with prometheus_client, whose parser would stop at the first invalid line of a longer text.

    Raises ValueError for an invalid line.
    """
    try:
        ((found,),) = (family.samples for family in text_string_to_metric_families(line))
        return Sample(found.name, found.labels, float(found.value))
    except (IndexError, OverflowError) as error:
        raise ValueError("the line is not in the text format") from error
