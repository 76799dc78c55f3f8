"""The disk space that copies need. Disks are fullest at the end of a move, when they hold old and new replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kquota.measure import total

Figures: TypeAlias = tuple[int | None, int | None]
"""The total and the usable bytes of one log dir's volume. Each is None if the broker does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The volume of one log dir: total and usable bytes as in DescribeLogDirs (KIP-827).

    Both are None if the broker does not report them, for example before Kafka 3.3.
    """

    broker: int
    log_dir: str
    total: int | None
    usable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The copies for one broker, or for one of its log dirs. Rates are in bytes per second."""

    broker: int
    log_dir: str | None
    """None if the broker chooses the log dir."""
    copies: int
    bytes: int
    """The bytes to copy."""
    writes: float | None
    """The rate at which producers write to the copies. None means unknown, never 0."""
    grows: float | None
    """The rate at which producers write to replicas that the broker already holds. None means unknown, never 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeSpace:
    """The space of one volume at the end of the move, in bytes. None means unknown.

    Log dirs with the same total and usable bytes count as one volume.
    """

    broker: int
    log_dir: str | None
    """None for all volumes of the broker together."""
    usable: int | None
    """The usable space before the move."""
    arriving: int
    """The bytes to copy to the volume."""
    written: float | None
    """The bytes that producers write during the move to the copies and to all old replicas of the broker, if retention
    deletes nothing.
    """
    apart: int | None
    """The space left, without writes, if each log dir has a separate volume, as on the empty disks of a new broker."""

    @property
    def left(self) -> int | None:
        """The usable bytes when all copies are complete, without writes. None if `usable` is None.

        If the result is below 0, the copies may not fit.
        """
        return None if self.usable is None else self.usable - self.arriving

    @property
    def worst(self) -> float | None:
        """The usable bytes when the volume is fullest, with writes. None if `usable` or `written` is None."""
        return None if self.left is None or self.written is None else self.left - self.written

    @property
    def least(self) -> float | None:
        """The usable bytes when the volume is fullest, with writes if they are known. None if `usable` is None."""
        return self.left if self.worst is None else self.worst


def rooms(volumes: Iterable[Volume], arrivals: Iterable[Arrival], seconds: float | None) -> tuple[VolumeSpace, ...]:
    """Return the room of each log dir that the plan names, and of each broker that chooses a log dir itself. The result
    is sorted by broker and log dir.

    `seconds` is the duration of the move, or None if it is unknown. If a broker chooses among its volumes, these
    volumes and all copies for the broker count together, so one volume may still become full.
    """
    held: defaultdict[int, list[Volume]] = defaultdict(list)
    for volume in volumes:
        held[volume.broker].append(volume)
    come: defaultdict[int, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        come[arrival.broker].append(arrival)
    return tuple(
        _room(held[broker], come[broker], log_dir, seconds)
        for broker in sorted(come)
        for log_dir in sorted({arrival.log_dir for arrival in come[broker]}, key=lambda name: name or "")
    )


def _room(
    volumes: Sequence[Volume], arrivals: Sequence[Arrival], log_dir: str | None, seconds: float | None
) -> VolumeSpace:
    own = {(v.total, v.usable) for v in volumes if v.log_dir == log_dir and v.total is not None}
    one_volume = {v.log_dir for v in volumes if (v.total, v.usable) in own} | {log_dir}
    coming = [a for a in arrivals if log_dir is None or a.log_dir in one_volume]
    arriving = sum(arrival.bytes for arrival in coming)
    chosen = [v for v in volumes if log_dir in (None, v.log_dir)]
    shared, each = (together(((v.total, v.usable) for v in chosen), apart=apart) for apart in (False, True))
    alone = sum(arrival.bytes for arrival in coming if log_dir in (None, arrival.log_dir))
    return VolumeSpace(
        broker=arrivals[0].broker,
        log_dir=log_dir,
        usable=None if shared is None else shared[1],
        arriving=arriving,
        written=_written(coming, seconds),
        apart=None if each is None else each[1] - alone,
    )


def disks(volumes: Iterable[Volume]) -> dict[int, int]:
    """Return the total bytes of each broker's volumes, as in `together`. A broker that does not report the total and
    the usable bytes of every volume is left out.
    """
    held: defaultdict[int, list[Figures]] = defaultdict(list)
    for volume in volumes:
        held[volume.broker].append((volume.total, volume.usable))
    return {broker: both[0] for broker, figures in held.items() if (both := together(figures)) is not None}


def together(figures: Iterable[Figures], *, apart: bool = False) -> tuple[int, int] | None:
    """Return the total and usable bytes of several log dirs together. None if a value is unknown, or without log dirs.

    Log dirs with the same total and usable bytes count once, because they may share a disk. With `apart`, each counts.
    """
    found = list(figures) if apart else list(set(figures))
    known = [(whole, usable) for whole, usable in found if whole is not None and usable is not None]
    if not found or len(known) < len(found):
        return None
    return sum(whole for whole, _ in known), sum(usable for _, usable in known)


def _written(arrivals: Sequence[Arrival], seconds: float | None) -> float | None:
    """Return the bytes that are written in `seconds`, or None if they are unknown. `grows` counts only once, because it
    is the same for all arrivals at one broker.
    """
    written = total((arrivals[0].grows, *(arrival.writes for arrival in arrivals)))
    return None if seconds is None or written is None else seconds * written
