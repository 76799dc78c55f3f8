"""How much was written to a replica between two snapshots: the reference that the Spark job is held equal to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 2**63 - 1
"""More bytes than a column can hold are not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One replica in one snapshot. Size in bytes; None is "nobody told"."""

    size: int
    start_offset: int | None = None
    end_offset: int | None = None
    in_sync: bool | None = None


def grown(before: Reading | None, now: Reading) -> int | None:
    """Bytes written to the replica since the snapshot before, never negative; None where that cannot be told.

    A shrink is retention, not traffic. What a replica gains while it catches up is a copy's traffic, not producers'.
    Where the log was cut meanwhile, or where it starts is not known of both, an offset takes the mean of those that
    are there now: on a compacted topic an upper bound. Without a start offset the gain in size is a lower bound.
    """
    if before is None or before.in_sync is False:
        return None
    gained = now.size - before.size if now.size >= before.size else None
    if before.end_offset is None or now.end_offset is None:
        return gained
    written = now.end_offset - before.end_offset
    if written <= 0:
        # An end that went back: made anew, or truncated.
        return 0 if written == 0 else None
    if now.start_offset is None or (gained is not None and now.start_offset == before.start_offset):
        return gained
    held = now.end_offset - now.start_offset
    estimate = written * now.size // held if held > 0 else MOST + 1
    return estimate if estimate <= MOST else None
