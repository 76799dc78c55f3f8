"""KIP-73's estimate of a move: MoveRatio and MoveTime. This estimate ignores the load of individual brokers."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.measure import ByteRate


def move_ratio(partitions_to_be_moved: int, total_partition_count: int) -> float:
    """MoveRatio = #partitions-to-be-moved / #total-partition-count. It is 0 without partitions. Source: KIP-73."""
    return partitions_to_be_moved / total_partition_count if total_partition_count else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTime:
    """MoveTime = MoveRatio x TotalLogSizePerBroker x #Brokers / (replication-quota - max(BytesInPerSec)).

    Sizes are in bytes, rates in bytes per second. If `max_bytes_in` is None, the rate and the time are unknown. Source:
    KIP-73, Q&A 1. Kafka does not calculate this time.
    """

    partitions_to_be_moved: int
    total_partition_count: int
    total_log_size: int
    brokers: int
    replication_quota: ByteRate
    max_bytes_in: float | None

    @property
    def move_ratio(self) -> float:
        """The share of the cluster's partitions that move."""
        return move_ratio(self.partitions_to_be_moved, self.total_partition_count)

    @property
    def log_size_per_broker(self) -> float:
        """TotalLogSizePerBroker: the mean over the brokers, in bytes."""
        return self.total_log_size / self.brokers if self.brokers else 0.0

    @property
    def in_below_throttle(self) -> bool | None:
        """KIP-73's condition IN < T (Q&A 4). It is necessary for a move to end, but not sufficient (see `pace.share`).

        None if IN is unknown.
        """
        return None if self.max_bytes_in is None else self.max_bytes_in < self.replication_quota

    @property
    def seconds(self) -> float | None:
        """MoveTime in seconds. None if `max_bytes_in` is None or the move never ends (`in_below_throttle` is False)."""
        if self.max_bytes_in is None or not self.in_below_throttle:
            return None
        return self.move_ratio * self.total_log_size / (self.replication_quota - self.max_bytes_in)
