"""Limits on the memory and the processor time of one call. A busy machine does not count."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

SECONDS: Final = 1.0
SPREAD: Final = 8
"""The maximum number of bytes of memory for each byte of input."""


class TooSlow(BaseException):
    """A reader took longer than SECONDS. It is not an Exception, so no reader catches it."""


@contextmanager
def within_a_second() -> Iterator[None]:
    """Raise TooSlow inside a call that takes longer."""

    def stop(*_: object) -> NoReturn:
        raise TooSlow(f"longer than {SECONDS:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
