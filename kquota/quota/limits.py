"""How much: the keys of client quotas, their units, and the text of --add-config and --delete-config."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.measure import byte_rate
from kquota.terms import (
    CLIENT_QUOTAS,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

Limits: TypeAlias = Mapping[str, float]
"""Quota key to value: bytes per second per broker, percent of one thread per broker (KIP-124), or partition mutations
per second for the whole cluster (KIP-599)."""


def _bytes_per_second(key: str, text: str) -> float:
    return float(byte_rate(text, key))


def _positive(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise Invalid(f"{key}={text}: not a number") from None
    if not math.isfinite(value) or value <= 0:
        raise Invalid(f"{key}={text}: must be more than 0 and finite; a broker would store it, and not mean it")
    return value


_PARSE: Final[Mapping[str, Callable[[str, str], float]]] = {
    PRODUCER_BYTE_RATE: _bytes_per_second,
    CONSUMER_BYTE_RATE: _bytes_per_second,
    REQUEST_PERCENTAGE: _positive,
    CONTROLLER_MUTATION_RATE: _positive,
}


def limits(text: str) -> Limits:
    """The value of --add-config: `k=v,k=v`, kafka-configs' grammar; byte rates take units.

    >>> limits("producer_byte_rate=1MB/s,request_percentage=12.5")
    {'producer_byte_rate': 1000000.0, 'request_percentage': 12.5}

    Raises Invalid for unknown or repeated keys and for values that no broker should be given (0, NaN, infinity).
    """
    found: dict[str, float] = {}
    for pair in text.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise Invalid(f"--add-config: {pair!r} is not key=value")
        _must_be_known(key, "--add-config")
        if key in found:
            raise Invalid(f"--add-config: {key} is given twice")
        if value.startswith("[") and value.endswith("]"):
            value = value[1:-1]
        if not value:
            raise Invalid(f"--add-config: {key} has no value; to remove it write --delete-config {key}")
        found[key] = _PARSE[key](key, value)
    return found


def keys(text: str) -> tuple[str, ...]:
    """The value of --delete-config: `k,k`. Raises Invalid for an unknown, empty or repeated key."""
    found = [key.strip() for key in text.split(",")]
    for key in found:
        _must_be_known(key, "--delete-config")
    if len(set(found)) < len(found):
        raise Invalid(f"--delete-config: {text!r} names a key twice")
    return tuple(found)


def _must_be_known(key: str, option: str) -> None:
    if key not in CLIENT_QUOTAS:
        raise Invalid(f"{option}: {key!r} is not a quota of users or clients; these are: {', '.join(CLIENT_QUOTAS)}")


def plain(value: float) -> str:
    """A value as kafka-configs stores it when an operator types it: whole numbers without a point.

    >>> plain(1048576.0), plain(12.5)
    ('1048576', '12.5')
    """
    return str(int(value)) if value.is_integer() else repr(value)
