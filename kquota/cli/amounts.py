"""Rates, times, sizes and counts as text for people. A value that was not reported is `unknown`, never 0 and never a
dash.
"""

from __future__ import annotations

from typing import Final

from kquota.measure import human_bytes, human_duration, human_rate

UNKNOWN: Final = "unknown"


def rate_or_unknown(rate: float | None) -> str:
    """Format bytes per second for people.

    >>> rate_or_unknown(0), rate_or_unknown(None)
    ('0 B/s', 'unknown')
    """
    return UNKNOWN if rate is None else human_rate(rate)


def time_or_unknown(seconds: float | None) -> str:
    """Format seconds for people. None becomes `unknown`."""
    return UNKNOWN if seconds is None else human_duration(seconds)


def size_or_unknown(size: float | None) -> str:
    """Format bytes for people. None becomes `unknown`."""
    return UNKNOWN if size is None else human_bytes(size)


def count_or_unknown(count: int | None) -> str:
    """Format a number with thousands separators. None becomes `unknown`."""
    return UNKNOWN if count is None else f"{count:,}"
