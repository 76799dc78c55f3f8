"""Chooses the time and the size of each request for mutations. The controller counts mutations with a token bucket
(KIP-599), and kquota does not know its level.

Only a rejection reveals the level: after its throttle time, the bucket has 0 tokens. The mutations that are accepted
between two moments at 0 tokens give this client's rate. The rate is below the quota if other clients share the bucket.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.terms import SAMPLE_MS, SAMPLES

_FIRST_TOPICS: Final = 1
"""The number of topics in the first request. It is low, because the level of the bucket is unknown."""
MOST_ITEMS: Final = 100
"""The maximum number of topics in one request."""
_MOST_MUTATIONS: Final = 2_000
"""The maximum number of mutations in one request for several topics, because a KRaft controller writes at most 10,000
records for a request.
"""
_PERIOD: Final = 1.0
"""The time of a topic is the number of its mutations divided by the rate. If the time of the next topic is less than
this many seconds, kquota waits this many seconds longer, so that one request can contain several topics. There is no
longer wait for the last topic, or if other clients share the bucket.
"""
BURST_SECONDS: Final = SAMPLES * SAMPLE_MS / 1_000
"""The size of a full bucket, in seconds of its rate, with Kafka's defaults of `controller.quota.window.num` and
`controller.quota.window.size.seconds`.
"""
HAIR: Final = 0.002
"""kquota adds this many seconds to a throttle time, because a rounded-down time ends too early."""
_RATE_RISE: Final = 1.1
"""The factor by which a learned rate rises after each fully accepted request, once more than `_trust` requests in a row
were fully accepted.
"""
_TRUST: Final = 8
"""The initial value of `_trust`, the number of fully accepted requests in a row before a learned rate rises. The number
doubles each time that a raised rate is rejected and the measured rate has not fallen.
"""
_SLOWEST: Final = 1e-9
"""The lowest quota with which kquota calculates, in mutations per second: one mutation in 30 years. A lower quota
counts as this value, so that every calculated time is finite.
"""
_NOT_FALLEN: Final = 0.9
"""A measured rate above this fraction of the learned rate has not fallen."""
_ALONE: Final = 0.8
"""A client that gets at least this fraction of the quota is considered alone. The rest can be lost to rounded waits and
to response times.
"""
_ALONE_AT_QUOTA: Final = 0.95
"""Like `_ALONE`, for a client that knows the quota and is not known to share the bucket. This client keeps to the rate,
so a rejection points to other clients.
"""
_MEMORY: Final = 60.0
"""A client counts its past share of the bucket over about this many seconds, because older use must not affect the
current order of clients.
"""
_BEHIND: Final = 40.0
"""A client that had the whole bucket waits for the time of this many topics (see `_PERIOD`), so that other clients go
first. `_MOST_BEHIND` limits this wait.
"""
_MOST_BEHIND: Final = 0.5
"""The maximum of the mean wait from `_BEHIND`, as a fraction of the time in which a bucket fills. Longer waits would
lose tokens, because a full bucket gets no new tokens.
"""
_LEAST_TURN: Final = 2
"""Clients take turns only if the time of a topic (see `_PERIOD`) is at least this many times the duration of a request.
Otherwise, the answers do not show which client was first.
"""
_MOST_TURNS: Final = 6
"""A client takes turns only if its `_BEHIND` wait is less than the time of this many topics. A client with a longer
wait has a large share and requests many topics at once, so it waits for a random time instead.
"""
_LAST_PLACE: Final = 0.9
"""The place of a client that had the whole bucket, as a fraction of the time of one topic. Other clients have earlier
places. Each client waits for its place before it sends.
"""
_LEAST_SHARE: Final = 0.0025
"""A share of the bucket below this value counts as this value. This limits how many topics a client lets go first."""
_LAST_WEIGHT: Final = 0.2
"""The weight of the last request in the mean duration of a request."""
_WAIT_AT_UNKNOWN_RATE: Final = 0.05
"""The mean wait in seconds of a client that has already used tokens, while the rate is unknown. It separates clients
that were rejected at the same time.
"""
_PRICES_NEEDED: Final = 4
"""The price is the throttle time of one mutation. Until this many prices are known, a client that shares an unknown
quota adds a topic to each request. The rejection of the last topic then reveals the price of the topics before it.
"""


def fitting(mutations: Sequence[int], tokens: float = math.inf) -> int:
    """Return how many of the topics with these numbers of `mutations` fit into one request and into a bucket with this
    many tokens.

    The last topic may exceed the tokens, because a broker accepts a topic until the bucket is below 0 (KIP-599). The
    result is at least 1, unless `mutations` is empty.
    """
    count, total = 0, 0
    for each in mutations[:MOST_ITEMS]:
        if count and (total + each > _MOST_MUTATIONS or total > tokens):
            break
        count, total = count + 1, total + each
    return count


@dataclass(slots=True)
class MutationPace:
    """The pace of mutations. Times are in seconds.

    Clients that share a bucket cannot see each other. They take turns under three conditions: they know the rate of the
    bucket, answers are fast enough to show their order, and their shares are not too large (`_MOST_TURNS`). One turn is
    the time that the rate needs for one topic. A client that recently had more of the bucket sends later in the turn.

    Otherwise, each client waits for a random time. The time is longer for a client that recently had more of the
    bucket.
    """

    quota: float | None
    """The quota in mutations per second. If it is None, only rejections determine the pace."""
    burst_seconds: float = BURST_SECONDS
    """The size of a full bucket, in seconds of its rate."""
    draw: random.Random = field(default_factory=random.Random)
    """The source of the random waits."""
    # The bucket has 0 tokens at `_zero`: at the end of the last throttle time, or `burst_seconds` before the first
    # answer if nothing was rejected and the quota is known. Otherwise `_zero` is None. Since the last rejection,
    # `_spent` mutations were accepted, and `_unrejected` requests were accepted as a whole.
    _zero: float | None = field(init=False, default=None)
    _spent: int = field(init=False, default=0)
    _unrejected: int = field(init=False, default=0)
    # `_rate` is the rate without other clients: the quota, or a rate that begins with `_learned`. `_learned` is the
    # highest rate seen between two moments at 0 tokens.
    _rate: float | None = field(init=False)
    _learned: float = field(init=False, default=0.0)
    # `_price` is the highest price of a mutation: its throttle time in seconds. `_prices` is the number of prices seen.
    _price: float = field(init=False, default=0.0)
    _prices: int = field(init=False, default=0)
    # `_allowed` is the maximum number of topics in a request. `_trust` is the number of accepted requests after which a
    # learned rate rises.
    _allowed: int = field(init=False, default=_FIRST_TOPICS)
    _trust: int = field(init=False, default=_TRUST)
    # `_shared` is True if other clients share the bucket. `_ours` counts this client's recent mutations, in `_span`
    # seconds.
    _shared: bool = field(init=False, default=False)
    _ours: float = field(init=False, default=0.0)
    _span: float = field(init=False, default=0.0)
    # `_in_turn` is True if the next request waits for a turn. `_asked` is the time when the last request was sent, and
    # `_request` is the mean duration of a request in seconds.
    _in_turn: bool = field(init=False, default=False)
    _asked: float = field(init=False, default=0.0)
    _request: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        if self.quota is not None:
            self.quota = max(_SLOWEST, self.quota)
        self._rate = self.quota

    def wait(self, now: float, mutations: Sequence[int]) -> float:
        """Return the seconds to wait before the next request. `mutations` has the number of mutations of each
        remaining topic.
        """
        if self._zero is None:
            return 0.0
        ready = self._zero + HAIR
        if self._shared:
            # Clients that were rejected at the same time would continue at the same moment, so each adds its own delay.
            behind = self._behind(now, mutations[0])
            self._in_turn = self._may_take_turns(behind, mutations[0])
            ready += self._turn(now, mutations[0]) if self._in_turn else behind * (0.5 + self.draw.random())
        elif self._rate is not None:
            ready += self._spent / self._rate
            if mutations[0] < self._rate * _PERIOD and len(mutations) > 1:
                ready += _PERIOD
        return max(0.0, ready - now)

    def debt(self, now: float) -> float:
        """Return the seconds until the bucket has 0 tokens again: the throttle time that a broker would report. The
        result is 0 while nothing is known about the bucket.
        """
        if self._zero is None:
            return 0.0
        spent = self._spent / self._rate if self._rate is not None else 0.0
        return max(0.0, self._zero + spent - now)

    def batch(self, now: float, mutations: Sequence[int]) -> int:
        """Return how many topics to send at `now`: at least one, and more after requests that were fully accepted.

        Records `now` as the time of the request.
        """
        self._asked = now
        if self._shared and not self._in_turn:
            # Add a second topic, because its rejection reveals the price of the first.
            revealing = 1 if self.quota is None and self._prices < _PRICES_NEEDED else 0
            return fitting(mutations[: 1 + self._unrejected + revealing])
        tokens = self._tokens(now)
        most = 1 + self._unrejected if self._shared else self._allowed
        return fitting(mutations[:most], math.inf if tokens is None else tokens)

    def answered(self, now: float, admitted: int, throttle: float | None) -> None:
        """Record an answer: `admitted` mutations were accepted. `throttle` is the wait in seconds, or None without a
        rejection.
        """
        self._spent += admitted
        took = now - self._asked
        self._request += _LAST_WEIGHT * (took - self._request) if self._request else took
        if throttle is None:
            self._allowed = min(MOST_ITEMS, self._allowed + 1)
            self._unrejected += 1
            if self.quota is None and self._rate is not None and self._unrejected > self._trust:
                # Raise the rate, because it is too low if other clients have stopped. A rejection corrects a rate that
                # is too high.
                self._rate *= _RATE_RISE
            if self._zero is None and self.quota is not None:
                # Without a rejection, the assumption of a full bucket still holds.
                self._zero = now - self.burst_seconds
        else:
            self._rejected(now, admitted, throttle)

    def _rejected(self, now: float, admitted: int, throttle: float) -> None:
        zero = now + throttle
        if admitted:
            # The price comes from one request, so it includes no mutations of other clients. The highest price counts,
            # because a price is too low if the bucket still had tokens before the request.
            self._price, self._prices = max(self._price, throttle / admitted), self._prices + 1
        if self._zero is None:
            # A client that knows the rate and has a full bucket to itself is not rejected, so other clients may share
            # the bucket. If this client is alone and the bucket was not full, taking turns costs little time.
            self._shared = self.quota is not None
        elif zero - self._zero > HAIR:
            self._learn(zero - self._zero)
        self._rate = self.quota or self._learned or None
        # If the rate is unknown, send two topics, because the rejection of the second reveals the price of the first.
        self._allowed = MOST_ITEMS if self._rate is not None else 2
        self._zero, self._spent, self._unrejected = zero, 0, 0

    def _learn(self, seconds: float) -> None:
        """Update the learned rate and `_shared` from the mutations between two moments at 0 tokens, `seconds` apart."""
        rate_seen = self._spent / seconds
        if self._learned and self._unrejected > self._trust and rate_seen > _NOT_FALLEN * self._learned:
            self._trust *= 2
        # Other clients may have used some tokens, so the quota's rate is at least `rate_seen`.
        self._learned = max(self._learned, rate_seen)
        kept = math.exp(-seconds / _MEMORY)
        recent = _MEMORY * (1 - kept)
        self._ours, self._span = self._ours * kept + rate_seen * recent, self._span * kept + recent
        rate = self._whole_rate
        if rate is None or rate_seen < (_ALONE if self._shared or self.quota is None else _ALONE_AT_QUOTA) * rate:
            self._shared = True
        elif self._span >= _MEMORY / 2 and self._ours >= _ALONE * rate * self._span:
            self._shared = False

    @property
    def _whole_rate(self) -> float | None:
        """The best estimate of the quota's rate. None if neither the quota nor a price is known."""
        if self.quota is not None or not self._price:
            return self.quota
        most = 1 / self._price
        return self._learned if most / 3 <= self._learned <= most else most

    def _behind(self, now: float, mutations: int) -> float:
        """Return the seconds that this client waits so that clients with a smaller share of the bucket go first."""
        assert self._zero is not None
        if (rate := self._whole_rate) is None:
            # A client that has used no tokens yet does not wait. Otherwise, clients that know when to send would always
            # be first.
            return _WAIT_AT_UNKNOWN_RATE if self._ours + self._spent else 0.0
        wanted = _BEHIND * self._share(now, rate) * mutations / rate
        return wanted / (1 + wanted / (_MOST_BEHIND * self.burst_seconds))

    def _may_take_turns(self, behind: float, mutations: int) -> bool:
        if self.quota is None:
            return False
        time = mutations / self.quota
        return time >= _LEAST_TURN * self._request and behind < _MOST_TURNS * time

    def _turn(self, now: float, mutations: int) -> float:
        """Return when to send, in seconds after `_zero`: the next moment of 0 tokens, plus the wait for a turn.

        The client waits for its place within the time of one topic. A client with a smaller share has an earlier place,
        but may first let more topics of other clients go, so that fewer requests are rejected. Each such topic delays
        the next moment of 0 tokens by the time of one topic, so the client keeps its place. If a topic takes longer
        than the bucket takes to fill, no client lets others go first, because a full bucket loses tokens.
        """
        assert self.quota is not None
        share, time = self._share(now, self.quota), mutations / self.quota
        let_go = 0
        if share and time <= self.burst_seconds:
            let_go = math.floor(self.draw.random() / math.sqrt(max(_LEAST_SHARE, share)))
        place = _LAST_PLACE * math.sqrt(share) * (0.95 + 0.1 * self.draw.random())
        return self._spent / self.quota + let_go * time + place * min(time, self.burst_seconds)

    def _share(self, now: float, rate: float) -> float:
        assert self._zero is not None
        return min(1.0, (self._ours + self._spent) / (rate * (self._span + max(_PERIOD, now - self._zero))))

    def _tokens(self, now: float) -> float | None:
        if self._rate is None:
            return None
        if self._zero is None:
            return self._rate * self.burst_seconds
        return min(self._rate * self.burst_seconds, (now - self._zero) * self._rate - self._spent)
