"""Successive readings of running moves: the bytes that arrived and that were written, by link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kquota.reassign.moves import Replicas
from kquota.reassign.running_copies import offsets_behind
from kquota.terms import SAMPLE_MS, SAMPLES, BrokerId, ReplicaId, TopicPartition
from kquota.watch.copies import CopyReading, PlannedCopies, copies
from kquota.watch.links import (
    Flowing,
    LinkEnd,
    LinkState,
    WatchedLink,
    flowing,
    links_of,
    running,
    throttles,
)
from kquota.watch.reading import BrokerRates, ThrottleReading, WatchedMove, WatchReading, out_of_sync

QUOTA_WINDOW: Final = SAMPLES * SAMPLE_MS / 1000
"""The quota window in seconds, with Kafka's defaults.

A throttled copy may receive the bytes of a whole window at once, and then none until the window has passed. A rate over
a shorter time is therefore not reliable.
"""
_MOST_SAMPLES: Final = 240
_ANCHOR_SECONDS: Final = 60.0
_MOST_REPLICAS: Final = 100
"""In practice, no partition has more copies than this, so more copies belong to several partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSample:
    """Totals since the first reading, and the lag of each broker.

    For `busy`, `possible` and `used`, the time between two waves counts as part of the earlier wave.
    """

    at: float
    """The time of the reading, in seconds of a monotonic clock."""
    arrived: Mapping[WatchedLink, float] = field(default_factory=dict)
    """The bytes that arrived on each link."""
    written: Mapping[WatchedLink, float] = field(default_factory=dict)
    """The bytes that producers wrote to the copies of each link."""
    followed: Mapping[BrokerId, float] = field(default_factory=dict)
    """The bytes that in-sync followers of throttled partitions fetched from each leader. The throttle of the leader
    counts these bytes, but does not delay them.
    """
    lag: Mapping[BrokerId, int | None]
    """KIP-73's SumReplicaLag in offsets at the time of the reading, or None if it is unknown."""
    begun: int
    """The number of moves of partitions that were seen to begin so far. The lag grows if another wave begins, or if an
    undo copies partitions back.
    """
    busy: Mapping[BrokerId, float] = field(default_factory=dict)
    """The seconds in which each destination had running copies."""
    possible: Mapping[LinkEnd, float] = field(default_factory=dict)
    """The bytes that the throttles permitted on the links that each end limits (see `Flowing`)."""
    used: Mapping[LinkEnd, float] = field(default_factory=dict)
    """The bytes that arrived on the links that each end limits."""
    unfinished: Mapping[WatchedLink, float] = field(default_factory=dict)
    """For each link, the seconds for which its copies were unfinished, added up over the copies. Only time between
    readings with known missing bytes counts.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAnchor:
    """The last known bytes of every unfinished copy at an earlier reading, for comparison with later readings."""

    at: float
    """The time of the reading, in seconds of a monotonic clock."""
    copies: Mapping[ReplicaId, CopyReading]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchHistory:
    """The readings so far. All times are in seconds of a monotonic clock. The key of a move is its number."""

    moves: tuple[WatchedMove, ...]
    reading: WatchReading
    planned: PlannedCopies
    copies: tuple[CopyReading, ...]
    links: Mapping[WatchedLink, LinkState]
    samples: tuple[WatchSample, ...]
    """The samples, oldest first. They begin again when a throttle rate changes, because the pace then also changes."""
    began: float
    """The time of the first reading."""
    anchors: tuple[WatchAnchor, WatchAnchor]
    """The older anchor and the newer anchor."""
    last: Mapping[ReplicaId, CopyReading]
    """The last known bytes of each copy that is not done."""
    destinations: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    """The new replicas of each partition that was seen to move."""
    arrival: Mapping[int, float] = field(default_factory=dict)
    """The time at which bytes of each move last arrived, or the time of its first reading."""
    first_ends: Mapping[int, float] = field(default_factory=dict)
    """The expected end of each move, or else its end as first predicted."""
    futures: Mapping[ReplicaId, tuple[int, float]] = field(default_factory=dict)
    """The size of each copy between log dirs, and the time at which the copy was first seen with this size."""
    alone: Mapping[int, float] = field(default_factory=dict)
    """The time at which a move was first seen with only one partition left."""
    caught: Mapping[ReplicaId, float] = field(default_factory=dict)
    """The time at which a replica that is not moving was first seen throttled and out of sync."""
    not_begun: Mapping[TopicPartition, float] = field(default_factory=dict)
    """The time of the first reading that showed the move of a partition as not begun by the controller."""
    flowing: Flowing
    """The links of the running copies. Between two waves, the links of the earlier wave."""

    @property
    def now(self) -> WatchSample:
        """The newest sample."""
        return self.samples[-1]


def begin(moves: Sequence[WatchedMove], reading: WatchReading) -> WatchHistory:
    """Return a history with only this reading."""
    known = _new_destinations({}, reading)
    planned = PlannedCopies().again(moves, reading.topics, known)
    found = tuple(copies(planned, reading))
    behind = out_of_sync(reading)
    empty = WatchSample(at=reading.at, lag=_sum_replica_lag(found, behind, reading), begun=len(known))
    last = {copy.replica: copy for copy in found if not copy.done and copy.copied is not None}
    anchor = WatchAnchor(at=reading.at, copies=last)
    links = links_of(found, reading.throttle)
    blank = WatchHistory(
        moves=tuple(moves),
        reading=reading,
        planned=planned,
        copies=found,
        links=links,
        samples=(empty,),
        began=reading.at,
        anchors=(anchor, anchor),
        last=last,
        destinations=known,
        arrival=dict.fromkeys(range(len(moves)), reading.at),
        flowing=flowing(running(found, (), reading.snapshot.alive), throttles(links, reading.throttle), {}),
    )
    return _with_marks(blank, blank, behind)


def after(history: WatchHistory, moves: Sequence[WatchedMove], reading: WatchReading) -> WatchHistory:
    """Return the history with one more reading. New moves must be last in `moves`, because a move keeps its number."""
    fresh = _new_destinations(history.destinations, reading)
    known = {**history.destinations, **fresh} if fresh else history.destinations
    planned = history.planned.again(moves, reading.topics, known)
    found = tuple(copies(planned, reading))
    behind = out_of_sync(reading)
    total = _Totals(history, reading)
    last = total.add(found)
    links = links_of(found, reading.throttle)
    going = running(found, history.flowing.rates, reading.snapshot.alive)
    flow = flowing(going, throttles(links, reading.throttle), total.followed())
    total.add_flowing(history.flowing, flow)
    sample = total.sample(_sum_replica_lag(found, behind, reading), history.now.begun + len(fresh))
    rates = history.reading.throttle.rates
    paced_alike = all(rates.get(broker, now) == now for broker, now in reading.throttle.rates.items())
    samples = (*(history.samples if paced_alike else history.samples[-1:]), sample)
    if len(samples) > _MOST_SAMPLES:
        samples = (*samples[: _MOST_SAMPLES // 2 : 2], *samples[_MOST_SAMPLES // 2 :])
    older, newer = history.anchors
    if reading.at - newer.at >= _ANCHOR_SECONDS:
        older, newer = newer, WatchAnchor(at=reading.at, copies=last)
    grown = replace(
        history,
        moves=tuple(moves),
        reading=reading,
        planned=planned,
        copies=found,
        links=links,
        samples=samples,
        anchors=(older, newer),
        last=last,
        destinations=known,
        arrival=total.arrival,
        first_ends=_comparable_ends(history, moves),
        flowing=flow,
    )
    return _with_marks(grown, history, behind)


def _comparable_ends(history: WatchHistory, moves: Sequence[WatchedMove]) -> Mapping[int, float]:
    """Return `first_ends` without those of runs with new targets. For example, an undo copies other bytes."""
    return {
        number: end
        for number, end in history.first_ends.items()
        if (now := moves[number]) is (old := history.moves[number]) or now.run is None or now.targets == old.targets
    }


def window(history: WatchHistory, seconds: float, *, same_wave: bool = False) -> WatchSample | None:
    """Return the earliest sample that was taken before the newest one, but at most `seconds` before it.

    If readings are farther apart than `seconds`, return the last sample before the newest one. Returns None if the
    newest sample is the only one. With `same_wave`, samples from before the last wave do not count.
    """
    older = [sample for sample in history.samples if sample.at < history.now.at]
    if same_wave:
        older = [sample for sample in older if sample.begun == history.now.begun]
    since = history.now.at - seconds
    return next((sample for sample in older if sample.at >= since), older[-1] if older else None)


@dataclass(slots=True)
class _LinkGrowth:
    """The growth of one link since the last reading: the bytes that arrived, and the bytes that were written to its
    copies. `unfinished` is the number of copies whose missing bytes are known in both readings.
    """

    arrived: float = 0.0
    written: float = 0.0
    unfinished: int = 0


class _Totals:
    """The totals of the samples so far, to which one reading is added."""

    def __init__(self, history: WatchHistory, reading: WatchReading) -> None:
        before = history.now
        self._last = history.last
        self._reading = reading
        self._seconds = reading.at - before.at
        self._came: defaultdict[WatchedLink, float] = defaultdict(float)
        self._busy: defaultdict[BrokerId, float] = defaultdict(float, before.busy)
        self._possible: defaultdict[LinkEnd, float] = defaultdict(float, before.possible)
        self._used: defaultdict[LinkEnd, float] = defaultdict(float, before.used)
        self._followed_before = before.followed
        self._unfinished: defaultdict[WatchedLink, float] = defaultdict(float, before.unfinished)
        self._arrived: defaultdict[WatchedLink, float] = defaultdict(float, before.arrived)
        self._written: defaultdict[WatchedLink, float] = defaultdict(float, before.written)
        self._followed: defaultdict[BrokerId, float] = defaultdict(float, before.followed)
        self.arrival = dict(history.arrival)

    def add(self, found: Iterable[CopyReading]) -> dict[ReplicaId, CopyReading]:
        """Add the bytes of this reading, and return the last known bytes of each copy that is not done."""
        last: dict[ReplicaId, CopyReading] = {}
        links: dict[tuple[int, BrokerId | None, BrokerId], _LinkGrowth] = {}
        before, arrival, now = self._last.get, self.arrival, self._reading.at
        leaders = self._reading.throttle.leaders
        followed: TopicPartition | None = None
        for copy in found:
            move, replica, leader, copied, left, _, source, done, _, _, followers = copy
            old = before(replica)
            if done and old is None:
                continue
            if copied is None:
                if old is not None and not done:
                    last[replica] = old
                continue
            if not done:
                last[replica] = copy
            if move not in arrival:
                arrival[move] = now
            if old is None or old.copied is None:
                continue
            name, destination = replica
            grown = links.get((move, leader, destination))
            if grown is None:
                grown = links[move, leader, destination] = _LinkGrowth()
            came = copied - old.copied
            if came > 0:
                grown.arrived += came
            else:
                came = 0
            if left is not None and old.left is not None:
                grown.written += came - old.left + left
                grown.unfinished += 1
            if name is followed or not followers or leader is None or leader != old.leader:
                continue
            if source is None or old.source is None:
                continue
            followed = name
            if source > old.source and (name, leader) in leaders:
                self._followed[leader] += (source - old.source) * followers
        for (move, leader, destination), grown in links.items():
            self._add_link(WatchedLink(move, leader, destination), grown)
        return last

    def _add_link(self, link: WatchedLink, grown: _LinkGrowth) -> None:
        if grown.arrived:
            self._arrived[link] += grown.arrived
            self._came[link] += grown.arrived
            self.arrival[link.move] = self._reading.at
        if grown.unfinished:
            self._written[link] += grown.written
            self._unfinished[link] += grown.unfinished * self._seconds

    def followed(self) -> dict[BrokerId, float]:
        """Return the follower traffic of each leader since the last reading, in bytes per second."""
        before, seconds = self._followed_before, self._seconds
        return {b: (size - before.get(b, 0.0)) / seconds for b, size in self._followed.items()} if seconds else {}

    def add_flowing(self, before: Flowing, now: Flowing) -> None:
        """Add the busy seconds of brokers, and the possible and the used bytes of link ends, for the interval between
        two readings. For the seconds and the possible bytes, the states `before` and `now` count for half of the
        interval each.
        """
        half = self._seconds / 2
        for flow in (before, now):
            for broker in {link.destination for link in flow.rates}:
                self._busy[broker] += half
            for link, rate in flow.rates.items():
                if link in flow.limits:
                    self._possible[flow.limits[link]] += rate * half
        for link, came in self._came.items():
            end = now.limits.get(link) or before.limits.get(link)
            if end is not None:
                self._used[end] += came

    def sample(self, lag: Mapping[BrokerId, int | None], begun: int) -> WatchSample:
        return WatchSample(
            at=self._reading.at,
            arrived=dict(self._arrived),
            written=dict(self._written),
            followed=dict(self._followed),
            lag=lag,
            begun=begun,
            busy=dict(self._busy),
            possible=dict(self._possible),
            used=dict(self._used),
            unfinished=dict(self._unfinished),
        )


def _sum_replica_lag(
    found: Iterable[CopyReading], behind: Iterable[ReplicaId], reading: WatchReading
) -> dict[BrokerId, int | None]:
    """Return KIP-73's SumReplicaLag of each broker, or None if it is unknown. In-sync replicas count as 0. The result
    is empty over ZooKeeper.
    """
    if reading.logs is None:
        return {}
    end = reading.logs.end
    lags: defaultdict[BrokerId, int] = defaultdict(int, dict.fromkeys(sorted(reading.snapshot.alive), 0))
    unknown = set()

    def add(broker: BrokerId, lag: int | None) -> None:
        if lag is None:
            unknown.add(broker)
        else:
            lags[broker] += lag

    for copy in found:
        if copy.submitted:
            add(copy.replica[1], copy.lag)
    for name, broker in behind:
        leader = reading.snapshot.partitions[name].leader
        add(broker, offsets_behind(end((name, broker)), None if leader is None else end((name, leader))))
    return {**lags, **dict.fromkeys(unknown)}


def _new_destinations(
    known: Mapping[TopicPartition, Replicas], reading: WatchReading
) -> Mapping[TopicPartition, Replicas]:
    """Return the new replicas of each moving partition that has others than in `known`."""
    running = reading.snapshot.running
    return {name: running[name].adding for name in running if running[name].adding != known.get(name, ())}


def _with_marks(history: WatchHistory, before: WatchHistory, behind: Iterable[ReplicaId]) -> WatchHistory:
    """Return the history with new `futures`, `alone`, `caught` and `not_begun`: the times at which a condition was
    first seen.
    """
    now = history.reading.at
    futures = {}
    for replica, log in ({} if history.reading.logs is None else history.reading.logs.futures).items():
        old = before.futures.get(replica)
        futures[replica] = old if old is not None and old[0] == log.size else (log.size, now)
    left = {number: _only_partition(history, number) for number in range(len(history.moves))}
    alone = {number: before.alone.get(number, now) for number, name in left.items() if name is not None}
    caught = {replica: before.caught.get(replica, now) for replica in _caught(history.reading, behind)}
    not_begun = {
        name: before.not_begun.get(name, now)
        for name in sorted(history.reading.snapshot.not_begun)
        if any(name in move.targets for move in history.moves)
    }
    return replace(history, futures=futures, alone=alone, caught=caught, not_begun=not_begun)


def _only_partition(history: WatchHistory, number: int) -> TopicPartition | None:
    going = sum(state.copies - state.done for link, state in history.links.items() if link.move == number)
    if not 0 < going <= _MOST_REPLICAS:
        return None
    names = {copy.partition for copy in history.copies if copy.move == number and not copy.done}
    return names.pop() if len(names) == 1 else None


def _caught(reading: WatchReading, behind: Iterable[ReplicaId]) -> list[ReplicaId]:
    return [
        (name, broker)
        for name, broker in behind
        if (leader := reading.snapshot.partitions[name].leader) is not None
        and broker in reading.snapshot.alive
        and _is_limited(reading.throttle, (name, broker), (name, leader))
    ]


def _is_limited(throttle: ThrottleReading, follower: ReplicaId, leader: ReplicaId) -> bool:
    unset = BrokerRates()
    received = follower in throttle.followers and throttle.rates.get(follower[1], unset).follower is not None
    sent = leader in throttle.leaders and throttle.rates.get(leader[1], unset).leader is not None
    return received or sent
