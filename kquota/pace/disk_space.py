"""Does what arrives fit on the disks? The worst moment is the end, when old and new copies lie side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kquota.pace.work import total

Figures: TypeAlias = tuple[int | None, int | None]
"""The total and the usable bytes of one log dir's volume, None where they are not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The volume of one log dir: total and usable bytes as DescribeLogDirs tells (KIP-827); None below Kafka 3.3."""

    broker: int
    log_dir: str
    total: int | None
    usable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What comes to one broker, or to one of its log dirs where the plan names it (`log_dir` None: the broker chooses).

    `bytes` is the size of the copies, `writes` what producers add to them, `grows` what producers add to the replicas
    that the broker holds already: bytes per second, None is unknown, never 0.
    """

    broker: int
    log_dir: str | None
    copies: int
    bytes: int
    writes: float | None
    grows: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One volume at the end of the move, in bytes; `log_dir` None: all volumes of the broker together.

    `arriving` is all that comes to the volume. `written` is what producers write until then, to old and new copies, as
    if retention deleted nothing; None is unknown, and so is `usable`. Log dirs with the very same figures are taken for
    one volume; `apart` is what is left if each has its own, as the empty disks of a new broker may.
    """

    broker: int
    log_dir: str | None
    usable: int | None
    arriving: int
    written: float | None
    apart: int | None

    @property
    def left(self) -> int | None:
        """What is usable when all copies have come and nothing else was written: below 0 they may not fit."""
        return None if self.usable is None else self.usable - self.arriving

    @property
    def worst(self) -> float | None:
        """What is usable at the worst moment, with what was written."""
        return None if self.left is None or self.written is None else self.left - self.written

    @property
    def least(self) -> float | None:
        """What is usable at the worst moment, as far as writes are known; None where `usable` is."""
        return self.left if self.worst is None else self.worst


def rooms(volumes: Iterable[Volume], arrivals: Iterable[Arrival], seconds: float | None) -> tuple[Room, ...]:
    """Of every log dir that the plan names, and of every broker that chooses one; `seconds` is the move's time.

    Where the broker chooses among its volumes, they and all that comes to them are taken together: it may yet choose a
    full one.
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


def _room(volumes: Sequence[Volume], arrivals: Sequence[Arrival], log_dir: str | None, seconds: float | None) -> Room:
    """A log dir's room, or that of the broker with all that comes to it; of one broker's volumes and arrivals."""
    own = {(v.total, v.usable) for v in volumes if v.log_dir == log_dir and v.total is not None}
    one_volume = {v.log_dir for v in volumes if (v.total, v.usable) in own} | {log_dir}
    coming = [a for a in arrivals if log_dir is None or a.log_dir in one_volume]
    arriving = sum(arrival.bytes for arrival in coming)
    chosen = [v for v in volumes if log_dir in (None, v.log_dir)]
    shared, each = (together(((v.total, v.usable) for v in chosen), apart=apart) for apart in (False, True))
    alone = sum(arrival.bytes for arrival in coming if log_dir in (None, arrival.log_dir))
    return Room(
        broker=arrivals[0].broker,
        log_dir=log_dir,
        usable=None if shared is None else shared[1],
        arriving=arriving,
        written=_written(coming, seconds),
        apart=None if each is None else each[1] - alone,
    )


def disks(volumes: Iterable[Volume]) -> dict[int, int]:
    """The bytes that each broker's volumes hold, used or not; without the brokers that do not tell all of them."""
    held: defaultdict[int, list[Figures]] = defaultdict(list)
    for volume in volumes:
        held[volume.broker].append((volume.total, volume.usable))
    return {broker: both[0] for broker, figures in held.items() if (both := together(figures)) is not None}


def together(figures: Iterable[Figures], *, apart: bool = False) -> tuple[int, int] | None:
    """The total and the usable bytes of the volumes of several log dirs; None where one is not told, or there is none.

    Log dirs with the very same figures count once unless `apart`: to count a disk twice would fill it.
    """
    found = list(figures) if apart else list(set(figures))
    known = [(whole, usable) for whole, usable in found if whole is not None and usable is not None]
    if not found or len(known) < len(found):
        return None
    return sum(whole for whole, _ in known), sum(usable for _, usable in known)


def _written(arrivals: Sequence[Arrival], seconds: float | None) -> float | None:
    """What the broker's own replicas grow by counts once, whatever comes, on whichever of its volumes."""
    written = total((arrivals[0].grows, *(arrival.writes for arrival in arrivals)))
    return None if seconds is None or written is None else seconds * written
