"""Simulates the rest of the watched moves until their last copy ends, to predict the time left of each destination."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Final, TypeAlias

from kquota.pace.fair_rates import needed_seconds
from kquota.reassign.wave import MoveLimits, MoveLoad
from kquota.terms import BrokerId
from kquota.watch.copies import CopyReading
from kquota.watch.history import WatchHistory
from kquota.watch.link_pace import capacities, write_rates
from kquota.watch.links import LinkEnd, WatchedLink, fair, link_ends

_MOST_WORK: Final = 10_000
"""The simulation stops when its work exceeds this number. Each step adds the number of flows that are running then, and
each examination of a waiting partition adds 1.
"""
_AHEAD: Final = 400
"""The number of waiting partitions of a move among which the simulation looks for the next ones to start."""

Lane: TypeAlias = tuple[int, BrokerId]
"""The number of a move, and a destination."""


def seconds_left(history: WatchHistory) -> Mapping[Lane, float]:
    """Return the seconds until the last copy of each lane ends. A lane is missing if this time is unknown, or if its
    copies make no progress.

    The waiting partitions start like those of `move run`: in the order of the plan, as soon as the limits of the run
    permit. The running copies of all watched moves share the `capacities` of their leaders and destinations as in
    `links.fair`, so a copy becomes faster when another copy ends. Producers write to a copy until it ends, also while
    the copy waits.

    If there are too many copies, the simulation stops early, and the rest is estimated from the missing bytes of each
    broker.
    """
    capacity = capacities(history)
    if not capacity:
        return {}
    writes = write_rates(history)
    known = {
        link: float(state.left)
        for link, state in history.links.items()
        if state.left is not None and link.leader is not None and LinkEnd.receiving(link.destination) in capacity
    }
    unknown = {_lane(link) for link in history.links.keys() - known.keys()}
    flows: list[_Flow] = []
    queues: dict[int, _Queue] = {}
    for number, move in enumerate(history.moves):
        those = [copy for copy in history.copies if copy.move == number and not copy.done] if move.limits else []
        if all(copy.submitted for copy in those):
            flows += _running(history, number, known, writes)
        else:
            queues[number] = _Queue(move.limits, those, known, writes)
    simulation = _Simulation(capacity, known, flows, queues)
    unfinished = Counter[Lane]()
    for link, state in history.links.items():
        unfinished[_lane(link)] += state.copies - state.done
    return {lane: end for lane, end in simulation.ends(unfinished).items() if lane not in unknown}


def _lane(link: WatchedLink) -> Lane:
    return link.move, link.destination


@dataclass(slots=True, kw_only=True, eq=False)
class _Flow:
    """Copies of one link that run at the same time. `left` are the missing bytes of all these copies, and `written` is
    the total write rate to them, in bytes per second.

    `partition` is None for copies that no other copy waits for.
    """

    link: WatchedLink
    copies: int
    left: float
    written: float
    partition: _Partition | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class _Partition:
    """A partition and some of its copies: those with known bytes and a known pace that have not ended.

    `size` is the number of bytes that count against the limit on the bytes in flight, or infinity if it is unknown.
    """

    destinations: tuple[BrokerId, ...]
    size: float
    flows: list[_Flow]


def _running(
    history: WatchHistory, number: int, known: Mapping[WatchedLink, float], writes: Mapping[WatchedLink, float]
) -> Iterator[_Flow]:
    """Yield the unfinished copies of a move that has no waiting partitions: one flow for each link in `known`."""
    for link, state in history.links.items():
        copies = state.copies - state.done
        if link.move == number and link in known and copies:
            yield _Flow(link=link, copies=copies, left=known[link], written=writes.get(link, 0.0) * copies)


class _Queue:
    """The unfinished partitions of a move in waves: they start in the order of the plan within the limits."""

    def __init__(
        self,
        limits: MoveLimits,
        copies: Sequence[CopyReading],
        known: Mapping[WatchedLink, float],
        writes: Mapping[WatchedLink, float],
    ) -> None:
        self._load = MoveLoad(limits=limits)
        self._known = known
        self._writes = writes
        self._submitted = [copy for copy in copies if copy.submitted]
        self._later = _by_partition(copy for copy in copies if not copy.submitted)
        self._next: deque[_Partition] = deque()
        self.examined = 0
        """The number of times that `started` has examined a waiting partition."""

    def running(self) -> list[_Flow]:
        """Return the copies of the submitted partitions, and count these partitions against the limits."""
        return [flow for those in _by_partition(self._submitted) for flow in self._started(self._partition(those), 0.0)]

    def started(self, now: float) -> list[_Flow]:
        """Start the waiting partitions that the limits permit, and return their copies. `now` is the simulated time in
        seconds.
        """
        self._next += [self._partition(those) for those in islice(self._later, _AHEAD - len(self._next))]
        flows: list[_Flow] = []
        blocked: deque[_Partition] = deque()
        while self._next and not self._load.full:
            partition = self._next.popleft()
            self.examined += 1
            if self._load.holds(partition.destinations, partition.size):
                flows += self._started(partition, now)
            else:
                blocked.append(partition)
        self._next.extendleft(reversed(blocked))
        return flows

    def ended(self, partition: _Partition) -> None:
        self._load.leave(partition.destinations, partition.size)

    def _started(self, partition: _Partition, now: float) -> list[_Flow]:
        self._load.take(partition.destinations, partition.size)
        for flow in partition.flows:
            flow.left += flow.written * now
        return list(partition.flows)

    def _partition(self, copies: list[CopyReading]) -> _Partition:
        sizes = [math.inf if copy.left is None or copy.copied is None else copy.left + copy.copied for copy in copies]
        partition = _Partition(destinations=tuple(copy.destination for copy in copies), size=sum(sizes), flows=[])
        for copy in copies:
            link = WatchedLink(copy.move, copy.leader, copy.destination)
            if copy.left is not None and link in self._known:
                written = self._writes.get(link, 0.0)
                flow = _Flow(link=link, copies=1, left=copy.left, written=written, partition=partition)
                partition.flows.append(flow)
        return partition


def _by_partition(copies: Iterable[CopyReading]) -> Iterator[list[CopyReading]]:
    return (list(those) for _, those in groupby(copies, attrgetter("partition")))


class _Simulation:
    def __init__(
        self,
        capacity: Mapping[LinkEnd, float],
        left: Mapping[WatchedLink, float],
        flows: Iterable[_Flow],
        queues: Mapping[int, _Queue],
    ) -> None:
        self._capacity = capacity
        self._left = dict(left)
        self._queues = queues
        self._flows = [*flows, *(flow for queue in queues.values() for flow in (*queue.running(), *queue.started(0.0)))]
        self._routes = {link: link_ends(link) for link in left}
        self._now = 0.0
        self._moved = 0.0

    def ends(self, unfinished: Counter[Lane]) -> dict[Lane, float]:
        """Return the seconds until each lane ends. A lane that makes no progress is missing.

        `unfinished` has the number of copies of each lane that are not done.
        """
        ends = {lane: 0.0 for lane, copies in unfinished.items() if not copies}
        remaining = unfinished.copy()
        work = 0
        while self._flows and work + sum(queue.examined for queue in self._queues.values()) <= _MOST_WORK:
            work += len(self._flows)
            ended = self._step()
            if not ended:
                return ends
            for flow in ended:
                lane = _lane(flow.link)
                remaining[lane] -= flow.copies
                if not remaining[lane]:
                    ends[lane] = self._now
        late = self._rest() if self._flows else {}
        return {**ends, **{lane: late[lane] for lane, copies in remaining.items() if copies and lane in late}}

    def _step(self) -> list[_Flow]:
        """Proceed to the next end of a copy. Return the copies that end then, or none if no copy makes progress."""
        paces = self._paces()
        times = [needed_seconds(flow.left, pace) for flow, pace in zip(self._flows, paces, strict=True)]
        step = min(times)
        if math.isinf(step):
            return []
        self._now += step
        ended, going = [], []
        for flow, pace, time in zip(self._flows, paces, times, strict=True):
            self._moved += pace * step
            self._left[flow.link] -= pace * step
            if time <= step:
                ended.append(flow)
            else:
                flow.left -= pace * step
                going.append(flow)
        self._flows = going + self._started_after(ended)
        return ended

    def _paces(self) -> list[float]:
        """Return the rate at which the missing bytes of each running flow decrease."""
        sharing = Counter(flow.link for flow in self._flows)
        routes = {link: self._routes[link] for link in sharing}
        free = dict(self._capacity)
        for flow in self._flows:
            for end in routes[flow.link]:
                if end in free:
                    free[end] -= flow.written
        found = fair(routes, free)
        return [found[flow.link] / sharing[flow.link] for flow in self._flows]

    def _started_after(self, ended: list[_Flow]) -> list[_Flow]:
        freed = set()
        for flow in ended:
            if (partition := flow.partition) is not None:
                partition.flows.remove(flow)
                if not partition.flows:
                    self._queues[flow.link.move].ended(partition)
                    freed.add(flow.link.move)
        return [flow for move in sorted(freed) for flow in self._queues[move].started(self._now)]

    def _rest(self) -> dict[Lane, float]:
        """Return an estimate of the ends that the simulation did not reach, for each lane that makes progress."""
        stuck = {_lane(flow.link) for flow, pace in zip(self._flows, self._paces(), strict=True) if not pace}
        through: defaultdict[LinkEnd, float] = defaultdict(float)
        for link, left in self._left.items():
            for end in link_ends(link):
                rate = self._capacity.get(end, math.inf)
                through[end] += max(0.0, left) / rate if rate else math.inf
        in_waves = sum(max(0.0, left) for link, left in self._left.items() if link.move in self._queues)
        later = in_waves * self._now / self._moved if self._moved else 0.0
        found: dict[Lane, float] = {}
        for link in self._left:
            busiest = max(through[end] for end in link_ends(link))
            seconds = self._now + max(busiest, later if link.move in self._queues else 0.0)
            found[_lane(link)] = max(found.get(_lane(link), 0.0), seconds)
        return {lane: seconds for lane, seconds in found.items() if lane not in stuck and seconds < math.inf}
