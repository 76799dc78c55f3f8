"""Defers signals, mainly during calls to client libraries, because a library can catch the exception that a signal
handler raises.

For example, if Ctrl-C interrupts kazoo while kazoo wakes its connection, kazoo assumes that the connection was lost and
continues the write.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@contextmanager
def deferred() -> Iterator[Callable[[], None]]:
    """Defer SIGINT, SIGTERM, SIGHUP and SIGALRM until the context ends. Yields a function that passes the signals
    deferred so far to the previous handlers.

    The end of the context restores the previous handlers, and then passes the remaining signals to these handlers. A
    signal without a Python handler is not deferred. Outside of the main thread, `deferred` has no effect, because
    Python handles signals only in the main thread.
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
