"""Parses and formats rates (bytes per second), sizes (bytes), times (seconds), percentages and counts. Adds amounts of
which some may be unknown, and finds quantiles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final, NewType, TypeVar

from kquota.errors import Invalid
from kquota.terms import LONG_MAX

ByteRate = NewType("ByteRate", int)
"""Bytes per second, always positive."""

_PREFIX: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BYTES_PER_UNIT: Final[Mapping[str, Decimal]] = {
    "": Decimal(1),
    **{f"{p}B": Decimal(n) for p, n in (_PREFIX | _BINARY).items()},
    **{f"{p}bit": Decimal(n) / 8 for p, n in (_PREFIX | _BINARY).items()},
}
_SECONDS_PER_UNIT: Final[Mapping[str, Decimal]] = {
    "": Decimal(1),
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
# The exponent has at most three digits, because 1e999999999 would exhaust memory.
_QUANTITY: Final = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?P<unit>[A-Za-z]*)\s*")
_MOST_DAYS: Final = 36_500
_LONG_DIGITS: Final = 19
_PERCENTAGE: Final = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%\s*")
_EXAMPLES: Final = "examples: 10000000, 10MB/s, 64MiB/s, 400Mbit/s"


def whole_number(text: str | None) -> int | None:
    """Return the number in a config that must be a whole number of 0 or more. None for a missing config, and for any
    other text.

    >>> whole_number("1048576"), whole_number("-1"), whole_number(None), whole_number("9" * 5000)
    (1048576, None, None, None)
    """
    # int() also accepts the digits of other scripts, and fails for too many digits.
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _LONG_DIGITS):
        return None
    return int(text)


def byte_rate(text: str, what: str = "rate") -> ByteRate:
    """Parse `50MB/s`, `400Mbit/s` or a bare number (Kafka's bytes per second) into whole bytes per second.

    >>> byte_rate("400Mbit/s")
    50000000

    Raises Invalid for other text, for less than 1 byte per second, for fractions of a byte, and for more than 2^63 - 1.
    The message begins with `what`.
    """
    rate = _scaled(text.strip().removesuffix("/s"), text, _BYTES_PER_UNIT, what, _EXAMPLES)
    if rate < 1:
        raise Invalid(f"{what} {text!r}: a rate must be at least 1 byte per second; {_EXAMPLES}")
    if rate > LONG_MAX:
        raise Invalid(f"{what} {text!r}: must be at most 2^63 - 1 bytes per second")
    if rate != int(rate):
        raise Invalid(f"{what} {text!r} is not a whole number of bytes per second; {_EXAMPLES}")
    return ByteRate(int(rate))


def byte_size(text: str, what: str = "size") -> int:
    """Parse `2TB`, `500GiB` or a bare number of bytes into whole bytes.

    >>> byte_size("1.5TB")
    1500000000000

    Raises Invalid for other text, zero, fractions of a byte and more than 2^63 - 1. The message begins with `what`.
    """
    examples = "examples: 2TB, 500GiB"
    units = {unit: size for unit, size in _BYTES_PER_UNIT.items() if not unit.endswith("bit")}
    size = _scaled(text, text, units, what, examples)
    if size < 1 or size != int(size):
        raise Invalid(f"{what} {text!r} is not a whole number of bytes, 1 or more; {examples}")
    if size > LONG_MAX:
        raise Invalid(f"{what} {text!r}: must be at most 2^63 - 1 bytes; {examples}")
    return int(size)


def duration(text: str, what: str = "duration") -> float:
    """Parse `2ms`, `90s`, `15m`, `6h`, `7d` or a bare number of seconds into seconds.

    Raises Invalid for other text, for 0 and for more than 36,500 days. The message begins with `what`.
    """
    seconds = float(_scaled(text, text, _SECONDS_PER_UNIT, what, "examples: 90s, 15m, 6h"))
    if seconds <= 0:
        raise Invalid(f"{what} {text!r}: must be more than 0")
    if seconds > _MOST_DAYS * 86_400:
        raise Invalid(f"{what} {text!r}: must be at most {_MOST_DAYS}d")
    return seconds


def percentage(text: str, what: str = "share") -> Fraction:
    """Parse `30%` into an exact fraction of one.

    Raises Invalid for other text and for more than 100%. The message begins with `what`.

    >>> percentage("12.5%")
    Fraction(1, 8)
    """
    match = _PERCENTAGE.fullmatch(text)
    if match is None or Fraction(match[1]) > 100:
        raise Invalid(f"{what} {text!r}: write a percentage from 0% to 100%, for example 10%")
    return Fraction(match[1]) / 100


def exact_percentage(share: Fraction) -> str:
    """Format a share from `percentage` without loss: `percentage` parses the text to the same share.

    >>> exact_percentage(Fraction(85, 100)), exact_percentage(Fraction(1, 8))
    ('85%', '12.5%')
    """
    digits = f"{float(100 * share):.6f}".rstrip("0").rstrip(".")
    return f"{digits}%"


def _scaled(quantity: str, text: str, units: Mapping[str, Decimal], what: str, examples: str) -> Decimal:
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise Invalid(f"{what} {text!r} is not a positive number, with or without a unit; {examples}")
    unit = match["unit"]
    if unit not in units:
        hint = " (b could be bit or byte)" if unit.endswith("b") else ""
        raise Invalid(f"{what} {text!r}: unknown unit {unit!r}{hint}; {examples}")
    return Decimal(match["number"]) * units[unit]


def exact_rate(rate: int) -> str:
    """Format a rate in the unit with the fewest digits, without loss: `byte_rate` parses the text to the same rate.

    >>> exact_rate(52_428_800), exact_rate(50_000_000), exact_rate(1_048_577)
    ('50MiB/s', '50MB/s', '1048577')
    """
    size = exact_size(rate)
    return size if size.isdigit() else f"{size}/s"


def exact_size(size: int) -> str:
    """Format a size in the unit with the fewest digits, without loss: `byte_size` parses the text to the same size.

    >>> exact_size(2_000_000_000), exact_size(1_048_577)
    ('2GB', '1048577')
    """
    digits, unit = str(size), ""
    for prefix, one in (_PREFIX | _BINARY).items():
        if prefix != "K" and size % one == 0 and len(str(size // one)) < len(digits):
            digits, unit = str(size // one), f"{prefix}B"
    return digits + unit


def human_bytes(size: float, digits: int = 3) -> str:
    """Format a size for people, in decimal units and with at most `digits` significant digits (3 or more). From 1,000
    TB on, there are more digits, because TB is the largest unit.

    >>> human_bytes(12_345_678)
    '12.3 MB'
    """
    unit, *larger = "B", "kB", "MB", "GB", "TB"
    while abs(size) >= 999.5 and larger:
        size /= 1000
        unit = larger.pop(0)
    whole = unit == "B" or abs(size) >= 99.95
    text = f"{size:.{digits - 3}f}" if whole else f"{size:.{digits}g}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def size_in_full(size: float) -> str:
    """Format a size for people, and in whole bytes, rounded up.

    >>> size_in_full(12_345_678), size_in_full(1)
    ('12.3 MB (12345678 bytes)', '1 B (1 byte)')
    """
    whole = math.ceil(size)
    return f"{human_bytes(size)} ({whole} {'byte' if whole == 1 else 'bytes'})"


def human_rate(rate: float) -> str:
    """Format a rate for people. A rate above 0 that would round to 0 is shown as `<1 B/s`.

    >>> human_rate(10_000_000), human_rate(0.4), human_rate(0)
    ('10 MB/s', '<1 B/s', '0 B/s')
    """
    return "<1 B/s" if 0 < rate <= 0.5 else f"{human_bytes(rate)}/s"


def human_rates(*rates: float) -> tuple[str, ...]:
    """Format the rates of one sentence for people, with enough digits to distinguish rates that differ after rounding
    to whole bytes per second.

    >>> human_rates(10_000_000, 12_345_678), human_rates(10_000_000, 10_000_400)
    (('10 MB/s', '12.3 MB/s'), ('10 MB/s', '10.0004 MB/s'))
    """
    whole = [round(rate) for rate in rates]
    for digits in range(3, 16):
        texts = tuple(f"{human_bytes(rate, digits)}/s" for rate in whole)
        if len(set(texts)) == len(set(whole)):
            return texts
    return tuple(f"{rate} B/s" for rate in whole)


def bytes_per_second(rate: int) -> str:
    """Format a rate exactly, in Kafka's unit.

    >>> bytes_per_second(1), bytes_per_second(50_000_000)
    ('1 byte per second', '50000000 bytes per second')
    """
    return f"{rate} {'byte' if rate == 1 else 'bytes'} per second"


def rate_in_full(rate: int) -> str:
    """Format a rate exactly and for people, so that an operator sees a wrong unit.

    >>> rate_in_full(50_000_000)
    '50000000 bytes per second (50 MB/s)'
    """
    return f"{bytes_per_second(rate)} ({human_rate(rate)})"


def human_duration(seconds: float) -> str:
    """Format a time for people: in seconds below two minutes, otherwise in two units, for example hours and minutes.

    >>> human_duration(3_725)
    '1 h 02 min'
    """
    if seconds < 119.5:
        return f"{seconds:.3g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24:02d} h"


def counted(value: int, noun: str) -> str:
    """Return a count with its noun: `1 copy`, `2 copies`."""
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{value:,} {noun if value == 1 else plural}"


def agreeing(value: int, noun: str, one: str, many: str) -> str:
    """Return a count with its noun and verb: `1 copy has`, `2 copies have`."""
    return f"{counted(value, noun)} {one if value == 1 else many}"


def nearest_rank(values: Collection[float], share: float) -> float:
    """Return the quantile by nearest rank: the lowest value that is at least as high as `share` of the values. There
    must be a value, and `share` must be above 0 and at most 1.

    >>> nearest_rank([4.0, 1.0, 3.0, 2.0], 0.75)
    3.0
    """
    return sorted(values)[math.ceil(share * len(values)) - 1]


_Amount = TypeVar("_Amount", int, float)


def total(amounts: Iterable[_Amount | None]) -> _Amount | None:
    """Return the sum of the amounts, or None if one of them is unknown (None). Without amounts, the sum is 0."""
    found = list(amounts)
    return None if None in found else sum(amount for amount in found if amount is not None)


def highest(amounts: Iterable[_Amount | None]) -> _Amount | None:
    """Return the highest amount, or None if there are none or one of them is unknown (None)."""
    found = list(amounts)
    return None if None in found else max((amount for amount in found if amount is not None), default=None)
