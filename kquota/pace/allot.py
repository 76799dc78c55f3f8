"""Divides the write rate of a broker among the partitions that it leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """Partitions that one broker leads: their number, their bytes and their write rate.

    `writes` is in bytes per second. It is None if any partition's rate is unknown.
    """

    partitions: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """How partitions share the write rate of their broker, in bytes per second.

    Partitions get `factor` x their `writes`. If `factor` is None, they get `a_byte` x their `bytes` + `each` x their
    number.
    """

    factor: float | None
    a_byte: float
    each: float

    def of(self, part: Led) -> float:
        """Return the write rate of some of the partitions that the broker leads, in bytes per second."""
        if self.factor is not None:
            assert part.writes is not None
            return self.factor * part.writes
        return self.a_byte * part.bytes + self.each * part.partitions


def allotment(rate: float, led: Led) -> Allotment:
    """Divide `rate`, in bytes per second, among the partitions that a broker leads. The parts add up to `rate`.

    If the rates of all partitions are known and not all 0, these rates set the proportions: they show which partitions
    are usually busy, and `rate` shows how busy they are now. Otherwise, the sizes set the proportions. If all
    partitions are empty, each gets the same rate.
    """
    if led.writes:
        return Allotment(factor=rate / led.writes, a_byte=0.0, each=0.0)
    if led.bytes:
        return Allotment(factor=None, a_byte=rate / led.bytes, each=0.0)
    return Allotment(factor=None, a_byte=0.0, each=rate / led.partitions)
