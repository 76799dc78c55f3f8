"""The uncertainty of an expected time: the variation of write rates, and the error of the model or of past moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kquota.measure import total
from kquota.pace.enforcement import Enforcement
from kquota.pace.past_moves import ErrorBand
from kquota.pace.share import Pace, Side, pace
from kquota.pace.work import Link

MODEL: Final = 0.1
"""The largest relative error of the model in nine of ten real moves.

In 20 moves on quiet brokers the error was 3% (one sigma). On a machine with a load of eight times its number of cores,
it was up to 11%.
"""
OF_THE_MODEL: Final = ErrorBand(low=1 - MODEL, high=1 + MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The range that contains the actual time of nine in ten moves, in seconds."""

    low: float
    high: float | None
    """None if the move would never end with write rates at their 95th percentile."""
    writes: bool
    """True if the band includes the variation of write rates."""
    past_moves: int = 0
    """The number of past moves of the cluster whose errors the band includes. If it is 0, the band includes the error
    of the model instead.
    """
    unused_quota: bool = False
    """True if the band includes a faster start. This is possible if a broker already has a throttle, because its window
    can contain unused quota.
    """


def band(
    expected: Pace, calm: Mapping[int, float], busy: Mapping[int, float], errors: ErrorBand = OF_THE_MODEL
) -> Band | None:
    """Return the 90% band of a pace, or None without an expected time.

    `calm` and `busy` are factors for each leader: the 5th and the 95th percentile of its write rate, divided by the
    mean. The rate of a leader without a factor does not vary. The factors apply to all leaders at the same time, so the
    band is too wide rather than too narrow.
    """
    if expected.seconds is None:
        return None
    enforcement = expected.enforcement
    first = replace(enforcement, at_once=enforcement.window) if enforcement.throttled else enforcement
    # Calm factors are at most 1 and busy factors at least 1, because the band must contain the expected time. With rare
    # peaks, a mean write rate can be above its 95th percentile.
    quick = _seconds(expected, {leader: min(1.0, factor) for leader, factor in calm.items()}, first)
    slow = _seconds(expected, {leader: max(1.0, factor) for leader, factor in busy.items()}, enforcement)
    # The last fetch may just exceed the quotas of its destination and of its leader, and then waits for two pauses.
    pause = enforcement.fetch_backoff + enforcement.fetch_wait if expected.shares else 0.0
    return Band(
        low=max(0.0, (expected.seconds if quick is None else quick) * errors.low - pause),
        high=None if slow is None else slow * errors.high + pause,
        writes=bool(calm.keys() & expected.work.keep_up.keys()),
        past_moves=errors.moves,
        unused_quota=enforcement.throttled,
    )


def together(bands: Iterable[Band | None]) -> Band | None:
    """Return the band of moves that run one after the other. The band is too wide rather than too narrow.

    `past_moves` is the lowest number of all bands. The result is None without moves, or if a move has no band.
    """
    found = list(bands)
    known = [band for band in found if band is not None]
    if not known or len(known) < len(found):
        return None
    return Band(
        low=sum(band.low for band in known),
        high=total(band.high for band in known),
        writes=any(band.writes for band in known),
        past_moves=min(band.past_moves for band in known),
        unused_quota=any(band.unused_quota for band in known),
    )


def stuck_at_peak(expected: Pace, peak: Mapping[int, float]) -> tuple[int, ...]:
    """Return the leaders whose peak write rate alone could prevent the move from ending, lowest id first.

    `peak` has the factor of each leader: the 99th percentile of its write rate, divided by the mean. A leader without a
    factor is left out. An unknown rate counts as 0.
    """
    needed = {(share.broker, share.side): share.needed or 0.0 for share in expected.shares}
    links: defaultdict[int, list[Link]] = defaultdict(list)
    for link in expected.work.links:
        links[link.leader].append(link)

    def stuck(leader: int, factor: float) -> bool:
        into = (
            needed[link.destination, Side.DESTINATION] + (factor - 1) * (link.writes or 0.0) for link in links[leader]
        )
        return max(factor * needed[leader, Side.LEADER], *into) >= expected.throttle

    return tuple(leader for leader, factor in sorted(peak.items()) if leader in links and stuck(leader, factor))


def _seconds(expected: Pace, factors: Mapping[int, float], enforcement: Enforcement) -> float | None:
    if not factors and enforcement == expected.enforcement:
        return expected.seconds
    return pace(expected.work.scaled(factors), expected.throttle, enforcement).seconds
