"""The time limit of one call to the log of the shared record. All requests of the call share this limit."""

from __future__ import annotations

from typing import Final

from kquota.errors import Unreachable
from kquota.stores.admin.connection import Wire
from kquota.stores.state.log import now
from kquota.terms import BrokerId

_REQUEST_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 0.5
_MUTED_SECONDS: Final = 60.0


class Deadline:
    """A time limit that does not count the first minute of throttle time (KIP-219)."""

    def __init__(self, wire: Wire, seconds: float) -> None:
        self._wire = wire
        self._end = now() + seconds
        self._mute_left = _MUTED_SECONDS
        self.seconds = seconds

    @property
    def over(self) -> bool:
        """True if the deadline has passed."""
        return now() >= self._end

    def request(self, broker: BrokerId | None) -> float:
        """Return the seconds (0.5 to 5) that one request to `broker`, or to any broker (None), may take.

        The current throttle time is not part of these seconds, and extends this deadline. Raises Unreachable and ends
        the deadline if the throttle time is longer than the rest of the minute that does not count.
        """
        muted = self._wire.muted(broker)
        if muted > self._mute_left:
            self._end = now()
            who = "each broker" if broker is None else f"broker {broker}"
            raise Unreachable(
                f"{who} throttles this client for another {muted:.0f} s, because a quota of the client is too low"
            )
        self._mute_left -= muted
        self._end += muted
        return max(_LEAST_SECONDS, min(_REQUEST_SECONDS, self._end - now()))
