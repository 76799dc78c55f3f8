"""Throttle rates of brokers (KIP-73, KIP-113): their stored text, and whether brokers enforce them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kquota.settings.resource import Entry
from kquota.terms import DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, THROTTLE_RATES

DEFAULT_HAS_RATES: Final = (3, 9)
"""Brokers before this release ignore a rate in the broker default (KAFKA-10190)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRate:
    """A throttle rate as its broker reports it."""

    value: str
    """The stored text, normally a number of bytes per second. ZooKeeper accepts any text."""
    source: str
    """Kafka's name for the source, for example `DYNAMIC_BROKER_CONFIG`."""
    in_force: bool


def stored_rates(entries: Iterable[Entry], release: tuple[int, ...] | None) -> dict[str, StoredRate]:
    """Return the throttle rates of one broker or of the broker default, by key.

    `release` is None if it is unknown. Rates without a value are left out. Rates without synonyms are also left out,
    because Kafka 4.3.1 still reports deleted rates of a broker in this form.
    """
    return {
        entry.key: StoredRate(value=entry.value, source=entry.source, in_force=in_force(entry, release))
        for entry in entries
        if entry.key in THROTTLE_RATES and entry.value is not None and entry.synonyms
    }


def in_force(entry: Entry, release: tuple[int, ...] | None) -> bool:
    """Return True if a broker enforces the value that it reports.

    A broker enforces a throttle rate only if the rate was set dynamically (KAFKA-20125). A rate in the broker default
    counts as not enforced before Kafka 3.9, and if `release` is None (unknown). All other configs count as enforced.
    """
    if entry.key not in THROTTLE_RATES or entry.source == DYNAMIC_BROKER:
        return True
    obeyed = release is not None and release >= DEFAULT_HAS_RATES
    return obeyed and entry.source == DYNAMIC_DEFAULT_BROKER
