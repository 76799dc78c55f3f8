"""The work of a move, independent of the throttle: the bytes that each leader sends to each destination.

This module also divides the write rate of a broker among the partitions that the broker leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """All copies that one leader sends to one destination.

    `bytes` are the bytes to copy. `writes` is the rate at which producers write to the partitions, counted for each
    copy, in bytes per second. None means unknown, never 0.
    """

    leader: int
    destination: int
    copies: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The links of a move, ordered by leader and destination.

    `keep_up` has the follower traffic of each leader: fetches of in-sync followers of the moving partitions. This
    traffic uses the leader's throttle and is not delayed (KAFKA-4313). Rates are in bytes per second. None means
    unknown, never 0.
    """

    links: tuple[Link, ...]
    keep_up: Mapping[int, float | None]

    @property
    def copies(self) -> int:
        """The number of replicas to create."""
        return sum(link.copies for link in self.links)

    @property
    def bytes(self) -> int:
        """The bytes to copy."""
        return sum(link.bytes for link in self.links)

    def scaled(self, factors: Mapping[int, float]) -> Work:
        """Return the same move, with the rates of each leader multiplied by its factor (default 1)."""
        return Work(
            links=tuple(replace(k, writes=_times(k.writes, factors.get(k.leader, 1.0))) for k in self.links),
            keep_up={leader: _times(rate, factors.get(leader, 1.0)) for leader, rate in self.keep_up.items()},
        )


def work(links: Iterable[Link], keep_up: Mapping[int, float | None]) -> Work:
    """Return the work of `links`, given in any order. Links without copies are left out.

    A leader that is not in `keep_up` has no follower traffic.
    """
    ordered = tuple(sorted((link for link in links if link.copies), key=lambda link: (link.leader, link.destination)))
    return Work(links=ordered, keep_up={link.leader: keep_up.get(link.leader, 0.0) for link in ordered})


def move_ratio(partitions_to_be_moved: int, total_partition_count: int) -> float:
    """MoveRatio = #partitions-to-be-moved / #total-partition-count. It is 0 without partitions. Source: KIP-73."""
    return partitions_to_be_moved / total_partition_count if total_partition_count else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedPartitions:
    """Partitions that one broker leads: their number, their bytes and their write rate.

    `writes` is in bytes per second. It is None if any partition's rate is unknown.
    """

    partitions: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The rule by which partitions share the write rate of their broker, in bytes per second.

    Partitions get `factor` x their `writes`. If `factor` is None, they get `a_byte` x their `bytes` + `each` x their
    number.
    """

    factor: float | None
    a_byte: float
    each: float

    def of(self, part: LedPartitions) -> float:
        """Return the write rate of `part`, some of the partitions that the broker leads, in bytes per second.

        `part.writes` must be known if `factor` is not None.
        """
        if self.factor is not None:
            assert part.writes is not None
            return self.factor * part.writes
        return self.a_byte * part.bytes + self.each * part.partitions


def allotment(rate: float, led: LedPartitions) -> Allotment:
    """Divide `rate`, in bytes per second, among the partitions that a broker leads. The parts add up to `rate`.

    If the rates of all partitions are known and not all 0, these rates set the proportions, because they show which
    partitions are usually busy. `rate` shows how busy they are now. Otherwise, the sizes set the proportions. If all
    partitions are empty, each gets the same rate.
    """
    if led.writes:
        return Allotment(factor=rate / led.writes, a_byte=0.0, each=0.0)
    if led.bytes:
        return Allotment(factor=None, a_byte=rate / led.bytes, each=0.0)
    return Allotment(factor=None, a_byte=0.0, each=rate / led.partitions)


def _times(rate: float | None, factor: float) -> float | None:
    return None if rate is None else rate * factor
