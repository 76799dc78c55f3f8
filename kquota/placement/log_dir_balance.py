"""Plans moves between the log dirs of one broker (KIP-113), so that each holds about the same number of bytes.

The code uses `balance`, with each log dir as a broker and each replica as a partition with one replica. If the result
reaches the band and there are few replicas, the search in `cheapest` then looks for moves with fewer bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Final

from kquota.errors import Parameter, Refused
from kquota.pace.disk_space import Figures
from kquota.placement.balance import BalanceBand, level
from kquota.placement.cheapest import Movable, cheapest
from kquota.placement.cluster import Broker, ClusterLayout, Disk
from kquota.placement.draft import MoveReason, PlacementDraft
from kquota.placement.goal import DISK_LIMIT, TOLERANCE, Goal
from kquota.placement.lower_bound import LowerBound
from kquota.placement.planned import LeftPartition
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.sizes.replica import LogDir, partition_sizes
from kquota.terms import BrokerId, TopicPartition

_MOST_ROUNDS: Final = 10
"""The maximum number of rounds of leveling. Two rounds are usually enough."""
_MOST_PAIRED: Final = 100
"""The maximum number of moves that `_needed` checks. More moves have too many pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirGoal:
    """The goal: each log dir of `broker` holds about the same number of bytes. Only replicas of `topics` move.

    `tolerance` and `disk_limit` are those of `Goal`, for a log dir and its volume.
    """

    broker: BrokerId
    topics: frozenset[str]
    tolerance: Fraction = TOLERANCE
    disk_limit: Fraction = DISK_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirMove:
    """One replica that moves to another log dir of its broker. `size` is the number of bytes to copy."""

    partition: TopicPartition
    size: int
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirChange:
    """One log dir before and after the moves: the number of its replicas and their bytes.

    `replicas_after`, `after` and `incoming` include the copies that are already under way.
    """

    path: str
    closed: str | None
    """The reason why the plan ignores the log dir, or None if the plan uses it."""
    replicas_before: int
    replicas_after: int
    before: int
    """The bytes now, including those of unfinished copies."""
    after: int
    incoming: int
    """The bytes that the log dir receives before old replicas are deleted."""
    disk: Disk | None
    """The volume of the log dir, or None if its size is unknown."""

    def share(self, grown: int) -> float | None:
        """Return the used fraction of the volume after `grown` more bytes, or None if its size is unknown or 0."""
        return None if self.disk is None else self.disk.share(grown)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirsPlanned:
    """The result of `balanced`. `moves` are sorted by topic and partition, `dirs` by path."""

    broker: BrokerId
    moves: tuple[LogDirMove, ...]
    dirs: tuple[LogDirChange, ...]
    left: tuple[LeftPartition, ...]
    """The partitions of the goal's topics that cannot move now, and the reasons."""
    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]]
    """The brokers of all replicas of each partition that moves, as Kafka's plan format requires."""
    least: LowerBound
    band: BalanceBand
    """The band that each log dir should reach."""

    @property
    def bytes(self) -> int:
        """The total bytes to copy."""
        return sum(move.size for move in self.moves)

    @property
    def plan(self) -> Plan:
        """The plan in the format of kafka-reassign-partitions. Only the log dirs of this broker are named."""
        return Plan(
            targets=self.replicas, log_dirs={(move.partition, self.broker): move.destination for move in self.moves}
        )

    @property
    def rollback(self) -> Plan:
        """The plan that restores the previous log dirs."""
        return Plan(targets=self.replicas, log_dirs={(move.partition, self.broker): move.source for move in self.moves})


def balanced(
    goal: LogDirGoal, log_dirs: Iterable[LogDir], partitions: Mapping[TopicPartition, PartitionReplicas]
) -> LogDirsPlanned:
    """Return the moves between the log dirs of the goal's broker. `log_dirs` may include log dirs of other brokers.

    Cordoned and offline log dirs are ignored. Partitions that are already being moved stay, and `left` has the reason.
    Raises Refused if fewer than two log dirs are usable.
    """
    dirs = sorted((log_dir for log_dir in log_dirs if log_dir.broker == goal.broker), key=lambda found: found.path)
    usable = [log_dir for log_dir in dirs if _closed(log_dir) is None]
    _check(goal, dirs, usable)
    under_way = _under_way(dirs)
    layout = _layout(usable, under_way)
    everything = Goal(brokers=frozenset(layout.brokers), topics=goal.topics, balance=True, disk_limit=goal.disk_limit)
    draft = PlacementDraft(layout, everything)
    draft.room = _rooms(draft.room, usable)
    movable, left = _movable(goal, draft.names, under_way, partitions)
    loads = dict(draft.bytes)
    capacities = {place: _capacity(loads[place], draft.room[place]) for place in loads}
    band = _band(loads, capacities, goal.tolerance)
    least = _least(loads, capacities, band)
    level(draft, everything, movable, band)
    for _ in range(_MOST_ROUNDS):
        new_places = _needed(draft, _cheapest(draft, movable, loads, band), loads, band)
        if not _set_places(draft, new_places):
            break
        level(draft, everything, movable, band)  # a move may help only after other moves are left out
    moves = tuple(
        LogDirMove(
            partition=draft.names[p],
            size=draft.sizes[p],
            source=usable[draft.now[p].replicas[0]].path,
            destination=usable[place].path,
        )
        for p, place in sorted(new_places.items())
    )
    return LogDirsPlanned(
        broker=goal.broker,
        moves=moves,
        dirs=tuple(_change(log_dir, moves, under_way) for log_dir in dirs),
        left=left,
        replicas={move.partition: partitions[move.partition].replicas for move in moves},
        least=least,
        band=band,
    )


def _closed(log_dir: LogDir) -> str | None:
    if log_dir.error is not None:
        return f"offline: {log_dir.error}"
    return "cordoned" if log_dir.cordoned else None


def _check(goal: LogDirGoal, dirs: Sequence[LogDir], usable: Sequence[LogDir]) -> None:
    if len(usable) > 1:
        return
    names = ", ".join(log_dir.path for log_dir in dirs) or "none"
    if len(dirs) < 2:
        raise Refused(
            Parameter("balance_log_dirs"),
            f" {goal.broker}: the broker has fewer than two log dirs ({names}). Give a broker with several log dirs",
        )
    closed = "; ".join(f"{log_dir.path} is {why}" for log_dir in dirs if (why := _closed(log_dir)) is not None)
    raise Refused(
        Parameter("balance_log_dirs"),
        f" {goal.broker}: fewer than two log dirs accept replicas ({closed}). Uncordon or repair a log dir first",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copying:
    """A replica that the broker is already copying to another log dir. `left` is the number of bytes still to copy."""

    destination: str
    size: int
    left: int


def _under_way(dirs: Sequence[LogDir]) -> dict[TopicPartition, _Copying]:
    sizes = partition_sizes(dirs)
    found = {}
    for log_dir in dirs:
        for replica in log_dir.replicas:
            if replica.future:
                size = max(replica.size, sizes.get(replica.partition, 0))
                found[replica.partition] = _Copying(destination=log_dir.path, size=size, left=size - replica.size)
    return found


def _layout(dirs: Sequence[LogDir], under_way: Mapping[TopicPartition, _Copying]) -> ClusterLayout:
    """Return the log dirs as a cluster: each log dir is a broker, and its position in `dirs` is the broker id."""
    numbers = {log_dir.path: BrokerId(number) for number, log_dir in enumerate(dirs)}
    held = {
        replica.partition: (numbers[log_dir.path], replica.size)
        for log_dir in dirs
        for replica in log_dir.replicas
        if replica.partition not in under_way
    }
    left: Counter[Figures] = Counter()
    for name, copy in under_way.items():
        if copy.destination in numbers:
            held[name] = (numbers[copy.destination], copy.size)
            left[dirs[numbers[copy.destination]].volume] += copy.left
    return ClusterLayout(
        brokers={BrokerId(number): Broker(disk=_disk(d, left[d.volume])) for number, d in enumerate(dirs)},
        partitions={
            name: PartitionReplicas(replicas=(place,), leader=place, isr=(place,)) for name, (place, _) in held.items()
        },
        sizes={name: size for name, (_, size) in held.items()},
    )


def _disk(log_dir: LogDir, pending: int = 0) -> Disk | None:
    total, usable = log_dir.volume
    return None if total is None or usable is None else Disk(total=total, used=total - usable, pending=pending)


def _rooms(rooms: Mapping[BrokerId, int | None], dirs: Sequence[LogDir]) -> dict[BrokerId, int | None]:
    """Return the room of each log dir. Log dirs with the same total and usable bytes may share one volume, so they
    divide its room equally.
    """
    sharing = Counter(log_dir.volume for log_dir in dirs)
    return {place: None if room is None else room // sharing[dirs[place].volume] for place, room in rooms.items()}


def _movable(
    goal: LogDirGoal,
    names: Sequence[TopicPartition],
    under_way: Mapping[TopicPartition, _Copying],
    partitions: Mapping[TopicPartition, PartitionReplicas],
) -> tuple[list[int], tuple[LeftPartition, ...]]:
    """Return the indexes in `names` of the replicas that may move, and the replicas that must wait.

    The log of a replica that was moved to another broker is in neither, because the goal's broker is about to delete
    it.
    """
    movable, left = [], []
    numbers = {name: p for p, name in enumerate(names)}
    for name in sorted(numbers.keys() | under_way.keys()):
        now = partitions.get(name)
        if now is None or goal.broker not in now.replicas or name.topic not in goal.topics:
            continue
        if name in under_way:
            why = "is already being copied to another log dir. Plan again when that copy is complete"
            left.append(LeftPartition(partition=name, why=why))
        elif now.moving:
            left.append(
                LeftPartition(partition=name, why="is already being moved. Plan again when that move has finished")
            )
        else:
            movable.append(numbers[name])
    return movable, tuple(left)


def _capacity(load: int, room: int | None) -> int | None:
    return None if room is None else load + max(0, room)


def _band(loads: Mapping[BrokerId, int], capacities: Mapping[BrokerId, int | None], tolerance: Fraction) -> BalanceBand:
    """Return the band. Its mean leaves out each log dir that is too small to reach the band, and the bytes that this
    log dir can hold.
    """
    full: set[BrokerId] = set()
    while True:
        mean = Fraction(sum(loads.values()) - sum(capacities[place] or 0 for place in full), len(loads) - len(full))
        band = BalanceBand.around(mean, tolerance)
        small = {place for place, most in capacities.items() if most is not None and most < band.low} - full
        if not small:
            return band
        full |= small


def _least(loads: Mapping[BrokerId, int], capacities: Mapping[BrokerId, int | None], band: BalanceBand) -> LowerBound:
    lack = 0
    for place, load in loads.items():
        most = capacities[place]
        lack += max(0, (band.low if most is None else min(band.low, most)) - load)
    return LowerBound(forced=0, lack=lack, excess=sum(max(0, load - band.high) for load in loads.values()))


def _cheapest(
    draft: PlacementDraft, movable: Iterable[int], loads: Mapping[BrokerId, int], band: BalanceBand
) -> dict[int, BrokerId]:
    """Return the moves of the draft, unless the search finds moves with fewer bytes that also reach the band."""
    new_places = {p: draft.replicas[p][0] for p in draft.copies}
    touched = {*new_places.values(), *(draft.now[p].replicas[0] for p in new_places)}
    capacities = {place: _capacity(load, draft.room[place]) for place, load in loads.items()}
    small = {place for place, most in capacities.items() if most is not None and most < band.low} - touched
    others = {place: load for place, load in loads.items() if place not in small}
    if not new_places or any(band.off(draft.bytes[place]) for place in others):
        return new_places
    placed = ((p, draft.now[p].replicas[0]) for p in movable)
    replicas = [Movable(number=p, size=draft.sizes[p], place=place) for p, place in placed if place in others]
    room = {place: draft.room[place] for place in others}
    found = cheapest(replicas, others, room, band, sum(draft.sizes[p] for p in new_places))
    return new_places if found is None else found


def _needed(
    draft: PlacementDraft, new_places: Mapping[int, BrokerId], loads: Mapping[BrokerId, int], band: BalanceBand
) -> dict[int, BrokerId]:
    """Return `new_places` without the single moves and pairs of moves that do not bring the loads closer to the band.

    More than `_MOST_PAIRED` moves are returned unchanged.
    """
    needed = dict(new_places)
    if len(needed) > _MOST_PAIRED:
        return needed
    after = dict(loads)
    for p, place in needed.items():
        after[draft.now[p].replicas[0]] -= draft.sizes[p]
        after[place] += draft.sizes[p]
    # Check all moves again after a removal, because another move can become unnecessary.
    before = -1
    while len(needed) != before:
        before = len(needed)
        some_moves = (*combinations(sorted(needed), 1), *combinations(sorted(needed), 2))
        for some in sorted(some_moves, key=lambda moves: -sum(draft.sizes[p] for p in moves)):
            if not needed.keys() >= set(some):
                continue
            without = dict(after)
            for p in some:
                without[draft.now[p].replicas[0]] += draft.sizes[p]
                without[needed[p]] -= draft.sizes[p]
            if sum(map(band.off, without.values())) <= sum(map(band.off, after.values())):
                after = without
                for p in some:
                    del needed[p]
    return needed


def _set_places(draft: PlacementDraft, new_places: Mapping[int, BrokerId]) -> bool:
    changed = False
    for p in sorted(draft.copies.keys() | new_places.keys()):
        now, place = draft.replicas[p][0], new_places.get(p, draft.now[p].replicas[0])
        if now != place:
            draft.move(p, now, place, MoveReason.BALANCE)
            changed = True
    return changed


def _change(log_dir: LogDir, moves: Iterable[LogDirMove], under_way: Mapping[TopicPartition, _Copying]) -> LogDirChange:
    held = [replica for replica in log_dir.replicas if not replica.future]
    staying = [replica.size for replica in held if replica.partition not in under_way]
    arriving = [copy for copy in under_way.values() if copy.destination == log_dir.path]
    came = [move.size for move in moves if move.destination == log_dir.path]
    went = [move.size for move in moves if move.source == log_dir.path]
    return LogDirChange(
        path=log_dir.path,
        closed=_closed(log_dir),
        replicas_before=len(held),
        replicas_after=len(staying) + len(arriving) + len(came) - len(went),
        before=sum(replica.size for replica in log_dir.replicas),
        after=sum(staying) + sum(copy.size for copy in arriving) + sum(came) - sum(went),
        incoming=sum(copy.left for copy in arriving) + sum(came),
        disk=_disk(log_dir),
    )
