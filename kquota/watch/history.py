"""Successive readings of running moves: the bytes that arrived and that were written, by link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kquota.reassign.moves import Replicas
from kquota.terms import SAMPLE_MS, SAMPLES, BrokerId, ReplicaId, TopicPartition
from kquota.watch.reading import (
    BrokerRates,
    CopyReading,
    ThrottleReading,
    WatchedMove,
    WatchReading,
    copies,
    offsets_behind,
)

QUOTA_WINDOW: Final = SAMPLES * SAMPLE_MS / 1000
"""The quota window in seconds, with Kafka's defaults.

A throttled copy may receive the bytes of a whole window at once, and then none until the window has passed. A rate over
a shorter time is therefore not reliable.
"""
_MOST_SAMPLES: Final = 240
_ANCHOR_SECONDS: Final = 60.0
_MOST_REPLICAS: Final = 100
"""A limit above the number of copies that one partition has in practice. More copies belong to several partitions."""


class WatchedLink(NamedTuple):
    """The copies of one move from one leader to one destination. `leader` is None if the partitions have no leader."""

    move: int
    leader: BrokerId | None
    destination: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """The copies of one link in the last reading, with their bytes. None means unknown, never 0.

    `sending` is true if the leaders' throttled replica list has the leader of a copy that is not done. `receiving` is
    true if the followers' list has the destination of a copy that is not done.
    """

    copies: int = 0
    done: int = 0
    copied: int | None = 0
    left: int | None = 0
    sending: bool = False
    receiving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSample:
    """Totals in bytes since the first reading: `arrived` at destinations, and `written` to partitions being copied.

    `at` is in seconds of a monotonic clock. `followed` are the bytes that in-sync followers of throttled partitions
    fetched from a leader. The leader's throttle counts these bytes, but does not delay them. `lag` is KIP-73's
    SumReplicaLag in offsets, or None if it is unknown.
    """

    at: float
    arrived: Mapping[WatchedLink, float]
    written: Mapping[WatchedLink, float]
    followed: Mapping[BrokerId, float]
    lag: Mapping[BrokerId, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAnchor:
    """The known bytes of every unfinished copy in an earlier reading. A comparison shows the slowest copy."""

    at: float
    copies: Mapping[ReplicaId, CopyReading]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchHistory:
    """The readings so far. `samples` begin again when a throttle rate changes, because the pace changes with it.

    `arrival` has the time at which bytes of each move last arrived, or the time of its first reading. `first_ends` has
    the expected end of each move, or its end as first predicted. All times are in seconds of a monotonic clock.
    """

    moves: tuple[WatchedMove, ...]
    reading: WatchReading
    copies: tuple[CopyReading, ...]
    links: Mapping[WatchedLink, LinkState]
    samples: tuple[WatchSample, ...]
    began: float
    anchors: tuple[WatchAnchor, WatchAnchor]
    last: Mapping[ReplicaId, CopyReading]
    """The last known bytes of each copy that is not done."""
    destinations: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    arrival: Mapping[int, float] = field(default_factory=dict)
    first_ends: Mapping[int, float] = field(default_factory=dict)
    futures: Mapping[ReplicaId, tuple[int, float]] = field(default_factory=dict)
    """The size of each copy between log dirs, and when it was first seen with this size."""
    alone: Mapping[int, float] = field(default_factory=dict)
    """The time at which a move was first seen with only one partition left."""
    caught: Mapping[ReplicaId, float] = field(default_factory=dict)
    """The time at which a replica that is not moving was first seen throttled and out of sync."""

    @property
    def now(self) -> WatchSample:
        """The newest sample."""
        return self.samples[-1]


def begin(moves: Sequence[WatchedMove], reading: WatchReading) -> WatchHistory:
    """Return a history with only this reading."""
    found = tuple(copies(tuple(moves), reading, {}))
    behind = _behind(reading)
    empty = WatchSample(
        at=reading.at, arrived={}, written={}, followed={}, lag=_sum_replica_lag(found, behind, reading)
    )
    last = {copy.replica: copy for copy in found if not copy.done and copy.copied is not None}
    anchor = WatchAnchor(at=reading.at, copies=last)
    blank = WatchHistory(
        moves=tuple(moves),
        reading=reading,
        copies=found,
        links=_links(found, reading.throttle),
        samples=(empty,),
        began=reading.at,
        anchors=(anchor, anchor),
        last=last,
        destinations=_seen_moving({}, reading),
        arrival=dict.fromkeys(range(len(moves)), reading.at),
    )
    return _with_marks(blank, blank, behind)


def after(history: WatchHistory, moves: Sequence[WatchedMove], reading: WatchReading) -> WatchHistory:
    """Return the history with one more reading. New moves must be last in `moves`, because a move keeps its number."""
    known = _seen_moving(history.destinations, reading)
    found = tuple(copies(tuple(moves), reading, known))
    behind = _behind(reading)
    total = _Totals(history, reading)
    last = total.add(found)
    sample = total.sample(_sum_replica_lag(found, behind, reading))
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
        copies=found,
        links=_links(found, reading.throttle),
        samples=samples,
        anchors=(older, newer),
        last=last,
        destinations=known,
        arrival=total.arrival,
    )
    return _with_marks(grown, history, behind)


def window(history: WatchHistory, seconds: float) -> WatchSample | None:
    """Return the earliest sample that is at most `seconds` old, but older than the newest sample.

    If readings are farther apart than `seconds`, return the last sample before the newest one. None if there is none.
    """
    older = [sample for sample in history.samples if sample.at < history.now.at]
    since = history.now.at - seconds
    return next((sample for sample in older if sample.at >= since), older[-1] if older else None)


class _Totals:
    """The totals of the samples so far, to which one reading is added."""

    def __init__(self, history: WatchHistory, reading: WatchReading) -> None:
        before = history.now
        self._last = history.last
        self._reading = reading
        self._arrived: defaultdict[WatchedLink, float] = defaultdict(float, before.arrived)
        self._written: defaultdict[WatchedLink, float] = defaultdict(float, before.written)
        self._followed: defaultdict[BrokerId, float] = defaultdict(float, before.followed)
        self.arrival = dict(history.arrival)

    def add(self, found: Iterable[CopyReading]) -> dict[ReplicaId, CopyReading]:
        """Add the bytes that arrived, and return the last known bytes of each copy that is not done."""
        last: dict[ReplicaId, CopyReading] = {}
        previous: TopicPartition | None = None
        for copy in found:
            move, replica, leader, copied, left, _, _, done, _, _ = copy
            old = self._last.get(replica)
            if done and old is None:
                continue
            if copied is None:
                if old is not None and not done:
                    last[replica] = old
                continue
            if not done:
                last[replica] = copy
            if move not in self.arrival:
                self.arrival[move] = self._reading.at
            if old is None or old.copied is None:
                continue
            came = max(0, copied - old.copied)
            link = WatchedLink(move, leader, replica[1])
            if came:
                self._arrived[link] += came
                self.arrival[move] = self._reading.at
            if left is not None and old.left is not None:
                self._written[link] += came - old.left + left
            if replica[0] != previous:
                self._add_followers(copy, old)
            previous = replica[0]
        return last

    def _add_followers(self, copy: CopyReading, old: CopyReading) -> None:
        """Add the bytes that in-sync followers fetched from the leader of a throttled partition."""
        leader, before, now = copy.leader, old.source, copy.source
        if leader is None or leader != old.leader or before is None or now is None or now <= before:
            return
        name = copy.replica[0]
        if (name, leader) in self._reading.throttle.leaders:
            isr = self._reading.snapshot.partitions[name].isr
            self._followed[leader] += (now - before) * (len(isr) - isr.count(leader))

    def sample(self, lag: Mapping[BrokerId, int | None]) -> WatchSample:
        """Return the totals so far as one sample."""
        return WatchSample(
            at=self._reading.at,
            arrived=dict(self._arrived),
            written=dict(self._written),
            followed=dict(self._followed),
            lag=lag,
        )


def _links(found: Iterable[CopyReading], throttle: ThrottleReading) -> dict[WatchedLink, LinkState]:
    by_link: defaultdict[tuple[int, BrokerId | None, BrokerId], list[CopyReading]] = defaultdict(list)
    for copy in found:
        by_link[copy.move, copy.leader, copy.replica[1]].append(copy)
    links = {}
    for (move, leader, destination), those in by_link.items():
        going = [copy for copy in those if not copy.done]
        sizes = [copy.copied for copy in those]
        missing = [copy.left for copy in going]
        links[WatchedLink(move, leader, destination)] = LinkState(
            copies=len(those),
            done=len(those) - len(going),
            copied=None if None in sizes else sum(size for size in sizes if size is not None),
            left=None if None in missing else sum(left for left in missing if left is not None),
            sending=any((copy.replica[0], leader) in throttle.leaders for copy in going),
            receiving=any(copy.replica in throttle.followers for copy in going),
        )
    return links


def _behind(reading: WatchReading) -> list[ReplicaId]:
    """Return the out-of-sync replicas that are not copies of a running move."""
    found = []
    for name, now in reading.snapshot.partitions.items():
        missing = len(now.replicas) - len(now.isr)
        if missing and missing > sum(broker not in now.isr for broker in now.adding):
            found += [(name, b) for b in now.replicas if b not in now.isr and b not in now.adding]
    return found


def _sum_replica_lag(
    found: Iterable[CopyReading], behind: Iterable[ReplicaId], reading: WatchReading
) -> dict[BrokerId, int | None]:
    """Return KIP-73's SumReplicaLag of each broker, or None if it is unknown. The result is empty over ZooKeeper.

    Replicas in sync have caught up, so they count as 0.
    """
    if reading.logs is None:
        return {}
    logs = reading.logs.logs
    lags: defaultdict[BrokerId, int] = defaultdict(int, dict.fromkeys(sorted(reading.snapshot.alive), 0))
    unknown = set()
    for copy in found:
        if copy.submitted:
            if copy.lag is None:
                unknown.add(copy.replica[1])
            else:
                lags[copy.replica[1]] += copy.lag
    for replica in behind:
        now = reading.snapshot.partitions[replica[0]]
        lag = offsets_behind(logs.get(replica), None if now.leader is None else logs.get((replica[0], now.leader)))
        if lag is None:
            unknown.add(replica[1])
        else:
            lags[replica[1]] += lag
    return {**lags, **dict.fromkeys(unknown)}


def _seen_moving(known: Mapping[TopicPartition, Replicas], reading: WatchReading) -> Mapping[TopicPartition, Replicas]:
    """Return the destinations of every partition that was seen to move."""
    running = reading.snapshot.running
    fresh = {name: running[name].adding for name in running if running[name].adding != known.get(name, ())}
    return {**known, **fresh} if fresh else known


def _with_marks(history: WatchHistory, before: WatchHistory, behind: Iterable[ReplicaId]) -> WatchHistory:
    """Return the history with new `futures`, `alone` and `caught`: the times at which a condition was first seen."""
    now = history.reading.at
    futures = {}
    for replica, log in ({} if history.reading.logs is None else history.reading.logs.futures).items():
        old = before.futures.get(replica)
        futures[replica] = old if old is not None and old[0] == log.size else (log.size, now)
    left = {number: _only_partition(history, number) for number in range(len(history.moves))}
    alone = {number: before.alone.get(number, now) for number, name in left.items() if name is not None}
    caught = {replica: before.caught.get(replica, now) for replica in _caught(history.reading, behind)}
    return replace(history, futures=futures, alone=alone, caught=caught)


def _only_partition(history: WatchHistory, number: int) -> TopicPartition | None:
    """Return the only partition of a move that is not done, or None if there is not exactly one."""
    going = sum(state.copies - state.done for link, state in history.links.items() if link.move == number)
    if not 0 < going <= _MOST_REPLICAS:
        return None
    names = {copy.partition for copy in history.copies if copy.move == number and not copy.done}
    return names.pop() if len(names) == 1 else None


def _caught(reading: WatchReading, behind: Iterable[ReplicaId]) -> list[ReplicaId]:
    """Return the replicas that are not moving, but are throttled while they are out of sync (KIP-352)."""
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
