"""How much: the keys of client quotas, their units and text, and which Kafka knows them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
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

_NUMBER: Final = re.compile(r"\s*[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.I)
SINCE: Final[Mapping[str, tuple[int, ...]]] = {CONTROLLER_MUTATION_RATE: (2, 7), CONNECTION_CREATION_RATE: (2, 7)}
"""The first release that knows a quota (KIP-599, KIP-612); the others are older than anything that kquota speaks to."""
_LONG_MAX: Final = float(2**63 - 1)


def _bytes_per_second(key: str, text: str) -> float:
    return float(byte_rate(text, key))


def _positive(key: str, text: str) -> float:
    # Python's own float() takes more than Java's: 1_000, and the digits of every script.
    if not _NUMBER.fullmatch(text):
        raise Invalid(f"{key}={text}: not a number")
    value = float(text)
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


def limits(pairs: Mapping[str, str], entity_types: Collection[str], option: str = "--add-config") -> Limits:
    """The limits in the pairs of `option`; byte rates take units.

    >>> limits({"producer_byte_rate": "1MB/s", "request_percentage": "12.5"}, ["users"])
    {'producer_byte_rate': 1000000.0, 'request_percentage': 12.5}

    Raises Invalid for a key that is no quota of `entity_types` and for a value that no broker should be given.
    """
    _must_be_quotas(pairs, entity_types, option, "added")
    for key, text in pairs.items():
        if not text:
            raise Invalid(f"{option}: {key} has no value; to remove it write --delete-config {key}")
    try:
        return {key: value(key, text) for key, text in pairs.items()}
    except Invalid as error:
        raise Invalid(f"{option}: {error}") from error


def keys(named: Iterable[str], entity_types: Collection[str]) -> tuple[str, ...]:
    """The keys of --delete-config. Raises Invalid for one that is no quota of `entity_types`."""
    found = tuple(named)
    _must_be_quotas(found, entity_types, "--delete-config", "deleted")
    return found


def _must_be_quotas(named: Iterable[str], entity_types: Collection[str], option: str, done: str) -> None:
    allowed = quotas_of(entity_types)
    if unknown := [key for key in named if key not in allowed]:
        whose = " and ".join(f"'{entity_type}'" for entity_type in entity_types)
        raise Invalid(
            f"{option}: Only quota configs can be {done} for {whose}. "
            f"Unexpected config names: {', '.join(unknown)}; quotas of {whose}: {', '.join(allowed)}"
        )


def unknown_to(release: tuple[int, ...], named: Iterable[str]) -> tuple[str, ...]:
    """Which of the keys brokers of this release do not know, and so store at most and ignore."""
    return tuple(key for key in named if release < SINCE.get(key, release))


def plain(value: float) -> str:
    """A value as kafka-configs stores it when an operator types it: whole numbers without a point.

    >>> plain(1048576.0), plain(12.5)
    ('1048576', '12.5')
    """
    if value == _LONG_MAX:
        # A double holds no 2^63 - 1, Kafka's "no limit"; one more is no long, and a broker could not read it.
        return str(2**63 - 1)
    return str(int(value)) if value.is_integer() else repr(value)
