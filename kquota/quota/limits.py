"""The limits of an entity: parsing, printing, changes to individual keys, and the replacement of all limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.measure import byte_rate
from kquota.quota.entity import Entity
from kquota.quota_keys import QUOTA_KEYS
from kquota.settings.change import must_change
from kquota.terms import LONG_MAX

Limits: TypeAlias = Mapping[str, float]
"""Each limit by its quota key, in the unit that `QUOTA_KEYS` gives for the key."""

_NUMBER: Final = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.I | re.A
)


def value(key: str, text: str, named: str | None = None) -> float:
    """Parse one limit. A byte rate can have a unit. Error messages begin with `named`, or with the key.

    Raises Invalid for text that is not a number, and for 0, a negative number, NaN and infinity. If Kafka stores the
    limit as a whole number, also raises Invalid for a fraction and for a number that is too large.
    """
    row, name = QUOTA_KEYS[key], named or key
    if row.in_bytes:
        return float(byte_rate(text, name))
    # Check the text first, because Python's float() also accepts text that Java does not, for example 1_000.
    if not _NUMBER.fullmatch(text):
        raise Invalid(f"{name}={text}: not a number. Write a number, for example 10")
    found = float(text)
    if not math.isfinite(found) or found <= 0:
        raise Invalid(
            f"{name}={text}: must be more than 0 and finite. A broker would store this value, but its effect is not "
            "defined"
        )
    if row.bits is not None and not (found.is_integer() and found < 2**row.bits):
        raise Invalid(f"{name}={text}: must be a whole number, at most 2^{row.bits} - 1")
    return found


def plain(value: float) -> str:
    """Format a value as kafka-configs stores it: whole numbers without a decimal point.

    >>> plain(1048576.0), plain(12.5)
    ('1048576', '12.5')
    """
    if value == float(LONG_MAX):
        # 2^63 - 1 means no limit in Kafka. A double rounds it up to 2^63, which is not a long, so a broker could not
        # read that value.
        return str(LONG_MAX)
    return str(int(value)) if value.is_integer() else repr(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """Keys to set and keys to delete for one entity. Raises Invalid if there are none, or if a key is in both."""

    entity: Entity
    add: Limits = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        must_change(self.add, self.delete)

    def seen(self, after: Limits) -> bool:
        """Return True if `after` shows this change. Other keys are ignored."""
        return all(after.get(key) == value for key, value in self.add.items()) and not set(self.delete) & set(after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The replacement of all limits of an entity: `before` was read, and `after` will be set. With `pruned`, the
    document does not name the entity.
    """

    entity: Entity
    before: Limits
    after: Limits
    pruned: bool = False

    def differing(self) -> Iterator[tuple[str, float | None, float | None]]:
        """Yield (key, old, new) for each key that changes, sorted. None means not set."""
        for key in sorted({*self.before, *self.after}):
            old, new = self.before.get(key), self.after.get(key)
            if old != new:
                yield key, old, new

    @property
    def change(self) -> QuotaChange:
        """The keys to set and the keys to delete. Raises Invalid if nothing changes."""
        keys = list(self.differing())
        return QuotaChange(
            entity=self.entity,
            add={key: new for key, _, new in keys if new is not None},
            delete=tuple(key for key, _, new in keys if new is None),
        )

    def is_unchanged(self, now: Limits) -> bool:
        """Return True if `now` is still equal to `before`. NaN, which brokers accept, counts as equal to itself."""
        return _spelt(now) == _spelt(self.before)

    def seen(self, now: Limits) -> bool:
        """Return True if `now` is equal to `after`."""
        return _spelt(now) == _spelt(self.after)


def _spelt(limits: Limits) -> dict[str, str]:
    return {key: repr(value) for key, value in limits.items()}
