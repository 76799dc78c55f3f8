"""How much to ask of a token bucket that nobody shows us, and when: neither overrun nor left idle.

What is known of it comes from its rejections. After the throttle time its tokens are 0 again; and what was let through
from one such moment to the next tells the rate that is ours, less than the quota's where other clients share it.
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
_CROWD: Final = 1.2
"""How much more to dare after each request that was let through whole, until the quota's rate is ours again."""


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
    """`quota` is the rate in mutations per second, None where it cannot be read; times in seconds."""

    quota: float | None
    draw: random.Random = field(default_factory=random.Random)
    _rate: float | None = field(init=False)
    _told: float | None = None
    _whole: int = 0
    _trust: int = _TRUST
    _zero: float | None = None
    _spent: int = 0
    _allowed: int = FIRST
    _lost: int = 0
    _crowd: float = 1.0

    def __post_init__(self) -> None:
        self._rate = self.quota

    def wait(self, now: float, mutations: Sequence[int]) -> float:
        """How long to wait before sending on, given what is left to send."""
        if self._zero is None:
            return 0.0
        ready = self._zero + _HAIR
        if self._rate is not None:
            ready += self._spent * self._crowd / self._rate
            if self._alone and mutations[0] < self._rate * PERIOD and len(mutations) > 1:
                ready += PERIOD
            if not self._alone:
                # Whoever was rejected with us waits for the same moment; who has lost more often goes first.
                ready += self.draw.random() * min(PERIOD, mutations[0] / self._rate) / (1 + self._lost)
        return max(0.0, ready - now)

    def debt(self, now: float) -> float:
        """The seconds until the bucket has paid what we know of: what a broker would answer, without our manners."""
        if self._zero is None:
            return 0.0
        spent = self._spent / self._rate if self._rate is not None else 0.0
        return max(0.0, self._zero + spent - now)

    def batch(self, now: float, mutations: Sequence[int]) -> int:
        """How many of them to send at `now`: as many as the bucket lets through, and at least one."""
        tokens = self._tokens(now) if self._alone else 0.0
        return fitting(mutations[: self._allowed], math.inf if tokens is None else tokens)

    def answered(self, now: float, admitted: int, throttle: float | None) -> None:
        """`admitted` mutations were let through; `throttle` seconds to wait, None when nothing was rejected."""
        self._spent += admitted
        if admitted:
            self._crowd = (self._crowd + 1 + self._lost) / 2
        if throttle is None:
            self._lost = 0
            self._allowed = min(MOST_ITEMS, self._allowed + FIRST)
            self._whole += 1
            if self.quota is None and self._rate is not None and self._whole > self._trust:
                # What was learned in a crowd is too little once the crowd is gone; a rejection puts it right.
                self._rate *= _DARE
            if self._zero is None and self.quota is not None:
                # A full bucket was assumed, and so far it was one.
                self._zero = now - BURST_SECONDS
        else:
            self._rejected(now, admitted, throttle)

    def _rejected(self, now: float, admitted: int, throttle: float) -> None:
        self._lost = 0 if admitted else self._lost + 1
        zero = now + throttle
        if self.quota is None and self._zero is not None and self._spent:
            # Others may have had their part of that time, so it is the quota's rate or less.
            told = self._spent / max(_HAIR, zero - self._zero)
            if self._told is not None and self._whole > self._trust and told > _SAME * self._told:
                self._trust *= 2
            self._told = max(self._told or 0.0, told)
        self._rate = self.quota or self._told
        # Two tell the rate where nothing does: the second is rejected with the price of the first.
        self._allowed = MOST_ITEMS if self._rate is not None else 2
        self._zero, self._spent, self._whole = zero, 0, 0

    @property
    def _alone(self) -> bool:
        return self._crowd < _CROWD and not self._lost

    def _tokens(self, now: float) -> float | None:
        if self._rate is None:
            return None
        if self._zero is None:
            return self._rate * BURST_SECONDS
        return min(self._rate * BURST_SECONDS, (now - self._zero) * self._rate / self._crowd - self._spent)
