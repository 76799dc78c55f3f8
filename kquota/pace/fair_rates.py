"""Streams that share ports, each as fast as the fullest of its ports lets it: when one ends, the others get its share.

Max-min fair, as Kafka's fetchers are: each takes its turn at a throttle until it is spent. Pure, and in no unit.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Port: TypeAlias = Hashable

MOST_STREAMS: Final = 400
"""Beyond it no stream is followed, which takes their number squared: among so many the busiest port hardly ever waits
for another. With 200 streams of any size it does for less than 1 % of the time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What goes through two ports at once."""

    amount: float
    ports: tuple[Port, Port]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnds:
    """When each stream ends, in the order given. `exact` False: when its busiest port does, a lower bound."""

    ends: tuple[float, ...]
    exact: bool

    @property
    def end(self) -> float:
        """When the last stream ends; 0 when there is none."""
        return max(self.ends, default=0.0)


def run(streams: Sequence[Stream], capacity: Mapping[Port, float], at_once: Mapping[Port, float]) -> StreamEnds:
    """Let all streams flow until each has moved its amount: first what each port lets through at once, then the rest.

    Every port's capacity, an amount a second, is above 0.
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
    """When the streams end that do; `left` keeps the others with what is left of them."""
    ended, now = {}, 0.0
    while left and now < until:
        flowing = rates({n: streams[n].ports for n in left}, capacity)
        times = {n: _time(amount, flowing[n]) for n, amount in left.items()}
        step = min(*times.values(), until - now)
        for n, time in times.items():
            if time <= step:
                ended[n] = now + time
                del left[n]
            else:
                left[n] *= 1 - step / time
        now += step
    return ended


def _time(amount: float, rate: float) -> float:
    """Seconds; also of nothing, which is there, and at no rate: a port may let nothing through at once."""
    if not amount:
        return 0.0
    return amount / rate if rate else math.inf


def busiest(
    streams: Sequence[Stream], capacity: Mapping[Port, float], at_once: Mapping[Port, float]
) -> dict[Port, float]:
    """How long each port would take for what goes through it, were it the only narrow one: a lower bound."""
    through: defaultdict[Port, list[float]] = defaultdict(list)
    for stream in streams:
        for port in stream.ports:
            through[port].append(stream.amount)
    return {port: max(0.0, math.fsum(amounts) - at_once[port]) / capacity[port] for port, amounts in through.items()}


def rates(routes: Mapping[int, tuple[Port, Port]], capacity: Mapping[Port, float]) -> dict[int, float]:
    """Each stream's max-min fair rate: no stream can have more without one that has no more than it having less.

    The port that has least for each of its streams is filled first; what its streams take is gone at their other ports.
    """
    waiting: dict[Port, dict[int, None]] = {}
    for n, ports in routes.items():
        for port in ports:
            waiting.setdefault(port, {})[n] = None
    left = {port: capacity[port] for port in waiting}
    order = {port: number for number, port in enumerate(waiting)}
    heap = [(left[port] / len(those), order[port], port) for port, those in waiting.items()]
    heapq.heapify(heap)
    found: dict[int, float] = {}
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
