"""The clock of a command, and a schedule for reading until a write is visible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from kquota.terms import SEEN_SECONDS

_SEEN_POLL_SECONDS: Final = 0.05
_STEP_SECONDS: Final = 2.0


class SystemClock:
    """The system clock. Each wait calls `keep_alive`, for example to show other processes that the holder of the lock
    is alive.
    """

    def __init__(self, keep_alive: Callable[[], None] = lambda: None) -> None:
        self._keep_alive = keep_alive

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait in steps, and call `keep_alive` before the first step and after each step. Raises Busy if another kquota
        took over the lock.
        """
        give_up = time.monotonic() + seconds
        self._keep_alive()
        while (left := give_up - time.monotonic()) > 0:
            time.sleep(min(left, _STEP_SECONDS))
            self._keep_alive()


def until_seen(seconds: float = SEEN_SECONDS) -> Iterator[None]:
    """Yield whenever it is time to read a written value again: at once, then every 50 ms for `seconds`. On KRaft, a
    write took up to 0.27 s to become visible.
    """
    give_up = time.monotonic() + seconds
    yield
    while time.monotonic() < give_up:
        time.sleep(_SEEN_POLL_SECONDS)
        yield
