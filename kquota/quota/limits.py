"""Limits from text and as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from kquota.errors import Invalid
from kquota.measure import byte_rate
from kquota.quota_keys import QUOTA_KEYS

Limits: TypeAlias = Mapping[str, float]
"""Quota key to value, in the unit of its row in `quota_keys`."""

_NUMBER: Final = re.compile(r"\s*[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.I)
_LONG_MAX: Final = float(2**63 - 1)


def value(key: str, text: str, named: str | None = None) -> float:
    """One limit from its text; byte rates accept units. Errors use `named`, or else the key.

    Raises Invalid for a value that no broker should be given (0, negative, NaN, infinity, parts of a byte).
    """
    row, name = QUOTA_KEYS[key], named or key
    if row.in_bytes:
        return float(byte_rate(text, name))
    # Python's float() accepts more than Java's: 1_000, and the digits of every script.
    if not _NUMBER.fullmatch(text):
        raise Invalid(f"{name}={text}: not a number")
    found = float(text)
    if not math.isfinite(found) or found <= 0:
        raise Invalid(
            f"{name}={text}: must be more than 0 and finite. A broker would store it, but its effect is not defined"
        )
    if row.bits is not None and not (found.is_integer() and found < 2**row.bits):
        raise Invalid(f"{name}={text}: must be a whole number, at most 2^{row.bits} - 1")
    return found


def dotted(release: tuple[int, ...]) -> str:
    """A release in the usual notation, for example 3.9.1."""
    return ".".join(map(str, release))


def plain(value: float) -> str:
    """A value as kafka-configs stores it: whole numbers without a decimal point.

    >>> plain(1048576.0), plain(12.5)
    ('1048576', '12.5')
    """
    if value == _LONG_MAX:
        # A double cannot represent 2^63 - 1, Kafka's "no limit". The next value is not a long, and a broker could not
        # read it.
        return str(2**63 - 1)
    return str(int(value)) if value.is_integer() else repr(value)
