"""Streams that share ports, for example copies that share the throttles of brokers. Each stream runs as fast as its
busiest port allows. When a stream ends, the other streams get its share of the ports.

The shares are max-min fair, like those of Kafka's fetchers, which take turns until a throttle is spent. The code is
pure. Amounts can have any unit, and rates are per second.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

Port: TypeAlias = Hashable
_Key = TypeVar("_Key", bound=Hashable)

MOST_STREAMS: Final = 400
"""kquota simulates at most this many streams, because the cost grows with the square of their number.

With more streams, a lower bound is close enough, because the busiest port rarely waits for another port. Even with only
200 streams, it waits less than 1% of the time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An amount that passes through two ports at the same time."""

    amount: float
    ports: tuple[Port, Port]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnds:
    """The end of each stream in seconds, in the given order. If `exact` is False, all ends are lower bounds."""

    ends: tuple[float, ...]
    exact: bool

    @property
    def end(self) -> float:
        """The end of the last stream, or 0 without streams."""
        return max(self.ends, default=0.0)


def run(streams: Sequence[Stream], capacity: Mapping[Port, float], at_once: Mapping[Port, float]) -> StreamEnds:
    """Simulate all streams, and return the time at which each has moved its amount.

    Each port first passes its amount in `at_once`, which takes no time, and then its amount per second in `capacity`,
    which must be above 0. More than `MOST_STREAMS` streams are not simulated: their ends are lower bounds.
    """
    if len(streams) > MOST_STREAMS:
        bound = busiest(streams, capacity, at_once)
        return StreamEnds(ends=tuple(max(bound[port] for port in stream.ports) for stream in streams), exact=False)
    left = {n: stream.amount for n, stream in enumerate(streams)}
    if any(at_once.values()):
        _flow(left, streams, at_once, until=1.0)
    ended = _flow(left, streams, capacity)
    return StreamEnds(ends=tuple(ended.get(n, 0.0) for n in range(len(streams))), exact=True)


def _flow(
    left: dict[int, float], streams: Sequence[Stream], capacity: Mapping[Port, float], until: float = math.inf
) -> dict[int, float]:
    """Return the end of each stream that ends by `until`. `left` keeps the remaining amounts of all other streams."""
    ended, now = {}, 0.0
    while left and now < until:
        flowing = rates({n: streams[n].ports for n in left}, capacity)
        times = {n: needed_seconds(amount, flowing[n]) for n, amount in left.items()}
        step = min(*times.values(), until - now)
        for n, time in times.items():
            if time <= step:
                ended[n] = now + time
                del left[n]
            else:
                left[n] *= 1 - step / time
        now += step
    return ended


def needed_seconds(amount: float, rate: float) -> float:
    """Return the seconds that an amount needs at a rate per second. They are 0 for the amount 0. Otherwise, they are
    infinite at the rate 0.
    """
    if not amount:
        return 0.0
    return amount / rate if rate else math.inf


def busiest(
    streams: Sequence[Stream], capacity: Mapping[Port, float], at_once: Mapping[Port, float]
) -> dict[Port, float]:
    """Return the seconds that each port needs for its streams if no other port slows them down: a lower bound."""
    through: defaultdict[Port, list[float]] = defaultdict(list)
    for stream in streams:
        for port in stream.ports:
            through[port].append(stream.amount)
    return {port: max(0.0, math.fsum(amounts) - at_once[port]) / capacity[port] for port, amounts in through.items()}


def rates(routes: Mapping[_Key, tuple[Port, Port]], capacity: Mapping[Port, float]) -> dict[_Key, float]:
    """Return the max-min fair rate of each stream: a stream can get more only if a slower or equal stream gets less."""
    waiting: dict[Port, dict[_Key, None]] = {}
    for n, ports in routes.items():
        for port in ports:
            waiting.setdefault(port, {})[n] = None
    left = {port: capacity[port] for port in waiting}
    order = {port: number for number, port in enumerate(waiting)}
    heap = [(left[port] / len(those), order[port], port) for port, those in waiting.items()]
    heapq.heapify(heap)
    found: dict[_Key, float] = {}
    while heap:
        share, number, port = heapq.heappop(heap)
        those = waiting[port]
        if not those:
            continue
        if share < (now := left[port] / len(those)):
            heapq.heappush(heap, (now, number, port))
            continue
        for n in list(those):
            found[n] = share
            for each in routes[n]:
                del waiting[each][n]
                left[each] -= share
    return found
