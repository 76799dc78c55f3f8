"""The choice of the moves to submit next. Full lists, the size of a znode and the operator's limits can delay moves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kquota.errors import NextStep, Refused
from kquota.reassign.moves import Move, list_entries
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import EVERY_REPLICA, FOLLOWER_REPLICAS, LEADER_REPLICAS, LONGEST_VALUE, BrokerId, TopicPartition

_MOVE_BYTES: Final = 48
"""Bytes of a partition in the submitted JSON, without its replicas and the name of its topic."""
_REPLICA_BYTES: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLimits:
    """The operator's limits on the moves that run at the same time. None means no limit."""

    partitions: int | None = None
    """The maximum number of partitions that move."""
    per_broker: int | None = None
    """The maximum number of replicas that are copied to one broker."""
    in_flight: int | None = None
    """The maximum number of bytes that are copied. A partition that alone exceeds this number, or has an unknown size,
    moves when nothing else is copied.
    """

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.partitions, self.per_broker, self.in_flight))


UNLIMITED: Final = MoveLimits()
NO_SIZES: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


def wanted(moving: Iterable[Move], whole_topics: Collection[str] = ()) -> dict[Setting, tuple[str, ...]]:
    """Return the list entries of the moves, with `*` for each of `whole_topics`."""
    return {
        setting: (EVERY_REPLICA,) if setting.name in whole_topics else needed
        for setting, needed in list_entries(moving).items()
    }


def too_long(moving: Iterable[Move], now: Mapping[Setting, str | None]) -> frozenset[str]:
    """Return the topics whose lists would be too long for a broker if all moves were submitted at once. `now` has the
    current lists. A missing list counts as unset.
    """
    return frozenset(s.name for s, new in list_entries(moving).items() if not _Room.of(now.get(s)).holds(new))


def wave(
    moving: Sequence[Move],
    now: Mapping[Setting, str | None],
    largest: int | None,
    limits: MoveLimits = UNLIMITED,
    sizes: Mapping[TopicPartition, int] = NO_SIZES,
) -> tuple[Move, ...]:
    """Return the running moves, and each other move that can be submitted beside them, in the order of the plan.

    `now` has the lists of the topics that are throttled replica by replica, not with `*`. The other topics need no room
    in a list. `largest` is the maximum number of bytes in one submission, or None without a limit. A submission of a
    single move may be larger. `sizes` are the known sizes of partitions in bytes.
    """
    if largest is None and not limits and not (now and too_long(moving, now)):
        return tuple(moving)  # all moves fit together, and to check each of them alone takes five times as long
    rooms = {setting: _Room.of(text) for setting, text in now.items() if setting.is_list}
    load = MoveLoad(limits=limits)
    for move in moving:
        if move.submitted:
            load.take(move.destinations, _size(move, sizes))
    chosen, size = [], 0
    for move in moving:
        if not move.submitted and not load.holds(move.destinations, _size(move, sizes)):
            continue
        new = _entries(move, rooms)
        if not move.submitted:
            fits = all(rooms[s].holds(those) for s, those in new.items()) and (
                largest is None or not size or size + _bytes(move) <= largest
            )
            if not fits:
                continue
            size += _bytes(move)
            load.take(move.destinations, _size(move, sizes))
        chosen.append(move)
        for setting, those in new.items():
            rooms[setting].take(those)
    return tuple(chosen)


def first_full(moving: Iterable[Move], now: Mapping[Setting, str | None]) -> Setting | None:
    """Return the first list (in the order of the plan) without room for a move, or None if each move fits alone."""
    rooms = {setting: _Room.of(text) for setting, text in now.items() if setting.is_list}
    full = (s for move in moving for s, new in sorted(_entries(move, rooms).items()) if not rooms[s].holds(new))
    return next(full, None)


class ListFull(Refused):
    """A throttled replica list has no room for the entries of a single move. `so` continues the sentence in the
    message, for example `, so nothing was written`.
    """

    def __init__(self, full: Setting, so: str = "") -> None:
        why = f"{full} has no room for another entry{so}. Remove entries that are no longer needed ("
        super().__init__(why, NextStep.EXAMINE_THROTTLES, " finds them)")


def lists_of(moving: Iterable[Move]) -> tuple[Setting, ...]:
    """Return both lists of every topic with a replica to copy, sorted by topic."""
    topics = sorted({move.partition.topic for move in moving if move.destinations})
    return tuple(Setting.of_topic(topic, key) for topic in topics for key in (FOLLOWER_REPLICAS, LEADER_REPLICAS))


@dataclass(slots=True)
class _Room:
    present: set[str]
    bytes: int

    @classmethod
    def of(cls, text: str | None) -> _Room:
        present = entries(text)
        return cls(present=set(present), bytes=len(",".join(present).encode()))

    def holds(self, new: Collection[str]) -> bool:
        return EVERY_REPLICA in self.present or self.bytes + self._more(new) <= LONGEST_VALUE

    def take(self, new: Collection[str]) -> None:
        self.bytes += self._more(new)
        self.present.update(new)

    def _more(self, new: Collection[str]) -> int:
        size = sum(len(entry) + 1 for entry in new if entry not in self.present)
        return size - 1 if size and not self.present else size


@dataclass(slots=True, kw_only=True)
class MoveLoad:
    """The moves that run at the same time, compared with the operator's limits.

    The bytes of a move are the size of its partition times the number of destinations. An unknown size counts as
    infinite.
    """

    limits: MoveLimits
    partitions: int = 0
    copies: Counter[BrokerId] = field(default_factory=Counter)
    bytes: float = 0
    unknown: int = 0
    """The number of running moves of unknown size."""

    @property
    def full(self) -> bool:
        """True if no further partition may start."""
        return self.limits.partitions is not None and self.partitions >= self.limits.partitions

    def holds(self, destinations: Collection[BrokerId], size: float) -> bool:
        """Return True if a move of `size` bytes to these brokers may start. `size` is infinite if it is unknown."""
        per_broker, in_flight = self.limits.per_broker, self.limits.in_flight
        return (
            not self.full
            and (per_broker is None or all(self.copies[broker] < per_broker for broker in destinations))
            and (in_flight is None or not self._in_flight or self._in_flight + size <= in_flight)
        )

    def take(self, destinations: Collection[BrokerId], size: float) -> None:
        """Add a move that starts."""
        self.partitions += 1
        self.copies.update(destinations)
        self.bytes += 0 if math.isinf(size) else size
        self.unknown += math.isinf(size)

    def leave(self, destinations: Collection[BrokerId], size: float) -> None:
        """Remove a move that has ended."""
        self.partitions -= 1
        self.copies.subtract(destinations)
        self.bytes -= 0 if math.isinf(size) else size
        self.unknown -= math.isinf(size)

    @property
    def _in_flight(self) -> float:
        return math.inf if self.unknown else self.bytes


def _size(move: Move, sizes: Mapping[TopicPartition, int]) -> float:
    return len(move.destinations) * sizes.get(move.partition, math.inf) if move.destinations else 0


def _entries(move: Move, rooms: Mapping[Setting, _Room]) -> dict[Setting, tuple[str, ...]]:
    return {setting: those for setting, those in list_entries([move]).items() if setting in rooms}


def _bytes(move: Move) -> int:
    return _MOVE_BYTES + len(move.partition.topic) + _REPLICA_BYTES * len(move.target)
