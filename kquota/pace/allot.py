"""How a broker's rate of writes is allotted to the partitions that it leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """All that one broker leads: how many partitions, their bytes, and what is known to be written to them.

    `writes` is in bytes per second; None when any of the partitions has an unknown rate.
    """

    partitions: int
    bytes: int
    writes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """What one of a broker's partitions gets of its rate: `factor` x its own rate, or where that is None,
    `a_byte` x its bytes + `each`, in bytes per second.
    """

    factor: float | None
    a_byte: float
    each: float

    def of(self, size: int, writes: float | None) -> float:
        """The rate of a partition of `size` bytes, so far thought to be written to at `writes`."""
        if self.factor is not None:
            assert writes is not None
            return self.factor * writes
        return self.a_byte * size + self.each


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
