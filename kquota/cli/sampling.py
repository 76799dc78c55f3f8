"""Write rates of a live cluster, calculated from two readings of the log dirs."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquota.sizes.growth import write_rates
from kquota.terms import BrokerId, TopicPartition

if TYPE_CHECKING:
    from kquota.sizes.port import LogDirs
    from kquota.sizes.replica import LogDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The log dirs of `brokers` with the replicas of `topics` (None means all).

    `at` is the time at which the sizes were read, in seconds of `time.monotonic`.
    """

    brokers: Collection[BrokerId]
    topics: Collection[str] | None
    log_dirs: list[LogDir]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The second reading, and the write rates between the two readings."""

    log_dirs: list[LogDir]
    """The log dirs of the second reading, with the details of `LogDirs.detailed`."""
    rates: Mapping[TopicPartition, float | None]
    """The bytes per second written to each partition. None means unknown, never 0."""


def listed(cluster: LogDirs, brokers: Collection[BrokerId], topics: Collection[str] | None) -> Listed:
    """Read the log dirs of these brokers once. Raises Unreachable if one of the brokers does not answer, and Refused if
    a broker answers with an error.
    """
    found = cluster.describe(brokers, topics)
    return Listed(brokers=brokers, topics=topics, log_dirs=found, at=time.monotonic())


def sampled(cluster: LogDirs, before: Listed, seconds: float) -> Sampled:
    """Wait `seconds`, read the sizes again, and return the write rates since `before`.

    The interval of the rates is the time between the two readings of the sizes. Raises Unreachable if a broker does not
    answer, and Refused if a broker answers with an error.
    """
    first = cluster.detailed(before.log_dirs)
    time.sleep(seconds)
    again = listed(cluster, before.brokers, before.topics)
    second = cluster.detailed(again.log_dirs)
    return Sampled(log_dirs=second, rates=write_rates(first, second, again.at - before.at))
