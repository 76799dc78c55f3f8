"""How the write rate of a broker is divided among the partitions that it leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """Partitions that one broker leads: their number, their bytes, and the known write rate.

    `writes` is in bytes per second. It is None if the rate of any of the partitions is unknown.
    """

    partitions: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """How partitions share the rate of their broker, in bytes per second.

    A part gets `factor` x its own rate. If `factor` is None, it gets `a_byte` x its bytes + `each` x its number of
    partitions.
    """

    factor: float | None
    a_byte: float
    each: float

    def of(self, part: Led) -> float:
        """The rate of some of the partitions that the broker leads."""
        if self.factor is not None:
            assert part.writes is not None
            return self.factor * part.writes
        return self.a_byte * part.bytes + self.each * part.partitions


def allotment(rate: float, led: Led) -> Allotment:
    """How `rate` is divided among the partitions that a broker leads. The parts add up to it.

    It is divided by the partitions' own rates if all of them are known, because a history shows which partitions are
    busy, and `rate` how busy they are today. Otherwise it is divided by size. If all partitions are empty, each gets
    the same rate.
    """
    if led.writes:
        return Allotment(factor=rate / led.writes, a_byte=0.0, each=0.0)
    if led.bytes:
        return Allotment(factor=None, a_byte=rate / led.bytes, each=0.0)
    return Allotment(factor=None, a_byte=0.0, each=rate / led.partitions)
