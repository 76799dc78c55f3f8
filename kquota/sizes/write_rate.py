"""How fast a partition is written to, from two readings of its leader's log: a history's rule, on a live cluster."""

from __future__ import annotations

from collections.abc import Iterable

from kquota.sizes.growth import Reading, grown
from kquota.sizes.replica import LogDir, Replica
from kquota.terms import TopicPartition


def write_rates(
    first: Iterable[LogDir], second: Iterable[LogDir], seconds: float
) -> dict[TopicPartition, float | None]:
    """Bytes per second written to each partition that has a leader in the second of two detailed readings.

    `seconds` lie between the readings. What was written is `sizes.growth.grown` of the log that leads now; None, not
    0, where that cannot be told.
    """
    leaders = {
        (log_dir.broker, replica.partition): replica
        for log_dir in second
        for replica in log_dir.replicas
        if replica.leader and not replica.future
    }
    before = {
        (log_dir.broker, replica.partition): _reading(replica)
        for log_dir in first
        for replica in log_dir.replicas
        if (log_dir.broker, replica.partition) in leaders and not replica.future
    }
    written = {key: grown(before.get(key), _reading(leader)) for key, leader in leaders.items()}
    return {
        partition: None if more is None else more / seconds
        for (_, partition), more in sorted(written.items(), key=lambda item: item[0][1])
    }


def _reading(replica: Replica) -> Reading:
    return Reading(
        size=replica.size,
        start_offset=replica.start_offset,
        end_offset=replica.end_offset,
        in_sync=replica.in_sync,
    )
