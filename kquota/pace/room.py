"""Does what arrives fit on the disks? The worst moment is the end, when old and new copies lie side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


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

    `written` is what producers write until then, to old and new copies, as if retention deleted nothing; None is
    unknown, and so is `usable`.
    """

    broker: int
    log_dir: str | None
    usable: int | None
    arriving: int
    written: float | None

    @property
    def left(self) -> int | None:
        """What is usable when all copies have come and nothing else was written: below 0 they cannot come."""
        return None if self.usable is None else self.usable - self.arriving

    @property
    def worst(self) -> float | None:
        """What is usable at the worst moment, with what was written."""
        return None if self.left is None or self.written is None else self.left - self.written


def rooms(volumes: Iterable[Volume], arrivals: Iterable[Arrival], seconds: float | None) -> tuple[Room, ...]:
    """Of every broker that something comes to, or of its log dir where the plan names it; `seconds` is the move's time.

    Where the broker chooses among its volumes, they are taken together: it may yet choose a full one.
    """
    held: defaultdict[int, list[Volume]] = defaultdict(list)
    for volume in volumes:
        held[volume.broker].append(volume)
    return tuple(
        Room(
            broker=arrival.broker,
            log_dir=arrival.log_dir,
            usable=_usable(held[arrival.broker], arrival.log_dir),
            arriving=arrival.bytes,
            written=_written(arrival, seconds),
        )
        for arrival in sorted(arrivals, key=lambda a: (a.broker, a.log_dir or ""))
    )


def disks(volumes: Iterable[Volume]) -> dict[int, int]:
    """The bytes that each broker's volumes hold, used or not; without the brokers that do not tell all of them."""
    held: defaultdict[int, set[tuple[int | None, int | None]]] = defaultdict(set)
    for volume in volumes:
        held[volume.broker].add((volume.total, volume.usable))
    known = {broker: [total for total, _ in found if total is not None] for broker, found in held.items()}
    return {broker: sum(totals) for broker, totals in known.items() if len(totals) == len(held[broker])}


def _usable(volumes: Iterable[Volume], log_dir: str | None) -> int | None:
    """Two log dirs with the very same figures are one volume: to count a disk twice would fill it."""
    found = {(v.total, v.usable) for v in volumes if log_dir is None or v.log_dir == log_dir}
    known = [usable for total, usable in found if total is not None and usable is not None]
    return sum(known) if found and len(known) == len(found) else None


def _written(arrival: Arrival, seconds: float | None) -> float | None:
    if seconds is None or arrival.writes is None or arrival.grows is None:
        return None
    return seconds * (arrival.writes + arrival.grows)
