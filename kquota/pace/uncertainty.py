"""How sure an expected time is: the traffic that was seen, calm and busy, and what the model itself may miss by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.pace.share import Pace, Side, pace
from kquota.pace.work import Link, total

MODEL: Final = 0.1
"""The share within which nine of ten real moves are met: with 20 on quiet brokers the error was 3 % (one sigma), on a
machine with eight times as much to do as cores up to 11 %.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """From where to where the time will be, nine times of ten, in seconds; `high` None: in busy times it never ends.

    `writes` is whether the traffic's own ups and downs are in it, or the model's alone.
    """

    low: float
    high: float | None
    writes: bool


def band(expected: Pace, calm: Mapping[int, float], busy: Mapping[int, float]) -> Band | None:
    """The 90 % band of a pace; None where no time is expected.

    `calm` and `busy` say of each leader by how much less and more than usual is written to what it leads: its 5th and
    95th percentile over its mean. All leaders at once, so it is rather too wide than too narrow.
    """
    if expected.seconds is None:
        return None
    # Traffic with rare spikes has a mean above its 95th percentile: whatever is told, the band holds what is expected.
    quick = _seconds(expected, {leader: min(1.0, factor) for leader, factor in calm.items()})
    slow = _seconds(expected, {leader: max(1.0, factor) for leader, factor in busy.items()})
    return Band(
        low=max(expected.least_seconds, (quick or expected.seconds) * (1 - MODEL)),
        high=None if slow is None else slow * (1 + MODEL),
        writes=bool(calm.keys() & expected.work.keep_up.keys()),
    )


def together(bands: Iterable[Band | None]) -> Band | None:
    """The band of moves that come one after the other, rather too wide than too narrow; None where one has none."""
    found = list(bands)
    known = [band for band in found if band is not None]
    if not known or len(known) < len(found):
        return None
    return Band(
        low=sum(band.low for band in known),
        high=total(band.high for band in known),
        writes=any(band.writes for band in known),
    )


def stuck_at_peak(expected: Pace, peak: Mapping[int, float]) -> tuple[int, ...]:
    """The leaders that could each, by its own peak alone, keep the move from ever ending, lowest first.

    `peak` says by how much more than usual is written then: its 99th percentile over its mean.
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


def _seconds(expected: Pace, factors: Mapping[int, float]) -> float | None:
    if not factors:
        return expected.seconds
    return pace(expected.work.scaled(factors), expected.throttle, expected.enforcement).seconds
