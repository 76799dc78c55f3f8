"""What the moves of a plan carry, broker by broker, so that a throttle under which no copy can end is refused.

The same aggregates as the Spark job's (`spark.estimate`), in plain Python: a live cluster's moves need no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kquota.measure import ByteRate
from kquota.pace.share import Share, Side
from kquota.reassign.moves import Move, Partition
from kquota.terms import BrokerId, TopicPartition


@dataclass(slots=True)
class _Load:
    copies: int = 0
    bytes: int = 0
    keep_up: float | None = 0.0
    writes: float | None = 0.0

    def add(self, *, copies: int, size: int, keep_up: float | None, writes: float | None) -> None:
        self.copies += copies
        self.bytes += size
        # A sum with one unknown in it is unknown.
        self.keep_up = None if self.keep_up is None or keep_up is None else self.keep_up + keep_up
        self.writes = None if self.writes is None or writes is None else self.writes + writes


def shares(
    moving: Iterable[Move],
    partitions: Mapping[TopicPartition, Partition],
    sizes: Mapping[TopicPartition, int],
    writes: Mapping[TopicPartition, float | None],
    throttle: ByteRate,
) -> tuple[Share, ...]:
    """One share a broker and side, for `pace.share.pace`. `sizes` are the leaders' bytes, `writes` bytes per second.

    A partition that is missing from `writes` has an unknown rate, one without a leader carries nothing: it cannot.
    """
    loads: dict[tuple[BrokerId, Side], _Load] = {}
    for move in moving:
        now = partitions[move.partition]
        if not move.destinations or now.leader is None:
            continue
        size, w, copies = sizes.get(move.partition, 0), writes.get(move.partition), len(move.destinations)
        followers = sum(broker in move.sources and broker != now.leader for broker in now.isr)
        keep_up = 0.0 if not followers else (None if w is None else w * followers)
        sent = loads.setdefault((now.leader, Side.LEADER), _Load())
        sent.add(copies=copies, size=size * copies, keep_up=keep_up, writes=None if w is None else w * copies)
        for broker in move.destinations:
            received = loads.setdefault((broker, Side.DESTINATION), _Load())
            received.add(copies=1, size=size, keep_up=0.0, writes=w)
    return tuple(
        Share(
            broker=broker,
            side=side,
            throttle=throttle,
            copies=load.copies,
            bytes=load.bytes,
            keep_up=load.keep_up,
            writes=load.writes,
        )
        for (broker, side), load in loads.items()
    )
