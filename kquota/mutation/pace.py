"""How much to ask of a token bucket that nobody shows us, and when: neither overrun nor left idle.

What is known of it comes from its rejections. After the throttle time its tokens are 0 again; and what was let through
from one such moment to the next tells the rate that is ours, less than the quota's where other clients share it. These
cannot see each other. Where the bucket's rate is known, and what comes back says soon enough who was first, they take
turns: each asks that much later in a topic's time as more of the bucket was its own of late. Elsewhere each goes
behind the others by a time that is longer than many topics', and drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.terms import SAMPLE_MS, SAMPLES

_FIRST: Final = 1
"""How many topics a first request holds while nothing is known."""
MOST_ITEMS: Final = 100
_MOST_MUTATIONS: Final = 2_000
"""Of one request: a KRaft controller makes at most 10,000 records of it."""
_PERIOD: Final = 1.0
"""Seconds: topics that cost less than this go together, the others one by one."""
BURST_SECONDS: Final = SAMPLES * SAMPLE_MS / 1_000
"""A bucket holds so many seconds of its rate: controller.quota.window.num x size, as Kafka ships them."""
HAIR: Final = 0.002
"""Seconds: a throttle time is rounded, and one that was rounded down ends too early."""
_DARE: Final = 1.1
"""How much faster to go after each request that was let through whole, when nobody tells the rate."""
_TRUST: Final = 8
"""So many requests in a row must have been; twice as many each time that going faster told the same rate again."""
_SAME: Final = 0.9
_ALONE: Final = 0.8
"""Whoever has this part of the quota's rate has all of it: the rest is what clocks and answers are late."""
_PACED: Final = 0.95
"""The same for one who knows that rate and kept to it: whoever is rejected then has company."""
_MEMORY: Final = 60.0
"""Seconds for which a client counts what it had of a bucket: who came late need not make up for an hour."""
_BEHIND: Final = 40.0
"""How many topics' time a client that had all of a shared bucket goes behind one that had nothing."""
_MOST_BEHIND: Final = 0.5
"""... and how much of the time in which a bucket fills at most: a full one loses what comes in."""
_FAR: Final = 2
"""Turns are taken where a topic's time is so many times that of a request: later answers are in no order."""
_MANY: Final = 6
"""... and where going behind is at most so many topics' time: beyond, a client has so much that it asks for many."""
_LATEST: Final = 0.9
"""The latest moment within a topic's time, for a client that had all of the bucket."""
_LEAST: Final = 0.0025
"""Of a bucket: who had less lets no more others go first than this one."""
_RECENT: Final = 0.2
"""Of a request's time, how much the last one counts."""
_UNTOLD: Final = 0.05
"""Seconds that clients who were rejected together go apart while nobody knows the rate."""
_TELLING: Final = 4
"""So many times two topics are sent where one would do, so that the second tells the price of the first."""


def fitting(mutations: Sequence[int], tokens: float = math.inf) -> int:
    """How many of them one request may hold, and a bucket with so many tokens lets through: at least one."""
    count, total = 0, 0
    for each in mutations[:MOST_ITEMS]:
        if count and (total + each > _MOST_MUTATIONS or total > tokens):
            break
        count, total = count + 1, total + each
    return count


@dataclass(slots=True)
class MutationPace:
    """`quota` is the rate in mutations per second, None where it cannot be read; times in seconds.

    A full bucket holds `burst_seconds` of its rate.
    """

    quota: float | None
    burst_seconds: float = BURST_SECONDS
    draw: random.Random = field(default_factory=random.Random)
    # When the bucket has 0 tokens by the last rejection, what was let through since, and in how many whole requests.
    _zero: float | None = field(init=False, default=None)
    _spent: int = field(init=False, default=0)
    _unrejected: int = field(init=False, default=0)
    # The rate that we go by alone: the quota's, or the most that we had from one such moment to the next.
    _rate: float | None = field(init=False)
    _told: float = field(init=False, default=0.0)
    # The seconds that a mutation costs the bucket: the most that a request of ours was told, and by how many.
    _price: float = field(init=False, default=0.0)
    _prices: int = field(init=False, default=0)
    # How many topics a request may hold, and how many whole ones make us dare more, when nobody tells the rate.
    _allowed: int = field(init=False, default=_FIRST)
    _trust: int = field(init=False, default=_TRUST)
    # Whether others have a part of the bucket; the mutations that were ours of late, and in how many seconds.
    _shared: bool = field(init=False, default=False)
    _ours: float = field(init=False, default=0.0)
    _span: float = field(init=False, default=0.0)
    # Whether this request goes in turn, when it was sent, and how long one takes of late.
    _in_turn: bool = field(init=False, default=False)
    _asked: float = field(init=False, default=0.0)
    _request: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._rate = self.quota

    def wait(self, now: float, mutations: Sequence[int]) -> float:
        """How long to wait before sending on, given what is left to send."""
        if self._zero is None:
            return 0.0
        ready = self._zero + HAIR
        if self._shared:
            # Whoever was rejected with us waits for the same moment.
            behind = self._behind(now, mutations[0])
            self._in_turn = self._may_take_turns(behind, mutations[0])
            ready += self._turn(now, mutations[0]) if self._in_turn else behind * (0.5 + self.draw.random())
        elif self._rate is not None:
            ready += self._spent / self._rate
            if mutations[0] < self._rate * _PERIOD and len(mutations) > 1:
                ready += _PERIOD
        return max(0.0, ready - now)

    def debt(self, now: float) -> float:
        """The seconds until the bucket has paid what we know of: what a broker would answer, without our manners."""
        if self._zero is None:
            return 0.0
        spent = self._spent / self._rate if self._rate is not None else 0.0
        return max(0.0, self._zero + spent - now)

    def batch(self, now: float, mutations: Sequence[int]) -> int:
        """How many of them to send at `now`: as many as the bucket lets through, and at least one."""
        self._asked = now
        if self._shared and not self._in_turn:
            # The second tells the price of the first.
            telling = 1 if self.quota is None and self._prices < _TELLING else 0
            return fitting(mutations[: 1 + self._unrejected + telling])
        tokens = self._tokens(now)
        most = 1 + self._unrejected if self._shared else self._allowed
        return fitting(mutations[:most], math.inf if tokens is None else tokens)

    def answered(self, now: float, admitted: int, throttle: float | None) -> None:
        """`admitted` mutations were let through; `throttle` seconds to wait, None when nothing was rejected."""
        self._spent += admitted
        took = now - self._asked
        self._request += _RECENT * (took - self._request) if self._request else took
        if throttle is None:
            self._allowed = min(MOST_ITEMS, self._allowed + 1)
            self._unrejected += 1
            if self.quota is None and self._rate is not None and self._unrejected > self._trust:
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
            # One who knows the rate, and has a full bucket alone, is not rejected. Where nobody else is, and the bucket
            # was only not full, taking turns costs less than a topic's time.
            self._shared = self.quota is not None
        elif zero - self._zero > HAIR:
            self._learn(zero - self._zero)
        self._rate = self.quota or self._told or None
        # Two tell the rate where nothing does: the second is rejected with the price of the first.
        self._allowed = MOST_ITEMS if self._rate is not None else 2
        self._zero, self._spent, self._unrejected = zero, 0, 0

    def _learn(self, seconds: float) -> None:
        """The bucket was at 0 tokens, is so again after `seconds`, and we spent what we did."""
        told = self._spent / seconds
        if self._told and self._unrejected > self._trust and told > _SAME * self._told:
            self._trust *= 2
        # Others may have had their part of that time, so it is the quota's rate or less.
        self._told = max(self._told, told)
        kept = math.exp(-seconds / _MEMORY)
        recent = _MEMORY * (1 - kept)
        self._ours, self._span = self._ours * kept + told * recent, self._span * kept + recent
        rate = self._whole_rate
        if rate is None or told < (_ALONE if self._shared or self.quota is None else _PACED) * rate:
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
        wanted = _BEHIND * self._share(now, rate) * mutations / rate
        return wanted / (1 + wanted / (_MOST_BEHIND * self.burst_seconds))

    def _may_take_turns(self, behind: float, mutations: int) -> bool:
        """Whether who asks first can be told apart; see the module's docstring."""
        if self.quota is None:
            return False
        time = mutations / self.quota
        return time >= _FAR * self._request and behind < _MANY * time

    def _turn(self, now: float, mutations: int) -> float:
        """Seconds from the moment of 0 tokens: after what we spent since, at our place within a topic's time.

        While others wait too, the next such moment comes a topic's time later, so one who lets some topics of others go
        first keeps its place. The more clients there are, the more it lets go, so fewer ask in vain. Of twenty that
        have a twentieth each, all are at 0.2 of a topic's time and let 0 to 4 go; one that has a quarter of that is at
        0.1 and lets 0 to 8 go: it asks half as often, and is the first whenever it does.

        Where a topic takes longer than the bucket takes to fill, nobody lets one go: a full bucket loses what comes in.
        """
        assert self.quota is not None
        share, time = self._share(now, self.quota), mutations / self.quota
        let_go = 0
        if share and time <= self.burst_seconds:
            let_go = math.floor(self.draw.random() / math.sqrt(max(_LEAST, share)))
        place = _LATEST * math.sqrt(share) * (0.95 + 0.1 * self.draw.random())
        return self._spent / self.quota + let_go * time + place * min(time, self.burst_seconds)

    def _share(self, now: float, rate: float) -> float:
        """The part of the bucket that was ours of late, at most 1."""
        assert self._zero is not None
        return min(1.0, (self._ours + self._spent) / (rate * (self._span + max(_PERIOD, now - self._zero))))

    def _tokens(self, now: float) -> float | None:
        if self._rate is None:
            return None
        if self._zero is None:
            return self._rate * self.burst_seconds
        return min(self._rate * self.burst_seconds, (now - self._zero) * self._rate - self._spent)
