"""The bytes that are written to a log between two readings, and the write rates of a live cluster.

The Spark job must calculate the same bytes as `grown`, and a test compares the results.
"""

from __future__ import annotations

from collections.abc import Iterable

from kquota.sizes.replica import LogDir, Replica
from kquota.terms import LONG_MAX, TopicPartition


def grown(before: Replica | None, now: Replica) -> int | None:
    """Return the bytes written to the replica since the previous snapshot, never negative. None if they are unknown.

    They are unknown without a previous snapshot, and without the current local start offset, because the topic may be
    tiered. They are also unknown if the replica was out of sync, because it then grows by copy traffic, not by writes
    of producers. If the end offset decreased, they are unknown, because the log was recreated or truncated.

    Without new offsets, the result is 0. If the local start offset is the same and the log did not shrink, the result
    is the growth in size. Otherwise, it is the number of new offsets times the mean size of an offset in the log. For a
    compacted topic, this estimate is usually too low, because a removed record has an offset but no bytes. The result
    is None if the log is now empty, or if the estimate does not fit into a `long` column of Spark. If an end offset is
    unknown, the result is the growth in size, which is a lower bound, or None if the log shrank.
    """
    if before is None or before.in_sync is False or now.local_start_offset is None:
        return None
    gained = now.size - before.size if now.size >= before.size else None
    if before.end_offset is None or now.end_offset is None:
        return gained
    written = now.end_offset - before.end_offset
    if written <= 0:
        return 0 if written == 0 else None
    if gained is not None and now.local_start_offset == before.local_start_offset:
        return gained
    held = now.end_offset - now.local_start_offset
    estimate = written * now.size // held if held > 0 else LONG_MAX + 1
    return estimate if estimate <= LONG_MAX else None


def write_rates(
    first: Iterable[LogDir], second: Iterable[LogDir], seconds: float
) -> dict[TopicPartition, float | None]:
    """Return the bytes per second written to each partition that has a leader in the second of two detailed readings.

    `seconds` is the time between the readings. `grown` calculates the written bytes from the log of the current leader.
    The rate is None, not 0, if it is unknown, for example because the leader did not report its local start offset.
    """
    leaders = {
        (log_dir.broker, replica.partition): replica
        for log_dir in second
        for replica in log_dir.replicas
        if replica.leader and not replica.future
    }
    before = {
        (log_dir.broker, replica.partition): replica
        for log_dir in first
        for replica in log_dir.replicas
        if (log_dir.broker, replica.partition) in leaders and not replica.future
    }
    written = {key: grown(before.get(key), leader) for key, leader in leaders.items()}
    return {
        partition: None if more is None else more / seconds
        for (_, partition), more in sorted(written.items(), key=lambda item: item[0][1])
    }
