"""A move in parts, one after the other: what each carries and how long it takes."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.pace.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One part of a move: its `partitions` moving partitions, the first and the last by name, and their work."""

    first: str
    last: str
    partitions: int
    work: Work
