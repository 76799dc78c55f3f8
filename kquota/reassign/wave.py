"""How much of a plan can be handed over at once: throttled-replica lists, and ZooKeeper's nodes, hold only so much."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import NextStep, Refused
from kquota.reassign.moves import Move, list_entries
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import EVERY_REPLICA, FOLLOWER_REPLICAS, LEADER_REPLICAS, LONGEST_VALUE

_MOVE_BYTES: Final = 48
"""Of a partition in the JSON that is handed over, without its topic's name and its replicas."""
_REPLICA_BYTES: Final = 11


def wanted(moving: Iterable[Move], whole_topics: Collection[str] = ()) -> dict[Setting, tuple[str, ...]]:
    """The list entries of the moves, and `*` for each of `whole_topics`."""
    return {
        setting: (EVERY_REPLICA,) if setting.name in whole_topics else needed
        for setting, needed in list_entries(moving).items()
    }


def too_long(moving: Iterable[Move], now: Mapping[Setting, str | None]) -> frozenset[str]:
    """The topics of which a list would be longer than a broker can hold, if all were handed over at once."""
    rooms = {setting: _Room.of(now.get(setting)) for setting in lists_of(moving)}
    return frozenset(s.name for s, new in list_entries(moving).items() if not rooms[s].holds(new))


def wave(moving: Sequence[Move], now: Mapping[Setting, str | None], largest: int | None) -> tuple[Move, ...]:
    """The moves to hand over next, in the plan's order: as many as fit. Those under way already are always among them.

    `now` are the lists as they are, of topics that are to be throttled by entries; a topic of which no list is given
    needs none. `largest` is how many bytes of moves the cluster takes at once, None for any.
    """
    rooms = {setting: _Room.of(text) for setting, text in now.items() if setting.is_list}
    chosen, size = [], 0
    for move in moving:
        new = _entries(move, rooms)
        if move.submitted:
            fits = True
        else:
            size_then = size + _bytes(move)
            fits = all(rooms[s].holds(those) for s, those in new.items()) and (
                largest is None or size_then <= largest or not size
            )
            size = size_then if fits else size
        if fits:
            chosen.append(move)
            for setting, those in new.items():
                rooms[setting].take(those)
    return tuple(chosen)


def first_full(moving: Iterable[Move], now: Mapping[Setting, str | None]) -> Setting | None:
    """The first list, in the plan's order, that has no room for a move by itself; None where each of them fits."""
    rooms = {setting: _Room.of(text) for setting, text in now.items() if setting.is_list}
    full = (s for move in moving for s, new in sorted(_entries(move, rooms).items()) if not rooms[s].holds(new))
    return next(full, None)


def no_room(full: Setting) -> Refused:
    """The error for a list that is full of others' entries."""
    why = f"{full} has no room for another entry. Remove entries that are no longer needed ("
    return Refused(why, NextStep.EXAMINE_THROTTLES, " finds them)")


def lists_of(moving: Iterable[Move]) -> tuple[Setting, ...]:
    """Both lists of every topic of which a replica is to be copied, ordered."""
    topics = sorted({move.partition.topic for move in moving if move.destinations})
    return tuple(Setting.of_topic(topic, key) for topic in topics for key in (FOLLOWER_REPLICAS, LEADER_REPLICAS))


@dataclass(slots=True)
class _Room:
    """What still fits into one list."""

    present: set[str]
    bytes: int
    everything: bool = field(init=False)

    def __post_init__(self) -> None:
        self.everything = EVERY_REPLICA in self.present

    @classmethod
    def of(cls, text: str | None) -> _Room:
        present = entries(text)
        return cls(present=set(present), bytes=len(",".join(present).encode()))

    def holds(self, new: Collection[str]) -> bool:
        return self.everything or self.bytes + self._more(new) <= LONGEST_VALUE

    def take(self, new: Collection[str]) -> None:
        self.bytes += self._more(new)
        self.present.update(new)

    def _more(self, new: Collection[str]) -> int:
        size = sum(len(entry) + 1 for entry in new if entry not in self.present)
        return size - 1 if size and not self.present else size


def _entries(move: Move, rooms: Mapping[Setting, _Room]) -> dict[Setting, list[str]]:
    if not move.destinations:
        return {}
    topic, number = move.partition.topic, move.partition.partition
    found = {
        Setting.of_topic(topic, LEADER_REPLICAS): [f"{number}:{b}" for b in move.sources],
        Setting.of_topic(topic, FOLLOWER_REPLICAS): [f"{number}:{b}" for b in move.destinations],
    }
    return {setting: those for setting, those in found.items() if setting in rooms}


def _bytes(move: Move) -> int:
    return _MOVE_BYTES + len(move.partition.topic) + _REPLICA_BYTES * len(move.target)
