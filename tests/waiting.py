"""Waiting for an effect, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

PATIENCE: Final = 120.0
"""A deadline in seconds. It is generous, because a busy machine may need long for one answer."""
_SHARE: Final = 4
"""The pause after a look, as a multiple of the duration of the look, because looks and servers share the machine."""
_SHORTEST: Final = 0.01
_LONGEST: Final = 0.25


def attempts(seconds: float = PATIENCE) -> Iterator[None]:
    """Yield for `seconds`, at least once, with a pause before each further look at the servers."""
    give_up = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        yield
        ended = time.monotonic()
        if ended > give_up:
            return
        time.sleep(min(_LONGEST, max(_SHORTEST, _SHARE * (ended - began))))


def until(done: Callable[[], object], what: str = "the expected state", seconds: float = PATIENCE) -> None:
    """Return as soon as `done` returns something true. Fail with `what` after `seconds`."""
    if not any(done() for _ in attempts(seconds)):
        raise AssertionError(f"{what}: still not true after {seconds:.0f} s")
