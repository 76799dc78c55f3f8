"""kafka-python's loop, which can be interrupted: it keeps whatever a task raises for itself, a Ctrl-C too."""

from __future__ import annotations

from typing import Final

from kafka.net.selector import NetworkSelector

from kquota.stores.interrupt import deferred

_TURN_SECONDS: Final = 0.1
"""A signal waits for the end of a turn."""


class Loop(NetworkSelector):  # type: ignore[misc]
    """Signals come between two turns, when no task runs."""

    def _poll_once(self, timeout: float | None = None) -> None:
        with deferred():
            super()._poll_once(_TURN_SECONDS if timeout is None else min(timeout, _TURN_SECONDS))
