"""Compares successive readings, and finds the symptoms of the watched moves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from kquota.reassign.run import PAUSED_RATE
from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.history import QUOTA_WINDOW, WatchHistory, WatchSample, window
from kquota.watch.link_pace import rates_since, sent_by
from kquota.watch.links import LinkEnd, end_limits, throttles
from kquota.watch.reading import between_log_dirs
from kquota.watch.symptom import (
    CaughtReplica,
    DestinationDown,
    FullDisk,
    IdleLogDir,
    LastPartition,
    NoLeader,
    NotBegun,
    NothingArrives,
    NotStarted,
    NotSubmitted,
    RunOpen,
    RunPaused,
    StarvedCopies,
    Symptom,
    ThrottleLeft,
    ThrottleSide,
    Undo,
)
from kquota.watch.view import WatchView

_AT_THE_RATE: Final = 0.8
"""Copies count as throttled if they use at least this share of the throttle rate, because throttled copies stay a few
percent below the rate.
"""
_NO_PROGRESS: Final = 0.02
"""A decrease of the missing bytes at no more than this share of the throttle rate does not count as progress."""
_IDLE_SECONDS: Final = 3 * QUOTA_WINDOW
"""A move, or a copy between log dirs, has a symptom if no bytes arrive for this time. Three quota windows are enough,
because a throttled copy pauses for at most one window.
"""
_NOT_STARTED_SECONDS: Final = 10.0
_CAUGHT_SECONDS: Final = 4.0
_ALONE_SECONDS: Final = 60.0
_NO_EXPLANATION: Final = (ThrottleLeft, RunOpen, LastPartition, CaughtReplica, IdleLogDir)
"""The symptoms that do not explain why no bytes arrive."""


def symptoms(history: WatchHistory, shown: WatchView) -> tuple[Symptom, ...]:
    """Return the symptoms of the moves, the most serious first. A move that makes progress can also have symptoms, for
    example `LastPartition`. `NothingArrives` is returned only if no other symptom explains why no bytes arrive.
    """
    found: list[Symptom] = [
        *_down(history),
        *_leaderless(history),
        *_full(history),
        *_paused(history, shown),
        *_not_submitted(history),
        *_not_begun(history),
        *_not_started(history),
        *_starved(history),
        *_caught(history),
        *_idle_log_dirs(history),
        *_last(history, shown),
        *_left_over(history, shown),
    ]
    explained = any(not isinstance(symptom, _NO_EXPLANATION) for symptom in found)
    return tuple(found) if explained else (*_silent(history, shown), *found)


def _down(history: WatchHistory) -> Iterator[DestinationDown]:
    reading = history.reading
    copies: defaultdict[BrokerId, int] = defaultdict(int)
    for link, state in history.links.items():
        copies[link.destination] += state.copies - state.done
    for move in history.moves:
        for _, broker in between_log_dirs(move, reading):
            copies[broker] += 1
    silent = {} if reading.logs is None else reading.logs.silent
    for broker, count in sorted(copies.items()):
        if count and broker not in reading.snapshot.alive:
            yield DestinationDown(broker=broker, copies=count, why=None, undo=_undo(history))
        elif count and broker in silent:
            yield DestinationDown(broker=broker, copies=count, why=silent[broker])


def _undo(history: WatchHistory) -> Undo:
    """Return what kquota can undo without the dead brokers. Only a partition that must be copied back needs live
    brokers. The sources of a run that is already being undone are unknown, so its targets count instead.
    """
    if history.reading.logs is None:
        return Undo.NONE
    snapshot = history.reading.snapshot
    for move in history.moves:
        for name, before in (move.sources or move.targets).items() if move.run else ():
            now = snapshot.partitions.get(name)
            ended_elsewhere = now is not None and not now.moving and now.replicas != before
            if ended_elsewhere and not snapshot.alive.issuperset(before):
                return Undo.RUNNING
    return Undo.WHOLE


def _leaderless(history: WatchHistory) -> Iterator[NoLeader]:
    if not any(link.leader is None and state.done < state.copies for link, state in history.links.items()):
        return
    names = tuple(dict.fromkeys(copy.partition for copy in history.copies if not copy.done and copy.leader is None))
    if names:
        yield NoLeader(partitions=names, replicas=history.reading.snapshot.partitions[names[0]].before)


def _full(history: WatchHistory) -> Iterator[FullDisk]:
    logs = history.reading.logs
    if logs is None:
        return
    destinations = {link.destination for link, state in history.links.items() if state.done < state.copies}
    tight = any(
        space.error is not None or (space.usable is not None and space.usable < _total_left(history, broker))
        for (broker, _), space in logs.dirs.items()
        if broker in destinations
    )
    places: defaultdict[BrokerId, list[tuple[str, Mapping[str, Mapping[int, int]]]]] = defaultdict(list)
    for (broker, path), topics in logs.by_dir.items():
        places[broker].append((path, topics))
    coming: defaultdict[tuple[BrokerId, str], int] = defaultdict(int)
    for copy in history.copies if tight else ():
        (topic, number), broker = copy.replica
        for path, topics in places[broker] if copy.left else ():
            if number in topics.get(topic, ()):
                coming[broker, path] += copy.left or 0
    for (broker, path), space in sorted(logs.dirs.items()):
        left = coming.get((broker, path))
        if broker in destinations and space.error is not None:
            yield FullDisk(broker=broker, log_dir=path, usable=None, left=left, error=space.error)
        elif left is not None and space.usable is not None and space.usable < left:
            yield FullDisk(broker=broker, log_dir=path, usable=space.usable, left=left, error=None)


def _total_left(history: WatchHistory, broker: BrokerId) -> int:
    return sum(state.left or 0 for link, state in history.links.items() if link.destination == broker)


def _paused(history: WatchHistory, shown: WatchView) -> Iterator[RunPaused]:
    for number, move in enumerate(shown.moves):
        if history.moves[number].paused and not move.ended:
            yield RunPaused(run=move.run, left=move.left)


def _not_submitted(history: WatchHistory) -> Iterator[NotSubmitted]:
    snapshot = history.reading.snapshot
    for move in history.moves:
        if move.submitted is None or any(name in snapshot.running for name in move.targets):
            continue
        names = [
            name
            for name, target in move.targets.items()
            if name not in move.submitted
            and (now := snapshot.partitions.get(name)) is not None
            and now.replicas != target
        ]
        if names:
            yield NotSubmitted(run=move.run, partitions=len(names), first=names[0])


def _not_begun(history: WatchHistory) -> Iterator[NotBegun]:
    now = history.reading.at
    waiting = {name: now - since for name, since in history.not_begun.items() if now - since >= _NOT_STARTED_SECONDS}
    if waiting:
        yield NotBegun(partitions=len(waiting), first=min(waiting), seconds=max(waiting.values()))


def _not_started(history: WatchHistory) -> Iterator[NotStarted]:
    seconds = history.reading.at - history.anchors[0].at
    if seconds < _NOT_STARTED_SECONDS:
        return
    old = history.anchors[0].copies
    names: defaultdict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for copy in history.copies:
        if copy.begun is False and copy.submitted and (first := old.get(copy.replica)) is not None and not first.copied:
            names[copy.destination].append(copy.partition)
    for broker, those in sorted(names.items()):
        yield NotStarted(broker=broker, copies=len(those), first=those[0], seconds=seconds)


def _starved(history: WatchHistory) -> Iterator[StarvedCopies]:
    since = _whole_windows(history)
    if since is None:
        return
    seconds = history.now.at - since.at
    arriving = rates_since(since.arrived, history.now.arrived, seconds)
    written = rates_since(since.written, history.now.written, seconds)
    sent = sent_by(history, since)
    came: defaultdict[LinkEnd, float] = defaultdict(float)
    wrote: defaultdict[LinkEnd, float] = defaultdict(float)
    limited = throttles(history.links, history.reading.throttle)
    for link, rates in limited.items():
        for end in end_limits({link: rates}):
            came[end] += arriving.get(link, 0.0)
            wrote[end] += written.get(link, 0.0)
    starved_leader = False
    # Leaders come first, because a starved leader also explains slow followers.
    limits = sorted(end_limits(limited).items(), key=lambda one: (one[0].side is ThrottleSide.FOLLOWER, one[0].broker))
    for end, rate in limits:
        (side, broker), copied = end, came[end]
        used = sent.get(broker, 0.0) if side is ThrottleSide.LEADER else copied
        behind = copied - wrote[end] <= _NO_PROGRESS * rate
        if side is ThrottleSide.FOLLOWER and rate == PAUSED_RATE:
            continue
        if used < _AT_THE_RATE * rate or not behind or (side is ThrottleSide.FOLLOWER and starved_leader):
            continue
        if side is ThrottleSide.LEADER:
            starved_leader = True
        yield StarvedCopies(
            broker=broker,
            side=side,
            rate=int(rate),
            used=used,
            followers=max(0.0, used - copied),
            written=wrote[end],
        )


def _whole_windows(history: WatchHistory) -> WatchSample | None:
    """Return a sample about three quota windows old, or else two or one, because copies arrive in bursts of one window.
    Returns None if the samples cover less than one window.
    """
    for count in (3, 2, 1):
        if history.now.at - history.samples[0].at >= count * QUOTA_WINDOW:
            return window(history, count * QUOTA_WINDOW)
    return None


def _caught(history: WatchHistory) -> Iterator[CaughtReplica]:
    now = history.reading.at
    found: list[ReplicaId] = sorted(r for r, since in history.caught.items() if now - since >= _CAUGHT_SECONDS)
    if found:
        yield CaughtReplica(partition=found[0][0], broker=found[0][1], more=len(found) - 1)


def _idle_log_dirs(history: WatchHistory) -> Iterator[IdleLogDir]:
    logs, now = history.reading.logs, history.reading.at
    if logs is None:
        return
    for replica, (_, since) in sorted(history.futures.items()):
        if now - since >= _IDLE_SECONDS:
            name, broker = replica
            path = logs.futures[replica].log_dir
            rate = history.reading.throttle.log_dir_rates.get(broker)
            yield IdleLogDir(partition=name, broker=broker, log_dir=path, seconds=now - since, rate=rate)


def _last(history: WatchHistory, shown: WatchView) -> Iterator[LastPartition]:
    for number, since in sorted(history.alone.items()):
        move, seconds = shown.moves[number], history.reading.at - since
        if move.partitions < 2 or move.done < move.partitions - 1 or seconds < _ALONE_SECONDS:
            continue
        copy = next(copy for copy in history.copies if copy.move == number and not copy.done)
        yield LastPartition(
            run=move.run,
            partition=copy.partition,
            destination=copy.destination,
            left=copy.left,
            seconds=seconds,
            seconds_left=move.seconds_left,
        )


def _left_over(history: WatchHistory, shown: WatchView) -> Iterator[ThrottleLeft | RunOpen]:
    throttle = history.reading.throttle
    for number, move in enumerate(shown.moves):
        watched = history.moves[number]
        if not move.ended:
            continue
        if watched.open:
            yield ThrottleLeft(run=watched.run) if watched.throttled else RunOpen(run=watched.run)
        elif any(name in watched.targets for name, _ in throttle.leaders | throttle.followers):
            yield ThrottleLeft(run=None)


def _silent(history: WatchHistory, shown: WatchView) -> Iterator[NothingArrives]:
    if history.reading.logs is None:
        return
    for number, move in enumerate(shown.moves):
        seconds = history.reading.at - history.arrival.get(number, history.reading.at)
        if move.moving and move.left != 0 and seconds >= _IDLE_SECONDS:
            yield NothingArrives(run=move.run, seconds=seconds, left=move.left)
