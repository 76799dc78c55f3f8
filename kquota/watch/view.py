"""The view of running moves for operators: bytes, throughput against the throttle, lag and its trend, time left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kquota.measure import highest, total
from kquota.terms import BrokerId, TopicPartition
from kquota.watch.copies import CopyReading
from kquota.watch.forecast import Lane, seconds_left
from kquota.watch.history import QUOTA_WINDOW, WatchHistory, window
from kquota.watch.link_pace import Trend, rates_since, received_by, sent_by, trend, write_rates
from kquota.watch.links import WatchedLink
from kquota.watch.reading import BrokerRates, between_log_dirs


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestCopy:
    """The running copy that is expected to end last."""

    partition: TopicPartition
    left: int | None
    """The missing bytes of the copy."""
    seconds: float | None
    """The time until the copy ends, or None if this time is unknown or the copy makes no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationView:
    """The copies of one move to one broker. The values are in bytes, bytes per second and seconds. None means unknown,
    never 0.
    """

    broker: BrokerId
    copies: int
    """The number of copies, including those that are done."""
    done: int
    copied: int | None
    """The bytes on the destination."""
    left: int | None
    """The missing bytes."""
    throughput: float | None
    """The bytes that arrive per second, measured over about one quota window."""
    throttle: int | None
    """The follower rate of the broker. Also None if the rate is unset, or if no unfinished copy is in the followers'
    throttled replica list.
    """
    throttled: bool | None
    """True if the follower rate limits unfinished copies. None if unfinished copies are in the followers' throttled
    replica list, but the rate is unknown.
    """
    seconds_left: float | None
    """The time until the last copy ends, including copies of later waves (see `forecast.seconds_left`). Also None if
    the copies make no progress.
    """
    written: float
    """The total write rate to the unfinished copies, which `seconds_left` takes into account."""
    slowest: SlowestCopy | None
    """The running copy that ends last, or None if no running copy is known to lack bytes."""
    running: bool = True
    """True if a submitted copy is not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedMoveView:
    """One move. The values are in bytes, bytes per second and seconds. None means unknown, never 0."""

    run: str | None
    """The id of the move's run, or None if no run is recorded here."""
    partitions: int
    """The number of partitions in the plan."""
    done: int
    """The number of partitions that are not moving and have the replicas of the plan."""
    elsewhere: int
    """The number of partitions that are neither moving nor waiting but lack the replicas of the plan, or are deleted.
    """
    waiting: int
    """The number of partitions that are not submitted yet."""
    moving: int
    copied: int | None
    """The bytes on the destinations."""
    left: int | None
    """The missing bytes."""
    throughput: float | None
    """The bytes that arrive per second, measured over about one quota window."""
    seconds_left: float | None
    """The time until the last copy between brokers ends, or 0 if the move has ended. None if the time is unknown, or
    if only copies between log dirs are left.
    """
    drift: float | None
    """The seconds by which the move ends later than expected, or than first predicted. Negative if the move ends
    earlier. None if the move has ended, or if its end is unknown or not predicted yet.
    """
    open: bool
    paused: bool = False
    undoing: bool = False
    """True if the run is being undone. The partitions and the bytes are then those of the undo."""
    destinations: tuple[DestinationView, ...]
    """The copies to each destination, sorted by broker id."""
    log_dirs: int = 0
    """The number of replicas that are still copied between the log dirs of their broker, or whose broker does not
    answer.
    """

    @property
    def ended(self) -> bool:
        """True if `moving`, `waiting` and `log_dirs` are 0."""
        return not self.moving and not self.waiting and not self.log_dirs

    @property
    def last(self) -> DestinationView | None:
        """The destination whose copies are expected to end last, or None if no remaining time is known."""
        known = [lane for lane in self.destinations if lane.seconds_left is not None]
        return max(known, key=lambda lane: lane.seconds_left or 0.0) if known else None

    @property
    def least_seconds(self) -> float | None:
        """The seconds that the missing bytes take if the copies use the whole throttle rate of each destination.

        Only destinations with running copies count. None if there are none, or if one of them has unknown missing bytes
        or no known throttle rate. A single reading is enough to calculate this time.
        """
        running = [lane for lane in self.destinations if lane.done < lane.copies and lane.running]
        return highest(
            None if lane.left is None or not lane.throttle else lane.left / lane.throttle for lane in running
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedBroker:
    """A broker that sends or receives copies. Rates are in bytes per second. None means unknown, never 0."""

    broker: BrokerId
    alive: bool
    lag: int | None
    """KIP-73's SumReplicaLag in offsets."""
    trend: Trend | None
    sent: float | None
    """The rate at which the broker sends copies and the follower traffic of throttled partitions. This traffic counts
    against `leader_rate`.
    """
    leader_rate: int | None
    """The leader throttle rate. Also None if the rate is unset."""
    received: float | None
    """The rate at which the broker receives copies."""
    follower_rate: int | None
    """The follower throttle rate. Also None if the rate is unset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchView:
    """All watched moves, and the brokers that send or receive their copies."""

    moves: tuple[WatchedMoveView, ...]
    brokers: tuple[WatchedBroker, ...]


def seen(history: WatchHistory) -> tuple[WatchHistory, WatchView]:
    """Return the history with the first prediction of each move, and the view of the last reading.

    `drift` is relative to the expected end of a move, or to its first prediction, which is made after a quota window.
    """
    lanes, writes, slowest = seconds_left(history), write_rates(history), _slowest(history)
    ends, now = dict(history.first_ends), history.reading.at
    moves = []
    for number in range(len(history.moves)):
        move = _move(history, number, lanes, writes, slowest)
        expected = history.moves[number].expected_seconds
        if number not in ends and expected is not None:
            ends[number] = history.began + expected
        too_early = number not in ends and now - history.began < QUOTA_WINDOW
        if move.ended or move.seconds_left is None or too_early:
            moves.append(move)
            continue
        end = now + move.seconds_left
        moves.append(replace(move, drift=end - ends.setdefault(number, end)))
    return replace(history, first_ends=ends), WatchView(moves=tuple(moves), brokers=tuple(_brokers(history)))


def _move(
    history: WatchHistory,
    number: int,
    ends: Mapping[Lane, float],
    writes: Mapping[WatchedLink, float],
    slowest: Mapping[Lane, SlowestCopy],
) -> WatchedMoveView:
    move = history.moves[number]
    lanes = tuple(
        _destination(history, number, broker, ends.get((number, broker)), writes, slowest.get((number, broker)))
        for broker in sorted({link.destination for link in history.links if link.move == number})
    )
    done, waiting, moving = _counts(history, number)
    throughput = total(lane.throughput for lane in lanes)
    log_dirs = len(between_log_dirs(move, history.reading))
    return WatchedMoveView(
        run=move.run,
        partitions=len(move.targets),
        done=done,
        elsewhere=len(move.targets) - done - waiting - moving,
        waiting=waiting,
        moving=moving,
        copied=total(lane.copied for lane in lanes),
        left=total(lane.left for lane in lanes),
        throughput=None if throughput is None else round(throughput),
        seconds_left=highest(lane.seconds_left for lane in lanes) if moving or waiting else None if log_dirs else 0.0,
        drift=None,
        open=move.open,
        paused=move.paused,
        undoing=move.undoing,
        destinations=lanes,
        log_dirs=log_dirs,
    )


def _counts(history: WatchHistory, number: int) -> tuple[int, int, int]:
    """Return `done`, `waiting` and `moving` of `WatchedMoveView`."""
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
    return done, waiting, moving


def _destination(
    history: WatchHistory,
    number: int,
    broker: BrokerId,
    seconds: float | None,
    writes: Mapping[WatchedLink, float],
    slowest: SlowestCopy | None,
) -> DestinationView:
    links = {link: s for link, s in history.links.items() if link.move == number and link.destination == broker}
    rates = history.reading.throttle.rates
    listed = any(state.receiving for state in links.values())
    rate = rates[broker].follower if listed and broker in rates else None
    throttled = False if not listed else None if broker not in rates else rate is not None
    left = total(state.left for state in links.values())
    return DestinationView(
        broker=broker,
        copies=sum(state.copies for state in links.values()),
        done=sum(state.done for state in links.values()),
        copied=total(state.copied for state in links.values()),
        left=left,
        throughput=_throughput(history, links),
        throttle=rate,
        throttled=throttled,
        seconds_left=0.0 if left == 0 else seconds,
        written=sum(writes.get(link, 0.0) * (state.copies - state.done) for link, state in links.items()),
        slowest=slowest,
        running=any(state.running for state in links.values()),
    )


def _throughput(history: WatchHistory, links: Iterable[WatchedLink]) -> float | None:
    since = window(history, QUOTA_WINDOW)
    if since is None or history.reading.logs is None:
        return None
    seconds = history.now.at - since.at
    came = sum(history.now.arrived.get(link, 0.0) - since.arrived.get(link, 0.0) for link in links)
    return came / seconds if seconds > 0 else None


def _slowest(history: WatchHistory) -> Mapping[Lane, SlowestCopy]:
    """Return the running copy of each lane that is expected to end last. Its pace is measured since the oldest anchor
    that shows the copy as submitted. A copy without progress counts as the slowest.
    """
    worst: dict[Lane, tuple[float, int, CopyReading]] = {}
    for copy in history.copies:
        left = copy.left
        if not left or not copy.submitted:
            continue
        known = ((anchor.at, anchor.copies.get(copy.replica)) for anchor in history.anchors)
        at, before = next(((at, old) for at, old in known if old and old.submitted), (history.reading.at, copy))
        came = (copy.copied or 0) - (before.copied or 0)
        seconds = history.reading.at - at
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
    sent: Mapping[BrokerId, float] = {}
    received: Mapping[BrokerId, float] = {}
    if since is not None:
        sent = sent_by(history, since)
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
