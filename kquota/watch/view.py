"""The view of running moves for operators: bytes, throughput against the throttle, lag and its trend, time left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kquota.terms import BrokerId, TopicPartition
from kquota.watch.history import QUOTA_WINDOW, WatchedLink, WatchHistory, window
from kquota.watch.link_pace import LinkPace, Trend, paces, rates_since, received_by, sent_by, time_left, trend
from kquota.watch.reading import BrokerRates, CopyReading


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestCopy:
    """The copy that is expected to end last.

    `seconds` is the time until its end, or None if this time is unknown or the copy makes no progress.
    """

    partition: TopicPartition
    left: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationView:
    """The copies of one move to one broker. The values are in bytes, bytes per second and seconds. None means unknown,
    never 0.

    `throttle` is the follower rate of the broker. It is also None if the rate is unset, or if no copy is in a follower
    list. `throttled` is None if it is unknown whether the copies are throttled. `seconds_left` is also None if the
    copies make no progress. `written` is the write rate of the copied partitions, and `seconds_left` takes it into
    account. `slowest` is None if no copy is known to lack bytes.
    """

    broker: BrokerId
    copies: int
    done: int
    copied: int | None
    left: int | None
    throughput: float | None
    throttle: int | None
    throttled: bool | None
    seconds_left: float | None
    written: float
    slowest: SlowestCopy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMoveView:
    """One move. `waiting` counts partitions that are not submitted yet. `elsewhere` counts partitions that are neither
    moving nor waiting but lack the replicas of the plan, or are deleted. `log_dirs` counts replicas that are still
    copied between the log dirs of their broker.

    `drift` is how many seconds later the move now ends than expected, or than first predicted. It is negative if the
    move ends earlier, and None if the move has ended or its end is unknown or not predicted yet.
    """

    run: str | None
    partitions: int
    done: int
    elsewhere: int
    waiting: int
    moving: int
    copied: int | None
    left: int | None
    throughput: float | None
    seconds_left: float | None
    drift: float | None
    open: bool
    destinations: tuple[DestinationView, ...]
    log_dirs: int = 0

    @property
    def ended(self) -> bool:
        """True if no partition is moving or still to be submitted, and no replica is moving between log dirs."""
        return not self.moving and not self.waiting and not self.log_dirs

    @property
    def last(self) -> DestinationView | None:
        """The destination that is expected to end last, or None if no remaining time is known."""
        known = [lane for lane in self.destinations if lane.seconds_left is not None]
        return max(known, key=lambda lane: lane.seconds_left or 0.0) if known else None

    @property
    def least_seconds(self) -> float | None:
        """The seconds that the missing bytes take if the copies use the whole throttle rate of each destination.

        None if no copy is left, if a copy is not throttled, or if its missing bytes are unknown. One reading is enough
        for this time.
        """
        found = [_at_throttle(lane) for lane in self.destinations if lane.done < lane.copies]
        known = [seconds for seconds in found if seconds is not None]
        return max(known) if known and len(known) == len(found) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedBroker:
    """A broker that sends or receives copies. `lag` is KIP-73's SumReplicaLag in offsets.

    The rates are in bytes per second. None means unknown. For a throttle rate, None can also mean unset. `sent`
    includes follower traffic of throttled partitions, which counts against `leader_rate`.
    """

    broker: BrokerId
    alive: bool
    lag: int | None
    trend: Trend | None
    sent: float | None
    leader_rate: int | None
    received: float | None
    follower_rate: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchView:
    """All watched moves, and the brokers that send or receive their copies."""

    moves: tuple[WatchedMoveView, ...]
    brokers: tuple[WatchedBroker, ...]


def seen(history: WatchHistory) -> tuple[WatchHistory, WatchView]:
    """Return the history with the first prediction of each move, and the view of the last reading.

    `drift` is relative to the expected end of a move, or to its first prediction, which is made after a quota window.
    """
    shown = _view(history)
    ends, now = dict(history.first_ends), history.reading.at
    moves = []
    for number, move in enumerate(shown.moves):
        expected = history.moves[number].expected_seconds
        if number not in ends and expected is not None:
            ends[number] = history.began + expected
        too_early = number not in ends and now - history.began < QUOTA_WINDOW
        if move.ended or move.seconds_left is None or too_early:
            moves.append(move)
            continue
        end = now + move.seconds_left
        moves.append(replace(move, drift=end - ends.setdefault(number, end)))
    return replace(history, first_ends=ends), replace(shown, moves=tuple(moves))


def _view(history: WatchHistory) -> WatchView:
    paced, slowest = paces(history), _slowest(history)
    shown = tuple(_move(history, number, paced, slowest) for number in range(len(history.moves)))
    return WatchView(moves=shown, brokers=tuple(_brokers(history)))


def _move(
    history: WatchHistory,
    number: int,
    paced: Mapping[WatchedLink, LinkPace],
    slowest: Mapping[tuple[int, BrokerId], SlowestCopy],
) -> WatchedMoveView:
    move = history.moves[number]
    lanes = tuple(
        _destination(history, number, broker, paced, slowest.get((number, broker)))
        for broker in sorted({link.destination for link in history.links if link.move == number})
    )
    counts = _counts(history, number)
    left = total(lane.left for lane in lanes)
    seconds = _longest(lane.seconds_left for lane in lanes)
    seconds_left = seconds if counts.moving or counts.waiting else 0.0
    return WatchedMoveView(
        run=move.run,
        partitions=len(move.targets),
        done=counts.done,
        elsewhere=counts.elsewhere,
        waiting=counts.waiting,
        moving=counts.moving,
        copied=total(lane.copied for lane in lanes),
        left=left,
        throughput=total(lane.throughput for lane in lanes),
        seconds_left=seconds_left,
        drift=None,
        open=move.open,
        destinations=lanes,
        log_dirs=0 if history.reading.logs is None else len(move.log_dirs.keys() & history.reading.logs.futures.keys()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """The number of partitions in each state. `waiting` partitions are not submitted yet."""

    done: int
    elsewhere: int
    waiting: int
    moving: int


def _counts(history: WatchHistory, number: int) -> PartitionCounts:
    move, snapshot = history.moves[number], history.reading.snapshot
    partitions, running = snapshot.partitions, snapshot.running
    done = waiting = moving = 0
    for name, target in move.targets.items():
        if name in running:
            moving += 1
        elif (now := partitions.get(name)) is not None and now.replicas == target:
            done += 1
        elif now is not None and move.submitted is not None and name not in move.submitted:
            waiting += 1
    elsewhere = len(move.targets) - done - waiting - moving
    return PartitionCounts(done=done, elsewhere=elsewhere, waiting=waiting, moving=moving)


def _destination(
    history: WatchHistory,
    number: int,
    broker: BrokerId,
    paced: Mapping[WatchedLink, LinkPace],
    slowest: SlowestCopy | None,
) -> DestinationView:
    links = {link: s for link, s in history.links.items() if link.move == number and link.destination == broker}
    rates = history.reading.throttle.rates
    listed = any(state.receiving for state in links.values())
    rate = rates[broker].follower if listed and broker in rates else None
    throttled = False if not listed else None if broker not in rates else rate is not None
    left = total(state.left for state in links.values())
    net = sum(paced[link].net for link in links if link in paced)
    return DestinationView(
        broker=broker,
        copies=sum(state.copies for state in links.values()),
        done=sum(state.done for state in links.values()),
        copied=total(state.copied for state in links.values()),
        left=left,
        throughput=_throughput(history, links),
        throttle=rate,
        throttled=throttled,
        seconds_left=time_left(left, net),
        written=sum(paced[link].written for link in links if link in paced),
        slowest=slowest,
    )


def _at_throttle(lane: DestinationView) -> float | None:
    return None if lane.left is None or not lane.throttle else lane.left / lane.throttle


def _throughput(history: WatchHistory, links: Iterable[WatchedLink]) -> float | None:
    since = window(history, QUOTA_WINDOW)
    if since is None or history.reading.logs is None:
        return None
    seconds = history.now.at - since.at
    came = sum(history.now.arrived.get(link, 0.0) - since.arrived.get(link, 0.0) for link in links)
    return came / seconds if seconds > 0 else None


def _slowest(history: WatchHistory) -> Mapping[tuple[int, BrokerId], SlowestCopy]:
    """Return, for each move and destination, the copy that ends last. A copy without progress is the slowest."""
    older = history.anchors[0]
    seconds = history.reading.at - older.at
    worst: dict[tuple[int, BrokerId], tuple[float, int, CopyReading]] = {}
    for copy in history.copies:
        left = copy.left
        if not left:
            continue
        before = older.copies.get(copy.replica)
        came = (copy.copied or 0) - (0 if before is None else before.copied or 0)
        needed = left * seconds / came if came > 0 else math.inf if seconds > 0 else 0.0
        lane = copy.move, copy.replica[1]
        rank = worst.get(lane)
        if rank is None or needed > rank[0] or (needed == rank[0] and left > rank[1]):
            worst[lane] = needed, left, copy
    return {
        lane: SlowestCopy(partition=copy.partition, left=left, seconds=needed if 0 < needed < math.inf else None)
        for lane, (needed, left, copy) in worst.items()
    }


def _brokers(history: WatchHistory) -> Iterable[WatchedBroker]:
    reading = history.reading
    going = [link for link, state in history.links.items() if state.done < state.copies]
    named = {link.destination for link in going} | {link.leader for link in going if link.leader is not None}
    since = window(history, QUOTA_WINDOW)
    sent = {} if since is None else sent_by(history, since)
    received: Mapping[BrokerId, float] = {}
    if since is not None:
        received = received_by(rates_since(since.arrived, history.now.arrived, history.now.at - since.at))
    measured = since is not None and reading.logs is not None
    for broker in sorted(named):
        rates = reading.throttle.rates.get(broker, BrokerRates())
        yield WatchedBroker(
            broker=broker,
            alive=broker in reading.snapshot.alive,
            lag=history.now.lag.get(broker),
            trend=trend(history, broker),
            sent=sent.get(broker, 0.0) if measured else None,
            leader_rate=rates.leader,
            received=received.get(broker, 0.0) if measured else None,
            follower_rate=rates.follower,
        )


def total(values: Iterable[float | None]) -> int | None:
    """Return the rounded sum, or None if one of the values is unknown."""
    found = 0.0
    for value in values:
        if value is None:
            return None
        found += value
    return round(found)


def _longest(seconds: Iterable[float | None]) -> float | None:
    found = list(seconds)
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None
