"""Defers signals during calls to client libraries, because a library can swallow the exception of a handler.

For example, if Ctrl-C interrupts kazoo while it wakes its connection, kazoo assumes that the connection was lost and
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
    """Defer the signals in `_NUMBERS`. Yields a function that passes the deferred signals to the previous handlers.

    The end of the context also passes them on. A signal without a Python handler is not deferred. `deferred` has no
    effect outside of the main thread, because Python handles signals only there.
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
