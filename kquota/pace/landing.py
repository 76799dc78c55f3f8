"""The throttle of a running move: the rate that meets a deadline, rates by time of day, and rates under which all
brokers finish together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Final

from kquota.errors import Invalid
from kquota.measure import ByteRate, byte_rate
from kquota.terms import BrokerId

AIM: Final = 0.95
"""The share of the time until the deadline that the copies should take. The rest is for the end of the move."""
WORTH: Final = 0.05
"""kquota writes a new throttle only if it differs from the old throttle by more than this share."""
EVEN_SHARE: Final = 20
"""If brokers finish together, the lowest rate is at least the highest rate divided by this number."""
_SOON: Final = 1.0
"""The calculation assumes that at least this many seconds are left until the deadline."""
_MOST: Final = 2**62
_SPAN: Final = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_ELSE: Final = "else"
_FORM: Final = "Use the form 22:00-06:00=200MB/s,else=40MB/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateBounds:
    """The lowest and the highest throttle in bytes per second. None means no bound."""

    low: ByteRate | None = None
    high: ByteRate | None = None

    def clamp(self, value: ByteRate) -> ByteRate:
        """Return the nearest rate within the bounds."""
        raised = value if self.low is None else max(value, self.low)
        return raised if self.high is None else min(raised, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """The missing bytes of all copies (`left`), the rate at which `left` decreases (`net`), and the write rate
    (`written`).

    Rates are in bytes per second.
    """

    left: float
    net: float
    written: float


def landing_rate(now: ByteRate, copying: Copying, until: float, bounds: RateBounds) -> ByteRate:
    """Return the throttle under which a move should end within `until` seconds, with `AIM` of this time for the copies.

    Under the throttle `now`, the copies receive `net` + `written`. kquota assumes that this rate is proportional to the
    throttle, so the caller repeats the calculation as the move proceeds. After the deadline, the result is the upper
    bound, or `now` without an upper bound. If no bytes arrive, the result is `now`. The result is always within the
    bounds.
    """
    if until <= 0:
        return bounds.clamp(now if bounds.high is None else bounds.high)
    wanted = copying.left / (max(until, _SOON) * AIM) + copying.written
    received = copying.net + copying.written
    if received <= 0:
        return bounds.clamp(now)
    return bounds.clamp(ByteRate(max(1, math.ceil(min(_MOST, now * wanted / received)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """The copies to one broker: the missing bytes, and the bytes per second that producers add to them."""

    left: float
    written: float


def even_rates(rate: ByteRate, copies: Mapping[BrokerId, Incoming]) -> dict[BrokerId, ByteRate]:
    """Return the follower rates, in bytes per second, under which the copies to all brokers end at the same time.

    The broker whose copies take longest gets `rate`, and so does a broker without missing bytes. No rate is below
    `rate` / `EVEN_SHARE` (rounded down), so some copies may end earlier. Raises ValueError with the broker id if the
    copies to a broker never end under `rate`.
    """
    seconds = 0.0
    for broker, copy in copies.items():
        if copy.left and copy.written >= rate:
            raise ValueError(broker)
        seconds = max(seconds, copy.left / (rate - copy.written) if copy.left else 0.0)
    least = max(1, rate // EVEN_SHARE)
    return {
        broker: ByteRate(min(rate, max(least, math.ceil(copy.left / seconds + copy.written)))) if copy.left else rate
        for broker, copy in copies.items()
    }


def differs(new: ByteRate, old: ByteRate) -> bool:
    """Return True if the new throttle differs enough from the old one to be written (`WORTH`)."""
    return abs(new - old) > WORTH * old


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpan:
    """A throttle in bytes per second from `start` to `end`, excluding `end`.

    If `end` is before `start`, the span ends on the next day.
    """

    start: time
    end: time
    rate: ByteRate

    def contains(self, at: time) -> bool:
        """Return True if this throttle applies at a time of day."""
        if self.start <= self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPlan:
    """Throttles by time of day, in bytes per second. `otherwise` applies outside of all spans."""

    spans: tuple[DaySpan, ...]
    otherwise: ByteRate

    def at(self, now: time) -> ByteRate:
        """Return the throttle of the first span that contains the time of day `now`, or `otherwise`."""
        return next((span.rate for span in self.spans if span.contains(now)), self.otherwise)


def day_plan(text: str, what: str) -> DayPlan:
    """Parse throttles like `22:00-06:00=200MB/s,else=40MB/s`.

    Raises Invalid for any other text. The message begins with `what`, the name of the option.
    """
    spans: list[DaySpan] = []
    otherwise: ByteRate | None = None
    for part in text.split(","):
        when, equals, value = part.strip().partition("=")
        if not equals:
            raise Invalid(f"{what} {part.strip()!r}: the rate is missing. {_FORM}")
        if when == _ELSE and otherwise is None:
            otherwise = byte_rate(value, f"{what} {when}")
        elif when == _ELSE:
            raise Invalid(f"{what}: `else` is given twice. {_FORM}")
        else:
            spans.append(_span(when, byte_rate(value, f"{what} {when}"), what))
    if otherwise is None or not spans:
        raise Invalid(f"{what} {text!r}: a time span and `else` are needed. {_FORM}")
    return DayPlan(spans=tuple(spans), otherwise=otherwise)


def _span(text: str, value: ByteRate, what: str) -> DaySpan:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise Invalid(f"{what} {text!r}: not a valid time span. {_FORM}")
    hours, minutes, end_hours, end_minutes = map(int, match.groups())
    try:
        start, end = time(hours, minutes), time(end_hours % 24 if end_minutes == 0 else end_hours, end_minutes)
    except ValueError as error:
        raise Invalid(f"{what} {text!r}: not a valid time of day ({error}). {_FORM}") from error
    if end_hours > 24:
        raise Invalid(f"{what} {text!r}: not a valid time of day (hour must be in 0..24). {_FORM}")
    if start == end:
        raise Invalid(f"{what} {text!r}: a span must start and end at different times of day. {_FORM}")
    return DaySpan(start=start, end=end, rate=value)
