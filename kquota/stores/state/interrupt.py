"""Signals that wait: what is raised in the midst of a client library is lost there, or becomes another error.

kazoo takes a Ctrl-C that comes while it wakes its connection for a lost connection, and the write goes on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred() -> Iterator[Callable[[], None]]:
    """Yields what lets the signals through that came meanwhile, to the handlers that stood before; so does the end.

    Outside of the main thread, where Python handles none, nothing is changed.
    """
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in _NUMBERS}
        before = {number: handler for number, handler in found.items() if callable(handler)}

    def let_through() -> None:
        while came:
            number, frame = came.pop(0)
            before[number](number, frame)

    for number in before:
        signal.signal(number, lambda one, frame: came.append((one, frame)))
    try:
        yield let_through
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        let_through()
