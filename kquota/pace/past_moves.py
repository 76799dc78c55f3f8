"""Past moves of a cluster: their expected and actual times, and the error band calculated from them.

kquota sees a move only when a command reads the cluster. It therefore keeps two bounds of an actual time: the last
reading in which the move was running, and the first reading in which it had ended.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kquota.measure import ByteRate

ENOUGH: Final = 5
"""The minimum number of past moves for the error band. With fewer moves, kquota uses the error of the model."""
MOST_USED: Final = 50
"""The maximum number of past moves that an estimate uses. Only the newest count, because clusters change."""
MOST_KEPT: Final = 200
_CERTAIN: Final = 0.1
"""The maximum difference between the two bounds of a `certain` move, as a fraction of the upper bound."""
_LEAST_SPREAD: Final = 0.02
"""The minimum standard deviation that kquota uses. Even after a few equal errors, the next error can differ."""
_Z: Final = 1.6449
_OF_NORMAL: Final = 1.4826
"""The ratio of the standard deviation of normal errors to their median absolute deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEstimate:
    """A recorded estimate: a plan takes `expected` seconds under `throttle` bytes per second.

    `plan` is the hash of the plan, and `at` is the time of the estimate.
    """

    plan: str
    throttle: ByteRate
    expected: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMove:
    """A run that has submitted its moves. `expected` is in seconds, `throttle` in bytes per second.

    `seen_moving` is the last time at which a command saw the run moving. At first, it is the time of the start.
    """

    run: str
    started: datetime
    throttle: ByteRate
    expected: float
    seen_moving: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMove:
    """A run that completed its plan. `expected` is in seconds, `throttle` in bytes per second. The actual time is
    between `at_least` and `at_most` seconds.
    """

    run: str
    started: datetime
    throttle: ByteRate
    expected: float
    at_least: float
    at_most: float

    @property
    def certain(self) -> bool:
        """True if the bounds of the actual time are close enough for an error band."""
        return self.at_least > 0 and self.at_most - self.at_least <= _CERTAIN * self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMoves:
    """The moves with an expected time that this host has started on one cluster. `under_way` is sorted by start, and
    `ended` by end.
    """

    under_way: tuple[ExpectedMove, ...] = ()
    ended: tuple[PastMove, ...] = ()

    @property
    def certain(self) -> tuple[PastMove, ...]:
        """The newest ended moves that are certain, at most `MOST_USED`."""
        return tuple(move for move in self.ended if move.certain)[-MOST_USED:]

    def with_start(self, move: ExpectedMove) -> PastMoves:
        """Return the moves with `move` added to `under_way`. `move` replaces an earlier entry of the same run.

        `under_way` keeps only the newest `MOST_KEPT` moves.
        """
        others = tuple(other for other in self.under_way if other.run != move.run)
        return replace(self, under_way=(*others, move)[-MOST_KEPT:])

    def without(self, run: str) -> PastMoves:
        """Return the moves without this run in `under_way`, for example because its expected time no longer applies."""
        return replace(self, under_way=tuple(move for move in self.under_way if move.run != run))

    def seen_moving(self, run: str, at: datetime) -> PastMoves:
        """Return the moves with `at` as the run's `seen_moving`, unless its `seen_moving` is already later."""
        found = (replace(m, seen_moving=max(m.seen_moving, at)) if m.run == run else m for m in self.under_way)
        return replace(self, under_way=tuple(found))

    def seen_ended(self, run: str, at: datetime) -> PastMoves:
        """Return the moves after the run has gone from `under_way` to `ended`. At the time `at`, a command saw that the
        run had completed its plan.

        The run is dropped if `at` is not after its start or is before its `seen_moving`. `ended` keeps only the newest
        `MOST_KEPT` moves.
        """
        left = self.without(run)
        found = [move for move in self.under_way if move.run == run and move.started < at >= move.seen_moving]
        return replace(left, ended=(*self.ended, *(_past(move, at) for move in found))[-MOST_KEPT:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBand:
    """The range that contains actual time divided by expected time for nine of ten moves. The band always contains 1.

    `moves` is the number of past moves from which the band is calculated. If it is 0, the band is the error of the
    model.
    """

    low: float
    high: float
    moves: int = 0


def learned(past: Sequence[PastMove]) -> ErrorBand | None:
    """Return the error band for the next move, from past moves that are `certain`. None for fewer than `ENOUGH` moves.

    The band is the prediction interval of the logarithm of actual / expected. The median replaces the mean, and the
    median absolute deviation replaces the standard deviation, so that a few disturbed moves do not matter.
    """
    if len(past) < ENOUGH:
        return None
    low = _bound([math.log(move.at_least / move.expected) for move in past], -1)
    high = _bound([math.log(move.at_most / move.expected) for move in past], 1)
    return ErrorBand(low=min(1.0, math.exp(low)), high=max(1.0, math.exp(high)), moves=len(past))


def _bound(errors: Sequence[float], side: int) -> float:
    count, middle = len(errors), statistics.median(errors)
    deviation = statistics.median(abs(error - middle) for error in errors)
    # On average, the deviation of a few values is too small, so it is enlarged: by a half for five values.
    spread = max(_LEAST_SPREAD, _OF_NORMAL * deviation * count / (count - 1.7))
    return middle + side * _quantile(count - 1) * spread * math.sqrt(1 + 1 / count)


def _quantile(freedom: int) -> float:
    """Return the 95th percentile of Student's t distribution (Cornish-Fisher), accurate to 0.02 for 4 or more degrees
    of freedom.
    """
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def _past(move: ExpectedMove, at: datetime) -> PastMove:
    return PastMove(
        run=move.run,
        started=move.started,
        throttle=move.throttle,
        expected=move.expected,
        at_least=(move.seen_moving - move.started).total_seconds(),
        at_most=(at - move.started).total_seconds(),
    )
