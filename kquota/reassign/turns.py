"""The lock of a command that writes at intervals, so that other commands can write in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from kquota.errors import Busy, KquotaError, Unknown, Unreachable
from kquota.reassign.port import Clock

_PAUSE: Final = 1.0
"""Seconds between two attempts to take the lock again."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The lock, held in the `with` block except in its `released` blocks.

    `hold` returns the context manager of the lock, and its errors are raised when the `with` block begins. `patience`
    is the longest wait to take the lock again, in seconds. `waiting` receives the error of each failed attempt before
    the next one.
    """

    hold: Callable[[], AbstractContextManager[None]]
    clock: Clock
    patience: float
    waiting: Callable[[KquotaError], None] = lambda _: None
    _held: ExitStack = field(init=False, default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._held.enter_context(self.hold())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the lock in this block, and take it again afterwards.

        Raises Busy, Unreachable or Unknown if kquota cannot take the lock within `patience` seconds. Unknown means that
        the record did not confirm a write of the lock in time. Raises any other error of `hold` at once.

        If the release raises one of these errors, the error is ignored. After an exception in the block, the lock stays
        released.
        """
        with suppress(Busy, Unreachable, Unknown):
            self._held.close()
        yield
        deadline = self.clock.monotonic() + self.patience
        while True:
            try:
                self._held.enter_context(self.hold())
            except (Busy, Unreachable, Unknown) as error:
                if self.clock.monotonic() > deadline:
                    raise
                self.waiting(error)
                self.clock.sleep(_PAUSE)
            else:
                return
