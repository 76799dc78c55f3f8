"""How a broker's rate of writes is allotted to the partitions that it leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """What one broker leads, or a part of it: partitions, their bytes, and what is known to be written to them.

    `writes` is in bytes per second; None when any of the partitions has an unknown rate.
    """

    partitions: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """What some of a broker's partitions get of its rate: `factor` x their own rates, or where that is None,
    `a_byte` x their bytes + `each` x their number, in bytes per second.
    """

    factor: float | None
    a_byte: float
    each: float

    def of(self, part: Led) -> float:
        """The rate of a part of what the broker leads, with the writes that were known of it so far."""
        if self.factor is not None:
            assert part.writes is not None
            return self.factor * part.writes
        return self.a_byte * part.bytes + self.each * part.partitions


def allotment(rate: float, led: Led) -> Allotment:
    """How `rate` spreads over what a broker leads; the parts sum up to it.

    By the partitions' own rates where all of them are known, else by size: a history tells who is busy, and `rate` how
    busy today. Where all is empty, size says nothing, and each partition gets the same.
    """
    if led.writes:
        return Allotment(factor=rate / led.writes, a_byte=0.0, each=0.0)
    if led.bytes:
        return Allotment(factor=None, a_byte=rate / led.bytes, each=0.0)
    return Allotment(factor=None, a_byte=0.0, each=rate / led.partitions)
