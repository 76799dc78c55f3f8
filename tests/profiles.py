"""The number of examples of properties that do not follow the profile (tests/conftest.py)."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

QUICK: Final = 8
"""The examples of every property in `make unit`."""


def examples(count: int) -> settings:
    """Give a property this number of examples, but not in `make unit`."""
    return settings(max_examples=min(count, QUICK) if settings().max_examples == QUICK else count)
