"""An estimate of a client's throttle time from its rates over time, without its individual requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kquota.terms import FULL_SAMPLES_MS

_WINDOW: Final = FULL_SAMPLES_MS / 1_000
"""The length of the quota window in seconds. After a window without requests, a burst as large as this number times the
limit is not delayed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledTime:
    """The waits of a client under a limit."""

    seconds: float = 0.0
    """The total of all waits."""
    longest: float = 0.0
    """The longest wait in seconds."""
    unfinished: bool = False
    """True if delayed work is left at the end."""


@dataclass(slots=True, kw_only=True)
class _SteadyClient:
    """One client under a limit. `before` is its rate over the last window, and `late` is the delayed amount that is
    left.
    """

    limit: float
    before: float = 0.0
    late: float = 0.0
    seconds: float = 0.0
    total: float = 0.0
    longest: float = 0.0
    active: bool = False

    def pass_(self, rate: float, seconds: float) -> None:
        if not self.active:
            seconds = self._calm(rate, seconds)
        if self.active:
            seconds = self._throttled(rate, seconds)
        if not self.active:
            part = min(seconds, _WINDOW) / _WINDOW
            self.before = rate * part + self.before * (1 - part)

    def _calm(self, rate: float, seconds: float) -> float:
        """Simulate `seconds` without throttling. Return those that remain when throttling begins, or all of them if it
        does not begin.
        """
        if rate <= self.limit:
            return seconds
        first = _WINDOW * max(0.0, self.limit - self.before) / (rate - min(self.before, self.limit))
        if seconds <= first:
            return seconds
        # The window counts a burst for a while. On average, half of the burst has left the window when the spell ends.
        self.active, self.late, self.seconds = True, first * (rate - self.limit) / 2, 0.0
        return seconds - first

    def _throttled(self, rate: float, seconds: float) -> float:
        """Simulate `seconds` with throttling. Return those that remain when all delayed work is done."""
        drains = self.limit - rate
        took = min(seconds, self.late / drains) if drains > 0 else seconds
        self.late = max(0.0, self.late - drains * took)
        self.seconds += took
        self.total += took
        self.longest = max(self.longest, self.seconds)
        if took < seconds:
            self.active, self.before = False, self.limit
        return seconds - took


def throttled_time(pieces: Iterable[tuple[float, float]], limit: float) -> ThrottledTime:
    """Return how long a client waits under `limit` (per second). `pieces` has pairs in order of time: the rate per
    second that the client needs, and the seconds for which it needs this rate.

    The total is close to the total wait that `simulate.flow` calculates for small requests at these rates, if no piece
    is shorter than a quota window. Delayed work is done later, as fast as the limit allows.

    >>> round(throttled_time([(25e6, 60), (0, 600)], 10e6).seconds)  # `flow` waits 142 s
    143
    """
    spell = _SteadyClient(limit=limit)
    for rate, seconds in pieces:
        spell.pass_(rate, seconds)
    return ThrottledTime(seconds=spell.total, longest=spell.longest, unfinished=spell.active and spell.late > 0)
