"""Brokers that close a new connection: one that limits them is asked again (KIP-612), one that means it is not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kquota.stores import handshake

_AT_ONCE: Final = 0.1
"""Seconds."""
_RESET: Final = (ConnectionResetError, BrokenPipeError)
_IN_VAIN: Final = 3
"""A server that hangs up that often, before it has said anything, does it on purpose."""


class Limited(ConnectionError):
    """Time was up, and the broker still closed new connections without a look at them."""

    def __str__(self) -> str:
        return "it keeps closing new connections: does connection_creation_rate hold this address up (KIP-612)?"


@dataclass(slots=True)
class HangUps:
    """Of each node, by its id: how often it hung up on purpose since it last took a connection.

    A connection beyond the rate is closed when its throttle time is over, and what we have sent was never read: it is
    reset, and not at once.
    """

    _on_purpose: dict[object, int] = field(default_factory=dict)

    def failed(self, node: object, error: BaseException, seconds: float) -> None:
        """A connection was not made, after so many seconds."""
        limited = isinstance(handshake.cause(error), _RESET) and seconds >= _AT_ONCE
        before = self._on_purpose.get(node, 0)
        self._on_purpose[node] = before + (not limited) if is_hung_up(error) else _IN_VAIN

    def made(self, node: object) -> None:
        """A connection can be used."""
        self._on_purpose.pop(node, None)

    def limits(self, node: object) -> bool:
        """Whether it, or any node (None), closes connections, and not on purpose."""
        return any(count == 0 for known, count in self._on_purpose.items() if node in (None, known))

    def in_vain(self, node: object) -> bool:
        """Whether trying again is: it hung up on purpose, or did something else."""
        return self._on_purpose.get(node, 0) >= _IN_VAIN


def is_hung_up(error: BaseException) -> bool:
    """Whether the server closed the connection without a word, as one that ends does, and one of another protocol."""
    cause = handshake.cause(error)
    return "disconnected" in str(error) or isinstance(cause, ConnectionError) or "EOF" in str(cause)
