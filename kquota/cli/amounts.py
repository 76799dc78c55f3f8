"""Rates, times, sizes and counts as text for people. A value that was not reported is `unknown`, never 0 and never a
dash.
"""

from __future__ import annotations

from typing import Final

from kquota.measure import human_bytes, human_duration, human_rate, human_rates

UNKNOWN: Final = "unknown"


def rate_or_unknown(rate: float | None) -> str:
    """Format bytes per second for people. None becomes `unknown`.

    >>> rate_or_unknown(0), rate_or_unknown(None)
    ('0 B/s', 'unknown')
    """
    return UNKNOWN if rate is None else human_rate(rate)


def rates_or_unknown(*rates: float | None) -> tuple[str, ...]:
    """Format the rates of one sentence, in bytes per second, like `human_rates`. None becomes `unknown`.

    >>> rates_or_unknown(10_000_000, None, 10_000_400)
    ('10 MB/s', 'unknown', '10.0004 MB/s')
    """
    known = iter(human_rates(*(rate for rate in rates if rate is not None)))
    return tuple(UNKNOWN if rate is None else next(known) for rate in rates)


def time_or_unknown(seconds: float | None) -> str:
    """Format seconds for people. None becomes `unknown`."""
    return UNKNOWN if seconds is None else human_duration(seconds)


def size_or_unknown(size: float | None) -> str:
    """Format bytes for people. None becomes `unknown`."""
    return UNKNOWN if size is None else human_bytes(size)


def size_with(size: int | None, word: str) -> str:
    """Format bytes and the word after them. None becomes a text that says what is unknown.

    >>> size_with(6_000_000, "left"), size_with(None, "left")
    ('6 MB left', 'bytes left unknown')
    """
    return f"bytes {word} unknown" if size is None else f"{human_bytes(size)} {word}"


def count_or_unknown(count: int | None) -> str:
    """Format a number with thousands separators. None becomes `unknown`."""
    return UNKNOWN if count is None else f"{count:,}"
