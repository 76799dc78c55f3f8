"""The lock of a command that writes at intervals, so that other commands can write in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Final, Self

from kquota.errors import Busy, KquotaError, Unknown, Unreachable
from kquota.reassign.port import Clock

_PAUSE: Final = 1.0
"""Seconds between two attempts to take the lock again."""


class Turns:
    """The lock, held in the `with` block except in its `released` blocks."""

    def __init__(
        self,
        hold: Callable[[], AbstractContextManager[None]],
        clock: Clock,
        patience: float,
        waiting: Callable[[KquotaError], None] = lambda _: None,
    ) -> None:
        """`patience` is the longest wait to take the lock again, in seconds.

        `waiting` receives the error of each failed attempt before the next one. `hold` returns the context manager of
        the lock. Entering the `with` block raises the errors of `hold`.
        """
        self._hold = hold
        self._clock = clock
        self._patience = patience
        self._waiting = waiting
        self._held = ExitStack()

    def __enter__(self) -> Self:
        self._held.enter_context(self._hold())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the lock in this block, and take it again afterwards.

        Raises Busy, Unreachable or Unknown if kquota cannot take the lock within `patience` seconds. Unknown means that
        the record did not confirm a write of the lock in time.

        If the release raises one of these errors, the error is ignored. After an exception in the block, the lock stays
        released.
        """
        with suppress(Busy, Unreachable, Unknown):
            self._held.close()
        yield
        deadline = self._clock.monotonic() + self._patience
        while True:
            try:
                self._held.enter_context(self._hold())
            except (Busy, Unreachable, Unknown) as error:
                if self._clock.monotonic() > deadline:
                    raise
                self._waiting(error)
                self._clock.sleep(_PAUSE)
            else:
                return
