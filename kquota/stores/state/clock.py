"""The clock of the record. It also counts the time in which this machine was suspended."""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux stops CLOCK_MONOTONIC during a suspend. macOS does not, and has no CLOCK_BOOTTIME."""


def now() -> float:
    """Return the seconds since a fixed moment. They never decrease."""
    return time.clock_gettime(_CLOCK)
