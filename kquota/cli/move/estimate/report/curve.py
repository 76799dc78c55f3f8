"""The curve of a report: the expected time under other throttles, and the part of the curve in the plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.measure import ByteRate, human_duration, human_rate
from kquota.pace.kip73 import Window
from kquota.pace.share import Pace
from kquota.pace.waves import Waves

_POINTS: Final = 60
_FEWEST: Final = 12
_VISITS: Final = 1_500_000
"""The maximum cost of a curve with more than `_FEWEST` points, so that its calculation takes only a few seconds. For
each point, kquota simulates each wave. The cost of a wave is the square of its number of links from leader to
destination, and the cost of a point is the sum over all waves.
"""
_FAR: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleCurve:
    """The expected time under other throttles, and the limits in the plot. Throttles are in bytes per second, and times
    in seconds.
    """

    throttle: ByteRate
    """The throttle of the estimate."""
    seconds: float | None
    """The time under `throttle`, or None if the move never finishes."""
    never: float | None
    """The largest throttle that is too small. None if a write rate is unknown. The times then assume no writes."""
    points: tuple[tuple[float, float], ...]
    """Ascending throttles, each with its time."""
    deadline: float | None
    """The deadline, or None if it is not given or outside the plot."""
    bounds: tuple[tuple[str, float], ...]
    """The upper bounds of the throttle in the plot: the label and the throttle of each."""
    beyond: tuple[str, ...]
    """The labels of the limits outside the plot."""
    widest: float
    """The largest throttle in the plot."""
    longest: float
    """The longest time in the plot."""


def curve(pace: Pace | Waves, given: float | None, window: Window) -> ThrottleCurve:
    """Return the curve of a move that copies something. `given` is the deadline in seconds, or None."""
    never, throttle = pace.least_throttle, pace.throttle
    # If the move never finishes under this throttle, the plot shows higher throttles, under which the move finishes.
    typical = throttle if pace.feasible is not False else ByteRate(int(2 * (never or throttle)))
    bounds = tuple((f"{bound.why}, {human_rate(bound.rate)}", bound.rate) for bound in window.below if bound.rate)
    near = tuple(bound for bound in bounds if 0 < bound[1] <= _FAR * typical)
    widest = 1.1 * max(2 * typical, throttle, *(rate for _, rate in near))
    seconds = _seconds(pace)
    usual = _seconds(pace.under(typical)) or 1.0
    deadline = given if given is not None and given <= _FAR * usual else None
    return ThrottleCurve(
        throttle=throttle,
        seconds=seconds,
        never=never,
        points=tuple(_points(pace, never or 0.0, widest)),
        deadline=deadline,
        bounds=near,
        beyond=tuple(_beyond(given, deadline, [b for b in bounds if b not in near])),
        widest=widest,
        longest=1.15 * max(3 * usual, deadline or 0.0),
    )


def _points(pace: Pace | Waves, never: float, widest: float) -> Iterator[tuple[float, float]]:
    """Yield each throttle whose time is known, with this time in seconds. The throttles are close together just above
    `never`, because the curve is steep there.
    """
    count = max(_FEWEST, min(_POINTS, _VISITS // sum(len(work.links) ** 2 for work in pace.works)))
    room = widest - never
    first = room / 200
    for n in range(count):
        throttle = ByteRate(int(never + first * (room / first) ** (n / (count - 1))) + 1)
        seconds = _seconds(pace.under(throttle))
        if seconds is not None:
            yield throttle, seconds


def _seconds(pace: Pace | Waves) -> float | None:
    return pace.seconds_without_writes if pace.feasible is None else pace.seconds


def _beyond(given: float | None, deadline: float | None, bounds: Sequence[tuple[str, float]]) -> Iterator[str]:
    if given is not None and deadline is None:
        yield f"the deadline, {human_duration(given)}"
    yield from (label for label, _ in bounds)
