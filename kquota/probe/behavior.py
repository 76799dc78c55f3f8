"""The reaction of a client to throttle times (KIP-219): the requests that it sends while a broker throttles it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

GRACE_SECONDS: Final = 0.05
"""A request that arrives within this time after a throttled response does not count as early if the connection has had
several requests in flight. The client may have sent this request before it read the response. Throttle times of at most
this length are not judged.
"""
_EARLY_SECONDS: Final = 0.005
"""A request may be early by this many seconds, because clients count in whole ms."""
ALLOWED: Final = 0.1
"""A client honors throttle times if it sends early requests during at most this share of the judged throttle times. The
share is not 0, because busy machines cause a few early requests.
"""


class Honors(enum.Enum):
    """The verdict on a client's reaction to throttle times."""

    YES = "honors throttle times"
    NO = "ignores throttle times"
    UNKNOWN = "cannot be judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBehavior:
    """The figures of one client on all its connections."""

    requests: int
    throttled: int
    """The number of responses with a throttle time."""
    throttle_ms: int
    """The sum of all throttle times."""
    longest_throttle_ms: int
    judged: int
    """The number of throttle times that can be judged, because the client sent another request during or after them."""
    broken: int
    """The number of judged throttle times during which the client sent an early request."""
    early: int
    """The number of early requests. The broker reads an early request only at the end of the throttle time."""
    waited_ms: int
    """The sum of the waits of all early requests until the broker reads them."""
    longest_wait_ms: int
    unread: int
    """The number of responses whose throttle time could not be read."""

    @property
    def honors(self) -> Honors:
        """The verdict. It is `UNKNOWN` if no throttle time can be judged."""
        if not self.judged:
            return Honors.UNKNOWN
        return Honors.NO if self.broken > ALLOWED * self.judged else Honors.YES


@dataclass(slots=True)
class BehaviorRecord:
    """The record of a client's behavior, as a proxy sees it."""

    requests: int = 0
    unread: int = 0
    _throttles: list[int] = field(default_factory=list)
    _waits: list[float] = field(default_factory=list)
    _judged: int = 0
    _broken: int = 0

    def connection(self) -> ClientConnection:
        """Return the record of a new connection. A throttle time applies only to its own connection."""
        return ClientConnection(self)

    def figures(self) -> ClientBehavior:
        """Return the figures so far."""
        waits = [round(seconds * 1_000) for seconds in self._waits]
        return ClientBehavior(
            requests=self.requests,
            throttled=len(self._throttles),
            throttle_ms=sum(self._throttles),
            longest_throttle_ms=max(self._throttles, default=0),
            judged=self._judged,
            broken=self._broken,
            early=len(waits),
            waited_ms=sum(waits),
            longest_wait_ms=max(waits, default=0),
            unread=self.unread,
        )

    def throttled(self, ms: int) -> None:
        """Count a response with a throttle time of `ms`."""
        self._throttles.append(ms)

    def judged(self, *, broken: bool) -> None:
        """Count a throttle time that can be judged. `broken` means that the client sent an early request."""
        self._judged += 1
        self._broken += broken

    def early(self, seconds: float) -> None:
        """Count a request that arrived `seconds` before the end of a throttle time."""
        self._waits.append(seconds)


@dataclass(slots=True)
class ClientConnection:
    """One connection of the client. Arguments named `at` are seconds of a monotonic clock.

    If throttle times of several responses overlap, they are judged as one.
    """

    _record: BehaviorRecord
    _begin: float = 0.0
    _end: float | None = None
    _broken: bool = False
    _in_flight: int = 0
    _parallel_requests: bool = False

    def requested(self, at: float) -> None:
        """Record a request of the client."""
        self._record.requests += 1
        self._in_flight += 1
        self._parallel_requests = self._parallel_requests or self._in_flight > 1
        if self._end is None or (self._parallel_requests and at < self._begin + GRACE_SECONDS):
            return
        if at < self._end - _EARLY_SECONDS:
            self._record.early(self._end - at)
            self._broken = True
            return
        self._over()

    def answered(self, at: float, throttle_ms: int) -> None:
        """Record a response that the proxy passes to the client."""
        self._in_flight -= 1
        if throttle_ms <= 0:
            return
        self._record.throttled(throttle_ms)
        end = at + throttle_ms / 1_000
        if throttle_ms <= GRACE_SECONDS * 1_000:
            return
        if self._end is not None and at < self._end - _EARLY_SECONDS:
            self._end = max(self._end, end)
            return
        if self._broken:
            self._over()
        self._begin, self._end = at, end

    def closed(self) -> None:
        """Record the end of the connection. A throttle time without a request during or after it cannot be judged."""
        if self._broken:
            self._over()

    def _over(self) -> None:
        self._record.judged(broken=self._broken)
        self._end, self._broken = None, False
