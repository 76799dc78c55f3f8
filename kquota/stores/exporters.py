"""Reads the quota metrics of brokers from Prometheus JMX exporters, whose rules determine the metric names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit

from kquota import bounded
from kquota.errors import Invalid, Unreachable
from kquota.stores import answers
from kquota.stores.broker_metrics import BrokerMetrics, Sample, metrics_of, unescaped

_WANTED: Final = re.compile(
    rb"_(?:byte_rate|request_time|mutation_rate|throttle_time|tokens|99thpercentile)\{|eventqueuetime|app_info_"
    rb"|requestmetrics_totaltimems\{",
    re.I,
)
"""This module parses only lines that begin with such a name, because a broker reports 12,000 lines. Quota metrics have
labels.
"""
_EXAMPLE: Final = "http://broker1:7071/metrics"
_VALUE: Final = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_LABELS: Final = rf'(?:[ \t,]*[a-zA-Z_]\w*[ \t]*=[ \t]*"{_VALUE}")*+'
_LINE: Final = re.compile(rf"[ \t]*([a-zA-Z_:][\w:]*)[ \t]*(?:\{{({_LABELS})[ \t,]*\}})?", re.ASCII | re.DOTALL)
_LABEL: Final = re.compile(rf'(\w+)[ \t]*=[ \t]*"({_VALUE})"', re.ASCII | re.DOTALL)
_MOST_BYTES: Final = 64 * 2**20
"""The maximum size of an exporter's answer, in bytes. A broker with 10,000 clients has 10 MB of metrics."""
_SECONDS: Final = 10.0
_AT_ONCE: Final = 16


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
    if unread and not found.has_readings:
        raise ValueError("the answer is not in the text format of Prometheus")
    return replace(found, unread=unread)


def _wanted(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines to parse. Raises ValueError for a line that is too long.

    Only a line feed ends a line, because a client's name can contain other control characters.
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
    """Return whether a line that begins with this name, and with `{` if it has labels, is parsed."""
    return begin[:1] != b"#" and _WANTED.search(begin) is not None


def sample_of(line: str) -> Sample:
    """Parse one line of the text format. Raises ValueError for an invalid line.

    The parser of prometheus_client needs 6 times as long, and quadratic time for a line with many labels.
    """
    begin = _LINE.match(line)
    if begin is None:
        raise ValueError("the line has no metric name")
    name, texts = begin.groups("")
    labels = {label: unescaped(text) for label, text in map(re.Match.groups, _LABEL.finditer(texts))}
    values = line[begin.end() :].split()
    if not 1 <= len(values) <= 2 or "_" in values[0]:  # a timestamp can follow the value
        raise ValueError("the line has no value, or its labels are not valid")
    return Sample(name, labels, float(values[0]))
