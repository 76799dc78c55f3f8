"""The copies of the watched moves: the new replicas of their plans, with the bytes of one reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.running_copies import missing_bytes, offsets_behind
from kquota.terms import BrokerId, ReplicaId, TopicPartition
from kquota.watch.reading import LogNumbers, WatchedMove, WatchedTopic, WatchReading, answering_brokers, same_moves

_NONE: Final[Mapping[str, Mapping[int, int]]] = {}
_NO_NUMBERS: Final[Mapping[int, int]] = {}


class CopyReading(NamedTuple):
    """One new replica of a watched move. None means unknown, never 0."""

    move: int
    """The number of the move."""
    replica: ReplicaId
    leader: BrokerId | None
    """The leader of the partition, or None if it has no leader."""
    copied: int | None
    """The bytes on the destination."""
    left: int | None
    """The missing bytes."""
    lag: int | None
    """The missing offsets."""
    source: int | None
    """The bytes on the leader. Also None if the copy is done or in sync."""
    done: bool
    """True if the partition is not moving and has its target replicas."""
    begun: bool | None
    """True if the destination has a log of the replica, or None if this is unknown."""
    submitted: bool
    """True if the partition is moving or done."""
    followers: int
    """The number of in-sync followers of the partition."""

    @property
    def partition(self) -> TopicPartition:
        """The partition that moves."""
        return self.replica[0]

    @property
    def destination(self) -> BrokerId:
        """The broker of the new replica."""
        return self.replica[1]


class _PlannedCopy(NamedTuple):
    """The fields of a copy that change only if its `WatchedTopic` changes. `number` is the partition number.
    `caught_up` is true if the copy is done or in sync.
    """

    number: int
    replica: ReplicaId
    leader: BrokerId | None
    caught_up: bool
    done: bool
    submitted: bool
    followers: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PlannedPart:
    """Successive partitions of a move that belong to one topic, and their copies.

    `state` is the topic in the reading from which the copies were calculated. It is None if the topic is missing there,
    and before the first reading.
    """

    move: int
    topic: str
    names: Sequence[TopicPartition]
    state: WatchedTopic | None
    copies: Sequence[_PlannedCopy]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedCopies:
    """The copies of all watched moves, in the order of the plans."""

    moves: tuple[WatchedMove, ...] = ()
    parts: Sequence[_PlannedPart] = ()

    def again(
        self,
        moves: Sequence[WatchedMove],
        topics: Mapping[str, WatchedTopic],
        known: Mapping[TopicPartition, Replicas],
    ) -> PlannedCopies:
        """Return the copies in these topics. If `moves` are the same as before, kquota calculates the copies again only
        for topics that have changed.

        `known` has the destinations of partitions that were seen to move, because a partition that is not moving does
        not show them. A copy is left out if its partition was deleted. It is also left out if its move was cancelled or
        the topic was created again: the partition was submitted, but is not moving and has no replica on the
        destination. If it is unknown which partitions were submitted, those that were seen to move count as submitted.
        """
        parts = (
            self.parts
            if same_moves(moves, self.moves)
            else [part for n, move in enumerate(moves) for part in _parts(n, move)]
        )
        return PlannedCopies(
            moves=tuple(moves),
            parts=[
                part
                if part.state is topics.get(part.topic)
                else _planned(part, moves[part.move], topics.get(part.topic), known)
                for part in parts
            ],
        )


def _parts(number: int, move: WatchedMove) -> Iterator[_PlannedPart]:
    for topic, names in groupby(move.targets, attrgetter("topic")):
        yield _PlannedPart(move=number, topic=topic, names=list(names), state=None, copies=())


def _planned(
    part: _PlannedPart, move: WatchedMove, state: WatchedTopic | None, known: Mapping[TopicPartition, Replicas]
) -> _PlannedPart:
    if state is None:
        return replace(part, state=None, copies=())
    copies: list[_PlannedCopy] = []
    submitted = known if move.submitted is None else move.submitted
    for name in part.names:
        now, target = state.partitions.get(name), move.targets[name]
        if now is None:
            continue
        moving = name in state.running
        done = not moving and now.replicas == target
        cancelled = not moving and not done and name in submitted
        followers = len(now.isr) - now.isr.count(now.leader) if now.leader is not None else 0
        for broker in _destinations(move, name, target, now, known, moving=moving, done=done):
            if cancelled and broker not in now.replicas:
                continue
            caught_up = done or broker in now.isr
            copies.append(
                _PlannedCopy(name.partition, (name, broker), now.leader, caught_up, done, done or moving, followers)
            )
    return replace(part, state=state, copies=copies)


def _destinations(
    move: WatchedMove,
    name: TopicPartition,
    target: Replicas,
    now: PartitionReplicas,
    known: Mapping[TopicPartition, Replicas],
    *,
    moving: bool,
    done: bool,
) -> Iterable[BrokerId]:
    sources = move.sources.get(name)
    if sources:
        return [broker for broker in target if broker not in sources]
    if moving and len(now.adding) < len(now.replicas):
        # These are the target replicas that are not in `now.before`. Calculating `now.before` would be slower.
        return [broker for broker in target if broker in now.adding or broker not in now.replicas]
    found = [broker for broker in known.get(name, ()) if broker in target]
    return found if found or done else [broker for broker in target if broker not in now.replicas]


def copies(planned: PlannedCopies, reading: WatchReading) -> Iterator[CopyReading]:
    """Yield the copies with their bytes, in the order of the plans."""
    answering = answering_brokers(reading)
    sizes: LogNumbers = {} if reading.logs is None else reading.logs.sizes
    ends: LogNumbers = {} if reading.logs is None else reading.logs.ends
    starts: LogNumbers = {} if reading.logs is None else reading.logs.starts
    failed = set() if reading.logs is None else {b for (b, _), space in reading.logs.dirs.items() if space.error}
    made = CopyReading._make
    for part in planned.parts:
        move, topic = part.move, part.topic
        for number, replica, leader, caught_up, done, submitted, followers in part.copies:
            destination = replica[1]
            own = sizes.get(destination, _NONE).get(topic, _NO_NUMBERS).get(number)
            if caught_up:
                yield made((move, replica, leader, own, 0, 0, None, done, True, submitted, followers))
                continue
            is_known = destination in answering and (own is not None or destination not in failed)
            begun = own is not None if is_known else None
            copied = 0 if begun is False else own
            left = lag = size = None
            if leader is not None:
                size = sizes.get(leader, _NONE).get(topic, _NO_NUMBERS).get(number)
            if size is not None:
                end = ends.get(leader, _NONE).get(topic, _NO_NUMBERS).get(number)  # type: ignore[arg-type]  # not None
                if begun is False:
                    lag = end
                elif own is not None:
                    lag = offsets_behind(ends.get(destination, _NONE).get(topic, _NO_NUMBERS).get(number), end)
                offsets = None
                if copied is not None and copied >= size and end is not None:
                    start = starts.get(leader, _NONE).get(topic, _NO_NUMBERS).get(number)  # type: ignore[arg-type]  # not None
                    offsets = None if start is None else end - start
                left = missing_bytes(copied, size, lag, offsets)
            yield made((move, replica, leader, copied, left, lag, size, False, begun, submitted, followers))


def outgrown(found: Iterable[CopyReading]) -> dict[BrokerId, set[TopicPartition]]:
    """Return, for each leader, the partitions with a copy that lacks offsets although it is at least as large as the
    leader's log, for example because the leader deleted old segments. The missing bytes of this copy depend on the
    first offset of the leader.
    """
    leaders: defaultdict[BrokerId, set[TopicPartition]] = defaultdict(set)
    for copy in found:
        if copy.source and copy.lag and copy.copied is not None and copy.copied >= copy.source:
            assert copy.leader is not None  # it reported the size of its log
            leaders[copy.leader].add(copy.partition)
    return dict(leaders)
