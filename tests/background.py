"""Clients that work beside a test, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(stop: threading.Event, *work: Callable[[], object]) -> Iterator[None]:
    """Run each function in a thread. When the block ends, set `stop`, and wait until the functions return."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
