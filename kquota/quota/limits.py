"""How much: the keys of client quotas, their units, and the text of --add-config and --delete-config."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.measure import byte_rate
from kquota.quota.entity import IPS
from kquota.terms import (
    CLIENT_QUOTAS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP_QUOTAS,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

Limits: TypeAlias = Mapping[str, float]
"""Quota key to value: bytes per second per broker, percent of one thread per broker (KIP-124), partition mutations
per second for the whole cluster (KIP-599), or new connections per second per broker (KIP-612)."""


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


def _whole(key: str, text: str) -> float:
    value = _positive(key, text)
    if not value.is_integer() or value > 2**31 - 1:
        raise Invalid(f"{key}={text}: must be a whole number, at most 2^31 - 1")
    return value


_PARSE: Final[Mapping[str, Callable[[str, str], float]]] = {
    PRODUCER_BYTE_RATE: _bytes_per_second,
    CONSUMER_BYTE_RATE: _bytes_per_second,
    REQUEST_PERCENTAGE: _positive,
    CONTROLLER_MUTATION_RATE: _positive,
    CONNECTION_CREATION_RATE: _whole,
}


def quotas_of(entity_types: Collection[str]) -> tuple[str, ...]:
    """The keys that a quota of these entity types can have."""
    return IP_QUOTAS if IPS in entity_types else CLIENT_QUOTAS


def value(key: str, text: str) -> float:
    """One limit from its text; byte rates take units.

    Raises Invalid for a value that no broker should be given (0, negative, NaN, infinity, parts of a byte).
    """
    return _PARSE[key](key, text)


def limits(text: str, allowed: Collection[str] = CLIENT_QUOTAS) -> Limits:
    """The value of --add-config: `k=v,k=v`, kafka-configs' grammar; byte rates take units.

    >>> limits("producer_byte_rate=1MB/s,request_percentage=12.5")
    {'producer_byte_rate': 1000000.0, 'request_percentage': 12.5}

    Raises Invalid for unknown or repeated keys and for values that no broker should be given (0, NaN, infinity).
    """
    found: dict[str, float] = {}
    for pair in text.split(","):
        key, equals, written = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise Invalid(f"--add-config: {pair!r} is not key=value")
        _must_be_known(key, "--add-config", allowed)
        if key in found:
            raise Invalid(f"--add-config: {key} is given twice")
        if written.startswith("[") and written.endswith("]"):
            written = written[1:-1]
        if not written:
            raise Invalid(f"--add-config: {key} has no value; to remove it write --delete-config {key}")
        found[key] = value(key, written)
    return found


def keys(text: str, allowed: Collection[str] = CLIENT_QUOTAS) -> tuple[str, ...]:
    """The value of --delete-config: `k,k`. Raises Invalid for an unknown, empty or repeated key."""
    found = [key.strip() for key in text.split(",")]
    for key in found:
        _must_be_known(key, "--delete-config", allowed)
    if len(set(found)) < len(found):
        raise Invalid(f"--delete-config: {text!r} names a key twice")
    return tuple(found)


def _must_be_known(key: str, option: str, allowed: Collection[str]) -> None:
    if key not in allowed:
        whose = "ips" if CONNECTION_CREATION_RATE in allowed else "users or clients"
        raise Invalid(f"{option}: {key!r} is not a quota of {whose}; these are: {', '.join(allowed)}")


def plain(value: float) -> str:
    """A value as kafka-configs stores it when an operator types it: whole numbers without a point.

    >>> plain(1048576.0), plain(12.5)
    ('1048576', '12.5')
    """
    return str(int(value)) if value.is_integer() else repr(value)
