"""How much to ask of a token bucket that nobody shows us, and when: neither overrun nor left idle.

What is known of it comes from its rejections. After the throttle time its tokens are 0 again; and what was let through
from one such moment to the next tells the rate that is ours, less than the quota's where other clients share it. These
cannot see each other: each goes behind the others by as much of the bucket as was its own of late.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.simulate.rate import SAMPLE_MS, SAMPLES

FIRST: Final = 1
"""How many topics a first request holds while nothing is known."""
MOST_ITEMS: Final = 100
MOST_MUTATIONS: Final = 2_000
"""Of one request: a KRaft controller makes at most 10,000 records of it."""
PERIOD: Final = 1.0
"""Seconds: topics that cost less than this go together, the others one by one."""
BURST_SECONDS: Final = SAMPLES * SAMPLE_MS / 1_000
"""A bucket holds so many seconds of its rate: controller.quota.window.num x size, as Kafka ships them."""
_HAIR: Final = 0.002
"""Seconds: a throttle time is rounded, and one that was rounded down ends too early."""
_DARE: Final = 1.1
"""How much faster to go after each request that was let through whole, when nobody tells the rate."""
_TRUST: Final = 8
"""So many requests in a row must have been; twice as many each time that going faster told the same rate again."""
_SAME: Final = 0.9
_ALONE: Final = 0.8
"""Whoever has this part of the quota's rate has all of it: the rest is what clocks and answers are late."""
_MEMORY: Final = 60.0
"""Seconds for which a client counts what it had of a bucket: who came late need not make up for an hour."""
_BEHIND: Final = 40.0
"""How many topics' time a client that had all of a shared bucket goes behind one that had nothing."""
_MOST_BEHIND: Final = BURST_SECONDS / 2
"""Seconds: a bucket that fills meanwhile loses what comes in."""
_UNTOLD: Final = 0.05
"""Seconds that clients who were rejected together go apart while nobody knows the rate."""
_TELLING: Final = 4
"""So many times two topics are sent where one would do, so that the second tells the price of the first."""


def fitting(mutations: Sequence[int], tokens: float = math.inf) -> int:
    """How many of them one request may hold, and a bucket with so many tokens lets through: at least one."""
    count, total = 0, 0
    for each in mutations[:MOST_ITEMS]:
        if count and (total + each > MOST_MUTATIONS or total > tokens):
            break
        count, total = count + 1, total + each
    return count


@dataclass(slots=True)
class Pace:
    """`quota` is the rate in mutations per second, None where it cannot be read; times in seconds.

    A full bucket holds `burst_seconds` of its rate.
    """

    quota: float | None
    burst_seconds: float = BURST_SECONDS
    draw: random.Random = field(default_factory=random.Random)
    _rate: float | None = field(init=False)
    _told: float = 0.0
    _price: float = 0.0
    _prices: int = 0
    _whole: int = 0
    _trust: int = _TRUST
    _zero: float | None = None
    _spent: int = 0
    _allowed: int = FIRST
    _shared: bool = False
    _ours: float = 0.0
    _span: float = 0.0

    def __post_init__(self) -> None:
        self._rate = self.quota

    def wait(self, now: float, mutations: Sequence[int]) -> float:
        """How long to wait before sending on, given what is left to send."""
        if self._zero is None:
            return 0.0
        ready = self._zero + _HAIR
        if self._shared:
            # Whoever was rejected with us waits for the same moment.
            ready += self._behind(now, mutations[0]) * (0.5 + self.draw.random())
        elif self._rate is not None:
            ready += self._spent / self._rate
            if mutations[0] < self._rate * PERIOD and len(mutations) > 1:
                ready += PERIOD
        return max(0.0, ready - now)

    def debt(self, now: float) -> float:
        """The seconds until the bucket has paid what we know of: what a broker would answer, without our manners."""
        if self._zero is None:
            return 0.0
        spent = self._spent / self._rate if self._rate is not None else 0.0
        return max(0.0, self._zero + spent - now)

    def batch(self, now: float, mutations: Sequence[int]) -> int:
        """How many of them to send at `now`: as many as the bucket lets through, and at least one."""
        if self._shared:
            telling = self.quota is None and self._prices < _TELLING
            return fitting(mutations[: 1 + self._whole + telling])
        tokens = self._tokens(now)
        return fitting(mutations[: self._allowed], math.inf if tokens is None else tokens)

    def answered(self, now: float, admitted: int, throttle: float | None) -> None:
        """`admitted` mutations were let through; `throttle` seconds to wait, None when nothing was rejected."""
        self._spent += admitted
        if throttle is None:
            self._allowed = min(MOST_ITEMS, self._allowed + FIRST)
            self._whole += 1
            if self.quota is None and self._rate is not None and self._whole > self._trust:
                # What was learned in a crowd is too little once the crowd is gone; a rejection puts it right.
                self._rate *= _DARE
            if self._zero is None and self.quota is not None:
                # A full bucket was assumed, and so far it was one.
                self._zero = now - self.burst_seconds
        else:
            self._rejected(now, admitted, throttle)

    def _rejected(self, now: float, admitted: int, throttle: float) -> None:
        zero = now + throttle
        if admitted:
            # Of one request, so nobody else's is in it; less than it was where the bucket had something, or we waited.
            self._price, self._prices = max(self._price, throttle / admitted), self._prices + 1
        if self._zero is None:
            # One who has the bucket alone, and knows its rate, is not rejected.
            self._shared = self.quota is not None and self._spent > 0
        elif zero - self._zero > _HAIR:
            self._learn(zero - self._zero)
        self._rate = self.quota or self._told or None
        # Two tell the rate where nothing does: the second is rejected with the price of the first.
        self._allowed = MOST_ITEMS if self._rate is not None else 2
        self._zero, self._spent, self._whole = zero, 0, 0

    def _learn(self, seconds: float) -> None:
        """The bucket was at 0 tokens, is so again after `seconds`, and we spent what we did."""
        told = self._spent / seconds
        if self._told and self._whole > self._trust and told > _SAME * self._told:
            self._trust *= 2
        # Others may have had their part of that time, so it is the quota's rate or less.
        self._told = max(self._told, told)
        kept = math.exp(-seconds / _MEMORY)
        recent = _MEMORY * (1 - kept)
        self._ours, self._span = self._ours * kept + told * recent, self._span * kept + recent
        rate = self._whole_rate
        if rate is None or told < _ALONE * rate:
            self._shared = True
        elif self._span >= _MEMORY / 2 and self._ours >= _ALONE * rate * self._span:
            self._shared = False

    @property
    def _whole_rate(self) -> float | None:
        """The quota's own rate, as well as we know it; None where nothing told it yet."""
        if self.quota is not None or not self._price:
            return self.quota
        most = 1 / self._price
        return self._told if most / 3 <= self._told <= most else most

    def _behind(self, now: float, mutations: int) -> float:
        """Seconds that we go behind the others, so that who had least goes first; on an average nobody loses by it."""
        assert self._zero is not None
        if (rate := self._whole_rate) is None:
            # One who had nothing is not to be late for ever beside one who knows when to ask.
            return _UNTOLD if self._ours + self._spent else 0.0
        share = (self._ours + self._spent) / (rate * (self._span + max(PERIOD, now - self._zero)))
        wanted = _BEHIND * min(1.0, share) * mutations / rate
        return wanted / (1 + wanted / _MOST_BEHIND)

    def _tokens(self, now: float) -> float | None:
        if self._rate is None:
            return None
        if self._zero is None:
            return self._rate * self.burst_seconds
        return min(self._rate * self.burst_seconds, (now - self._zero) * self._rate - self._spent)
